"""Rules between rows, against a model of plain dicts, whole and in hash buckets."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.model import Cardinality, EntityType
from omnigraph.errors import ConstraintError
from omnigraph.write.bad_rows import BadRow
from omnigraph.write.integrity import (
    UniqueGroup,
    cardinality_violations,
    duplicate_ids,
    duplicate_tuples,
    find_clashes,
    last_by_id,
    missing_endpoints,
    split_surviving,
    tuple_keys,
    unique_groups,
)
from tests.write.shapes import F64, I64, STRING, edge, list_of, node, optional

EMAIL = UniqueGroup("Thing", ("email",))


def _texts(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.utf8())


def _pairs_table(rows: list[tuple[str | None, int | None]]) -> pa.Table:
    return pa.table(
        {
            "id": _texts([str(at) for at in range(len(rows))]),
            "a": _texts([row[0] for row in rows]),
            "b": pa.array([row[1] for row in rows], pa.int64()),
        }
    )


def _duplicates(entity: EntityType, table: pa.Table) -> list[BadRow]:
    return [
        bad
        for group in unique_groups(entity)
        for bad in duplicate_tuples(group, tuple_keys(entity, group, table))
    ]


PAIRED = node({"a": optional(STRING), "b": optional(I64)}, uniques=(("a", "b"),))


def test_the_groups_of_a_type_are_its_key_and_its_uniques_once() -> None:
    thing = node({"a": STRING, "b": I64}, key=("a",), uniques=(("a",), ("a", "b"), ("b",)))

    assert [str(group) for group in unique_groups(thing)] == [
        "Thing.a",
        "Thing.(a, b)",
        "Thing.b",
    ]


def test_a_repeated_tuple_is_reported_where_it_repeats() -> None:
    rows: list[tuple[str | None, int | None]] = [("x", 1), ("x", 2), ("x", 1), ("x", 1)]

    found = _duplicates(PAIRED, _pairs_table(rows))

    assert [bad.index for bad in found] == [2, 3]
    assert found[0].reason == "@unique violation on Thing.(a, b)"
    assert found[0].value_excerpt == '"x", "1"'


def test_a_repeated_key_is_reported_as_a_unique_violation() -> None:
    thing = node({"slug": STRING}, key=("slug",))
    table = pa.table({"id": ["a", "a"], "slug": ["a", "a"]})

    [bad] = _duplicates(thing, table)

    assert bad.reason == "@unique violation on Thing.slug"


def test_an_edge_may_be_unique_by_its_endpoints() -> None:
    wrote = edge(uniques=(("dst", "src"),))
    table = pa.table({"id": ["1", "2", "3"], "src": ["a", "a", "b"], "dst": ["p", "p", "p"]})

    assert [bad.index for bad in _duplicates(wrote, table)] == [1]


def test_zero_equals_zero_whatever_its_sign() -> None:
    thing = node({"x": F64}, uniques=(("x",),))

    assert len(_duplicates(thing, pa.table({"x": [0.0, -0.0]}))) == 1


def test_a_list_cannot_be_unique() -> None:
    thing = node({"x": list_of(STRING)}, uniques=(("x",),))

    with pytest.raises(ConstraintError, match="unsupported column type"):
        _duplicates(thing, pa.table({"x": [["a"]]}))


_MEMBER = st.none() | st.text("1:a|,\x00", max_size=4)
_PAIRS = st.lists(st.tuples(_MEMBER, _MEMBER), max_size=12)


def _keys(pairs: list[tuple[str | None, str | None]]) -> pa.Array:
    thing = node({"a": STRING, "b": STRING})
    table = pa.table({"a": _texts([a for a, _ in pairs]), "b": _texts([b for _, b in pairs])})
    return tuple_keys(thing, UniqueGroup("Thing", ("a", "b")), table)


@settings(deadline=None)
@given(_PAIRS)
def test_tuples_are_equal_exactly_when_their_keys_are(
    pairs: list[tuple[str | None, str | None]],
) -> None:
    """Texts full of digits and colons try to imitate the framing."""
    keys = _keys(pairs).to_pylist()

    for pair, key in zip(pairs, keys, strict=True):
        assert (key is None) == (None in pair)
        for other_pair, other_key in zip(pairs, keys, strict=True):
            assert key is None or other_key is None or (key == other_key) == (pair == other_pair)


@settings(deadline=None)
@given(_PAIRS)
def test_repeated_tuples_are_those_a_dict_finds(
    pairs: list[tuple[str | None, str | None]],
) -> None:
    seen: set[tuple[str | None, str | None]] = set()
    expected = []
    for row, pair in enumerate(pairs):
        if None not in pair:
            expected += [row] * (pair in seen)
            seen.add(pair)

    found = duplicate_tuples(UniqueGroup("Thing", ("a", "b")), _keys(pairs))

    assert [bad.index for bad in found] == expected


_IDS = st.sampled_from(["a", "b", "c", "d", "e"])
_EMAILS = st.none() | st.sampled_from(["x", "y", "z"])
_EMAIL_TABLES = st.dictionaries(_IDS, _EMAILS)


def _email_table(rows: dict[str, str | None]) -> pa.Table:
    return pa.table({"id": _texts(list(rows)), "email": _texts(list(rows.values()))})


def _bucket(text: str | None, count: int) -> int:
    return zlib.crc32((text or "").encode()) % count


def _bucketed(table: pa.Table, column: str, count: int, bucket: int) -> pa.Table:
    mask = [_bucket(text, count) == bucket for text in table[column].to_pylist()]
    return table.filter(pa.array(mask, pa.bool_()))


@settings(deadline=None)
@given(_EMAIL_TABLES, _EMAIL_TABLES, st.sets(_IDS), st.integers(1, 3))
def test_a_write_clashes_exactly_when_the_graph_after_it_would(
    committed: dict[str, str | None],
    written: dict[str, str | None],
    deleted: set[str],
    buckets: int,
) -> None:
    """By id first, then by tuple: a value freed by the same write may be taken again."""
    after = {key: value for key, value in committed.items() if key not in deleted} | written
    values = Counter(value for value in after.values() if value is not None)
    is_broken = any(count > 1 for count in values.values())
    was_broken = any(
        count > 1
        for count in Counter(
            value for key, value in after.items() if value is not None and key not in written
        ).values()
    )

    gone = {*written, *deleted}
    survivors = pa.concat_tables(
        split_surviving(
            _bucketed(_email_table(committed), "id", buckets, bucket),
            _texts([key for key in sorted(gone) if _bucket(key, buckets) == bucket]),
        )[0]
        for bucket in range(buckets)
    )
    found = 0
    for bucket in range(buckets):
        keys = _bucketed(_email_table(written), "email", buckets, bucket)["email"].combine_chunks()
        kept = _bucketed(survivors, "email", buckets, bucket)["email"].combine_chunks()
        found += duplicate_tuples(EMAIL, keys).total + find_clashes(EMAIL, keys, kept).total

    assert was_broken or (found > 0) == is_broken


def test_an_upsert_never_conflicts_with_its_own_row() -> None:
    survivors, lost = split_surviving(_email_table({"a": "x", "b": "y"}), _texts(["a"]))

    clashes = find_clashes(EMAIL, _texts(["x"]), survivors["email"].combine_chunks())

    assert not clashes
    assert lost["id"].to_pylist() == ["a"]
    [bad] = find_clashes(EMAIL, _texts(["x", "y"]), survivors["email"].combine_chunks())
    assert (bad.index, bad.reason) == (1, "@unique violation on Thing.email")


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | _IDS, st.integers(0, 9))))
def test_the_last_row_of_an_id_wins_and_order_is_kept(rows: list[tuple[str | None, int]]) -> None:
    table = pa.table({"id": _texts([row[0] for row in rows]), "v": [row[1] for row in rows]})
    last = {key: at for at, (key, _) in enumerate(rows)}

    kept = last_by_id(table)

    expected = [row for at, row in enumerate(rows) if row[0] is None or last[row[0]] == at]
    assert list(zip(*kept.to_pydict().values(), strict=True)) == expected


def test_repeated_ids_are_named() -> None:
    ids = _texts(["a", "b", "a", None, None])

    [bad] = duplicate_ids(node({}), ids)

    assert (bad.index, bad.reason) == (2, "id 'a' occurs more than once in the input")


@pytest.mark.accepts("S-061")
def test_an_edge_finds_its_nodes_by_key_and_an_unknown_key_is_named() -> None:
    authors, papers = _texts(["ada", "bo"]), _texts(['["KDD","7"]'])
    wrote = edge()

    assert not missing_endpoints(wrote, "src", _texts(["bo", "ada"]), authors)
    assert not missing_endpoints(wrote, "dst", _texts(['["KDD","7"]']), papers)
    [bad] = missing_endpoints(wrote, "src", _texts(["ada", "cy"]), authors)
    assert (bad.index, bad.reason) == (1, "src 'cy' not found in Author")
    [bad] = missing_endpoints(wrote, "dst", _texts(["p"]), papers)
    assert bad.reason == "dst 'p' not found in Paper"


@settings(deadline=None)
@given(st.lists(st.none() | _IDS), st.sets(_IDS))
def test_missing_endpoints_are_those_a_set_lacks(ends: list[str | None], nodes: set[str]) -> None:
    found = missing_endpoints(edge(), "src", _texts(ends), _texts(sorted(nodes)))

    expected = [row for row, end in enumerate(ends) if end is not None and end not in nodes]
    assert [bad.index for bad in found] == expected


_EDGES = st.dictionaries(st.integers(0, 9).map(str), st.sampled_from(["a", "b", "c"]))


def _edge_table(edges: dict[str, str]) -> pa.Table:
    return pa.table({"id": _texts(list(edges)), "src": _texts(list(edges.values()))})


def _sources(table: pa.Table) -> pa.Array:
    return table["src"].combine_chunks()


@settings(deadline=None)
@given(
    _EDGES,
    _EDGES,
    st.sets(st.integers(0, 9).map(str)),
    st.sets(st.sampled_from(["a", "b", "c"])),
    st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.integers(1, 3),
)
def test_cardinality_is_judged_for_the_sources_a_write_touches(
    committed: dict[str, str],
    written: dict[str, str],
    removed: set[str],
    deleted_nodes: set[str],
    minimum: int,
    maximum: int | None,
    buckets: int,
) -> None:
    gone = {*written, *removed}
    after = {key: value for key, value in committed.items() if key not in gone} | written
    touched = {*written.values()} | {committed[key] for key in gone if key in committed}
    counts = Counter(after.values())
    expected = {
        source: counts[source]
        for source in touched - deleted_nodes
        if counts[source] < minimum or (maximum is not None and counts[source] > maximum)
    }

    survivors, lost = split_surviving(_edge_table(committed), _texts(sorted(gone)))
    wrote = edge(cardinality=Cardinality(minimum, maximum))
    found = {}
    for bucket in range(buckets):
        for bad in cardinality_violations(
            wrote,
            written=_sources(_bucketed(_edge_table(written), "src", buckets, bucket)),
            surviving=_sources(_bucketed(survivors, "src", buckets, bucket)),
            lost=_sources(_bucketed(lost, "src", buckets, bucket)),
            deleted_nodes=_texts(sorted(deleted_nodes)),
        ):
            source = bad.value_excerpt.strip('"')
            found[source] = int(bad.reason.split(" has ")[1].split(" edges")[0])

    assert found == expected


def test_a_cardinality_violation_says_which_bound() -> None:
    one = edge(cardinality=Cardinality(1, 2))
    nothing = _texts([])

    [above] = cardinality_violations(one, written=_texts(["a"] * 2), surviving=_texts(["a"]))
    [below] = cardinality_violations(one, written=nothing, surviving=nothing, lost=_texts(["a"]))

    assert above.reason == "@card violation on edge Wrote: source 'a' has 3 edges (max 2)"
    assert below.reason == "@card violation on edge Wrote: source 'a' has 0 edges (min 1)"


def test_a_source_that_is_not_touched_is_not_judged() -> None:
    one = edge(cardinality=Cardinality(0, 1))

    found = cardinality_violations(one, written=_texts(["b"]), surviving=_texts(["a", "a"]))

    assert not found
