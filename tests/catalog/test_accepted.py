"""The accepted schema as JSON: a round trip, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.catalog import catalog_from_json, catalog_to_json
from omnigraph.errors import StorageError
from tests.catalog.reading import catalog
from tests.catalog.test_shape import plain

Document = dict[str, Any]

FLAGS = "node A { s: String @a(false) @b(0) @c(1.0) @d(true, x=false, y=0) @e }"
RANGES = (
    "node A { x: F64  @range(x, ..10)  @range(x, -1.5..)  @range(x, 0..99999999999999999999.0) }"
)
UNICODE = 'node A @description("Größe – 名前") { s: String  @check(s, "é\\"") }'


@pytest.mark.parametrize(
    "text",
    [
        "",
        plain(),
        FLAGS,
        RANGES,
        UNICODE,
        "node A { b: Blob?  l: [DateTime]  v: Vector(3)? }\nedge E: A -> A @card(1..)",
    ],
)
def test_a_catalogue_survives_the_round_trip(text: str) -> None:
    built = catalog(text)

    written = catalog_to_json(built)
    read = catalog_from_json(written)

    assert read == built
    assert repr(read) == repr(built)
    assert read.shape_hash == built.shape_hash
    assert catalog_to_json(read) == written
    assert [read.edge(name.lower()) for name in built.edges] == list(built.edges.values())


def test_the_order_of_a_key_survives_where_it_is_not_alphabetical() -> None:
    older = catalog("node A { b: String  z: String  @key(z, b) }")
    built = catalog('node A { a: String @rename_from("z")  b: String  @key(a, b) }', older)

    assert catalog_from_json(catalog_to_json(built)).nodes["A"].key == ("b", "a")


def test_the_text_is_readable() -> None:
    written = catalog_to_json(catalog(UNICODE))

    assert "Größe – 名前" in written
    assert written.endswith("}\n")
    assert len(written.splitlines()) > 10


def edited(change: Callable[[Document], object]) -> str:
    document = json.loads(catalog_to_json(catalog(plain())))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("nodes"),
        lambda d: d.pop("next_id"),
        lambda d: d.update(next_id="many"),
        lambda d: d.update(surplus=1),
        lambda d: d.update(nodes={"Author": {}}),
        lambda d: d["nodes"][0].pop("type_id"),
        lambda d: d["nodes"][0].update(type_id="2"),
        lambda d: d["nodes"][0].update(name=7),
        lambda d: d["nodes"][0].update(color="red"),
        lambda d: d["edges"][0].update(target="Nowhere"),
        lambda d: d["nodes"][0].update(description=None),
        lambda d: d["nodes"][0]["properties"][0].update(type="I32"),
        lambda d: d["nodes"][0]["properties"][0]["type"].update(scalar="I128"),
        lambda d: d["nodes"].append(d["nodes"][0]),
        lambda d: d["edges"][0].update(cardinality=[1, 2, 3]),
        lambda d: d["edges"][0].update(type_id=d["nodes"][0]["type_id"]),
        lambda d: d["edges"][0].update(incarnation_id=d["next_id"]),
        lambda d: d["edges"][0].update(type_id=0),
        lambda d: d.update(next_id=3),
    ],
)
def test_an_edited_document_is_refused(change: Callable[[Document], object]) -> None:
    with pytest.raises(StorageError, match="edited or damaged"):
        catalog_from_json(edited(change))


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000])
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match="not JSON"):
        catalog_from_json(text)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"format_version": 2}'])
def test_another_format_is_refused_by_its_version(text: str) -> None:
    with pytest.raises(StorageError, match="format_version"):
        catalog_from_json(text)


def test_editing_the_meaning_changes_the_hash_that_is_read() -> None:
    """The state file holds the hash, so such an edit is seen there."""
    text = edited(lambda d: d["nodes"][0].update(description="someone else"))

    assert catalog_from_json(text).shape_hash != catalog(plain()).shape_hash
