"""Previews and loads that change nothing: counts by table, no commit, every bad row at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.count_changes import Counts
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import Loads, heads_of, knows, person, unclaimed_files

MISFIT = "expects I32, got a string"
PEOPLE = 'name,age,email,tags,photo\nada,36,a@x,"[""x""]",base64:aGk=\nlin,,,,\nkim,5,,[],base64:\n'


PLAIN = """
node Person { name: String @key  age: I32?  photo: Blob?  email: String?  tags: [String]? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def plain(loads: Loads) -> Iterator[Loads]:
    """Types with few rules."""
    with og.init(loads.directory / "plain", schema=PLAIN) as graph:
        yield Loads(graph, loads.engine, loads.directory)


def preview(loads: Loads, data: Any, mode: str = "merge") -> og.LoadPreview:
    return loads.graph.load(data, mode=mode, dry_run=True, engine=loads.engine)


def test_a_dry_run_counts_what_a_load_does_and_writes_nothing(plain: Loads) -> None:
    plain.load({"Person": plain.file("people.csv", PEOPLE)}, "merge")
    changed = PEOPLE.replace("5,", "6,") + "new,1,,,\nbad,x,,,\n"
    path = plain.file("more.csv", changed)
    heads, commits = heads_of(plain.graph), len(plain.graph.commits())
    records = [knows("ada", "lin"), knows("bad", "lin"), {"type": "Persona"}]

    seen = preview(plain, {"Person": path})
    overwritten = preview(plain, {"Person": path}, "overwrite")
    mixed = preview(plain, records)

    assert seen.tables == {"node:Person": Counts(1, 1, 2, refused=1)}
    assert overwritten.tables == seen.tables
    assert str(seen.bad_rows.first[0]) == f'{path}:6: Person.age: {MISFIT} (value "x")'
    assert seen.rows["node:Person"][0]["tags"] == ["x"]
    assert mixed.tables == {
        "edge:Knows": Counts(inserted=1, refused=1),
        "unknown": Counts(refused=1),
    }
    assert len(plain.graph.commits()) == commits
    assert heads_of(plain.graph) == heads
    assert unclaimed_files(plain.graph) == []
    assert not (Path(plain.graph.uri) / "__quarantine").exists()
    loaded = plain.load({"Person": path}, "merge", on_error="quarantine")
    assert loaded.rows_rejected == seen.tables["node:Person"].refused
    assert loaded.quarantine is not None
    [kept] = map(json.loads, Path(loaded.quarantine).read_text().splitlines())
    assert kept["record"] == "bad,x,,,"
    assert kept["reasons"] == [f'Person.age: {MISFIT} (value "x")']


def test_a_load_that_changes_nothing_makes_no_commit(plain: Loads) -> None:
    """Neither merge nor overwrite; edges without ids that replace all are compared as a bag."""
    files = {
        "Person": plain.file("people.csv", PEOPLE),
        "Knows": plain.file("knows.csv", "from,to,since\nada,lin,2020-01-01\nada,lin,\n"),
    }
    plain.load(files, "overwrite")
    heads, commits = heads_of(plain.graph), len(plain.graph.commits())

    again = plain.load(files, "overwrite")
    merged = plain.load({"Person": files["Person"]}, "merge")

    assert (again.commit_id, merged.commit_id) == (None, None)
    assert again.tables == {"edge:Knows": 2, "node:Person": 3}
    assert heads_of(plain.graph) == heads
    assert unclaimed_files(plain.graph) == []
    fewer = plain.file("knows.csv", "from,to,since\nada,lin,2020-01-01\nada,lin,2020-01-01\n")
    changed = plain.load({**files, "Knows": fewer}, "overwrite")
    assert changed.commit_id is not None
    moved = {key for key, head in heads_of(plain.graph).items() if head != heads[key]}
    assert moved == {"edge:Knows"}
    other = plain.file("other.csv", PEOPLE.replace("aGk=", "aGo="))
    assert plain.load({"Person": other}, "merge").commit_id is not None
    assert len(plain.graph.commits()) == commits + 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("36", "37"),
        ("a@x", ""),
        ("[]", ""),
        ("lin,,,", 'lin,,"",'),
        ('""x""', '""y""'),
        ("aGk", "aGo"),
    ],
)
def test_any_difference_is_a_change(alone: Loads, old: str, new: str) -> None:
    """Null is not the empty text, an empty list is not null."""
    alone.load({"Person": alone.file("people.csv", PEOPLE)}, "merge")
    other = alone.file("other.csv", PEOPLE.replace(old, new))

    assert preview(alone, {"Person": other}).tables == {"node:Person": Counts(0, 1, 2)}
    assert alone.load({"Person": other}, "merge").commit_id is not None
    assert alone.load({"Person": other}, "merge").commit_id is None


def test_a_merge_says_how_many_edges_it_added_without_an_id(alone: Loads) -> None:
    alone.load([person("a"), knows("a", "a")], "merge")

    again = alone.load([person("a"), knows("a", "a"), knows("a", "a")], "merge")

    assert "2 edges had no id and were added" in again.notes[0]
    assert len(alone.rows("Knows")) == 3


def test_bad_values_do_not_hide_repeated_keys_and_unknown_ends(loads: Loads) -> None:
    """One run names them all; an end that was refused itself is not reported again."""
    records = [
        person("ada", age="old"),
        person("lin", email="x"),
        person("lin"),
        {"type": "Team", "data": {"name": "red"}},
        {"edge": "MemberOf", "from": "ada", "to": "red"},
        {"edge": "MemberOf", "from": "lin", "to": "blue"},
        {"edge": "Likes", "from": "lin", "to": "nothing"},
    ]

    with pytest.raises(BadRowsError) as caught:
        loads.load(records)

    shown = [(bad.location, bad.reason) for bad in caught.value.bad_rows]
    assert shown == [
        ("record 1", "expects I32, got a string"),
        ("record 3", "@unique violation on Person.name"),
        ("record 6", "dst 'blue' not found in Team"),
        ("record 7", "dst 'nothing' not found in Note"),
    ]
    with pytest.raises(BadRowsError) as caught:
        loads.load([person("p"), knows("p", "p", since="x"), knows("p", "nobody")])
    assert [bad.location for bad in caught.value.bad_rows] == ["record 2", "record 3"]
    with pytest.raises(BadRowsError) as caught:
        loads.load([{"type": "Team", "data": {}}, person("p"), knows("p", "nobody")])
    assert [bad.location for bad in caught.value.bad_rows] == ["record 1", "record 3"]
    assert loads.rows("Person") == []
    assert unclaimed_files(loads.graph) == []
