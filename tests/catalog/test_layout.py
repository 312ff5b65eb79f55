"""The table of a type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.catalog import IndexKind, arrow_schema, index_kind, list_declared_indexes
from tests.catalog.reading import catalog


def test_structural_columns_come_first_then_properties_by_name() -> None:
    built = catalog("node A { z: I32  a: String? }\nedge E: A -> A { w: F32? }")

    assert arrow_schema(built.nodes["A"]).names == ["id", "a", "z"]
    assert arrow_schema(built.edges["E"]).names == ["id", "src", "dst", "w"]


def test_arrow_fields_are_nullable_exactly_when_the_property_is() -> None:
    built = catalog("node A { z: I32  a: DateTime?  l: [Date] }\nedge E: A -> A { b: Blob? }")

    assert arrow_schema(built.nodes["A"]) == pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("a", pa.date64()),
            pa.field("l", pa.list_(pa.field("item", pa.date32())), nullable=False),
            pa.field("z", pa.int32(), nullable=False),
        ]
    )
    assert arrow_schema(built.edges["E"]) == pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("src", pa.utf8(), nullable=False),
            pa.field("dst", pa.utf8(), nullable=False),
            pa.field("b", pa.large_binary()),
        ]
    )


@pytest.mark.accepts("S-079")
@pytest.mark.parametrize(
    ("type_text", "kind"),
    [
        ("String", IndexKind.INVERTED),
        ("enum(a, b)", IndexKind.BTREE),
        ("Bool", IndexKind.BTREE),
        ("I32", IndexKind.BTREE),
        ("I64", IndexKind.BTREE),
        ("U32", IndexKind.BTREE),
        ("U64", IndexKind.BTREE),
        ("F32", IndexKind.BTREE),
        ("F64", IndexKind.BTREE),
        ("Date", IndexKind.BTREE),
        ("DateTime", IndexKind.BTREE),
        ("Vector(3)", IndexKind.VECTOR),
        ("Blob", None),
        ("[String]", None),
        ("[I32]", None),
    ],
)
def test_the_type_decides_the_kind_of_index(type_text: str, kind: IndexKind | None) -> None:
    built = catalog(f"node A {{ p: {type_text} }}")

    assert index_kind(built.nodes["A"].properties["p"].type) is kind


def test_single_property_keys_and_indexes_ask_for_a_physical_index() -> None:
    built = catalog(
        "node A { slug: String @key  n: I32 @index  t: String  l: [I32]  v: Vector(2) @index"
        "  @index(n, t)  @index(l) }\n"
        "node B { a: I32  b: I32  @key(a, b) }\n"
        "edge E: A -> B { w: F32? @index  @index(src)  @unique(dst) }\n"
        "edge K: A -> B { @key(src, dst) }"
    )

    assert list_declared_indexes(built.nodes["A"]) == (
        ("id", IndexKind.BTREE),
        ("n", IndexKind.BTREE),
        ("slug", IndexKind.INVERTED),
        ("v", IndexKind.VECTOR),
    )
    assert list_declared_indexes(built.nodes["B"]) == (("id", IndexKind.BTREE),)
    assert list_declared_indexes(built.edges["E"]) == (
        ("id", IndexKind.ZONEMAP),
        ("src", IndexKind.BTREE),
        ("dst", IndexKind.BTREE),
        ("w", IndexKind.BTREE),
    )
    keyed = list_declared_indexes(built.edges["K"])
    assert keyed[0] == ("id", IndexKind.BTREE), "the ids of keyed edges come in any order"
