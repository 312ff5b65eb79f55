"""A type rename is metadata: the table stays where it is, with its rows, history and indexes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest.rows import rows_to_state, rows_to_table
from omnigraph.testing.inside import inside
from tests.upkeep.graphs import SCHEMA, heads, new_library, pins, reopen, rows, sidecars

WRITERS = SCHEMA.replace("node Author {", 'node Writer @rename_from("Author") {').replace(
    "Wrote: Author", "Wrote: Writer"
)
BOTH = WRITERS + "node Author { nick: String @key }"
BACK = SCHEMA.replace("node Author {", 'node Author @rename_from("Writer") {')
PLAIN = WRITERS.replace(' @rename_from("Author")', "")


def path_of(graph: og.Graph, key: str) -> str:
    return graph.snapshot().entries[key].table_path


def pinned(graph: og.Graph, key: str) -> tuple[Any, ...]:
    entry = graph.snapshot().entries[key]
    return entry.table_path, entry.version, entry.transaction_uuid, entry.row_count


def is_whole(graph: og.Graph) -> None:
    assert heads(graph) == pins(graph)
    assert sidecars(graph) == []
    assert graph.verify().errors == ()


def follows_what_is_stored(graph: og.Graph) -> None:
    """What the handle made of its own publishes is what another one reads."""
    followed = inside(graph).coordinator.fresh("main")
    found = inside(graph).store.manifest.read(None)
    read = rows_to_state("main", found.version, found.rows, None)
    assert (read.version, read.entries, read.hidden) == (
        followed.version,
        followed.entries,
        followed.hidden,
    )
    assert (read.paths, read.hidden_paths) == (followed.paths, followed.hidden_paths)


def test_a_rename_moves_no_table(library: og.Graph) -> None:
    library.ensure_indices()
    before, old_rows = pinned(library, "node:Author"), rows(library, "node:Author")
    version = library.snapshot().manifest_version

    library.apply_schema(WRITERS)

    assert pinned(library, "node:Writer") == before
    assert "node:Author" not in library.snapshot().entries
    assert rows(library, "node:Writer") == old_rows
    follows_what_is_stored(library)
    is_whole(library)
    library.mutate('query q() { update Writer set { age: 77 } where slug = "a001" }')
    again = reopen(library)
    assert pinned(again, "node:Writer")[0] == before[0]
    assert [c.id for c in again.diff(version, "main")] == ["a001"]
    assert (
        again.query(
            "query q() { match { $a: Writer  $a wrote $p } return { count($p) as n } }"
        ).rows()
        == again.query(
            "query q() { match { $a: Author  $a wrote $p } return { count($p) as n } }",
            version=version,
        ).rows()
    )


def test_the_old_name_used_again_gets_a_table_of_its_own(library: og.Graph) -> None:
    library.apply_schema(WRITERS)
    writers = rows(library, "node:Writer")

    library.apply_schema(BOTH.replace(' @rename_from("Author")', ""))
    library.mutate('query q() { insert Author { nick: "zed" } }')

    assert path_of(library, "node:Author") != path_of(library, "node:Writer")
    assert rows(library, "node:Writer") == writers
    assert [row["nick"] for row in rows(library, "node:Author")] == ["zed"]
    follows_what_is_stored(library)
    is_whole(reopen(library))


def test_a_rename_can_be_taken_back_and_repeated(library: og.Graph) -> None:
    before, old_rows = pinned(library, "node:Author"), rows(library, "node:Author")

    for text in (WRITERS, BACK, WRITERS, BACK):
        library.apply_schema(text)
        follows_what_is_stored(library)

    assert pinned(library, "node:Author") == before
    assert rows(reopen(library), "node:Author") == old_rows
    is_whole(library)


def test_a_rename_with_other_columns_is_a_rewrite_in_place(library: og.Graph) -> None:
    path, version, _, count = pinned(library, "node:Author")

    library.apply_schema(WRITERS.replace("    age: I32?\n", "    born: I32?\n"))

    assert pinned(library, "node:Writer")[:2] == (path, version + 1)
    assert pinned(library, "node:Writer")[3] == count
    follows_what_is_stored(library)
    is_whole(library)


@pytest.mark.parametrize("allow_data_loss", [False, True])
def test_a_dropped_type_added_again_starts_at_another_path(
    library: og.Graph, allow_data_loss: bool
) -> None:
    commit, path = library.snapshot().head.commit_id, path_of(library, "node:Paper")
    without = SCHEMA.replace("node Paper { doi: String @key  year: I32? @index }\n", "").replace(
        "edge Wrote: Author -> Paper { pos: I32? }\n", ""
    )
    for _ in range(2):
        library.apply_schema(without, allow_data_loss=allow_data_loss)
        library.apply_schema(SCHEMA)

    entry = library.snapshot().entries["node:Paper"]
    assert (entry.table_path != path, entry.version, entry.row_count) == (True, 1, 0)
    follows_what_is_stored(library)
    is_whole(library)
    papers = "query q() { match { $p: Paper } return { $p.doi } }"
    assert library.query(papers).rows() == []
    if not allow_data_loss:
        assert library.query(papers, commit=commit).rows() == [{"p.doi": "p000"}]
        assert library.query(papers, commit=commit, schema="current").rows() == []


def test_a_hard_drop_of_a_column_keeps_the_renamed_table(library: og.Graph) -> None:
    library.apply_schema(WRITERS)

    library.apply_schema(PLAIN.replace("    age: I32?\n", ""), allow_data_loss=True)

    assert len(rows(library, "node:Writer")) == 12
    is_whole(library)


def test_cleanup_keeps_a_renamed_table_and_empties_a_dropped_one(library: og.Graph) -> None:
    library.apply_schema(WRITERS)
    writers = rows(library, "node:Writer")
    library.apply_schema(BOTH.replace(' @rename_from("Author")', ""))
    library.mutate('query q() { insert Author { nick: "zed" } }')
    dropped = path_of(library, "node:Author")
    library.apply_schema(PLAIN)

    report = library.cleanup(keep=1, older_than=timedelta(0), confirm=True)

    assert [each.error for each in report.tables] == [None] * len(report.tables)
    assert rows(reopen(library), "node:Writer") == writers
    assert lance.dataset(str(Path(library.uri) / dropped)).count_rows() == 0
    is_whole(library)


@pytest.mark.parametrize("columns", ["same", "other"])
@pytest.mark.parametrize(
    ("point", "happens"),
    [
        (Failpoint.SCHEMA_APPLY_AFTER_TABLE, False),
        (Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE, False),
        (Failpoint.SCHEMA_APPLY_AFTER_STAGING_WRITE, True),
        (Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT, True),
    ],
)
def test_a_rename_that_is_interrupted_is_done_or_undone_whole(
    library: og.Graph, point: Failpoint, happens: bool, columns: str
) -> None:
    old_rows = rows(library, "node:Author")
    text = WRITERS if columns == "same" else WRITERS.replace("    age: I32?\n", "")
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        library.apply_schema(text)
    library.close()

    again = reopen(library)

    key = "node:Writer" if happens else "node:Author"
    assert set(again.snapshot().entries) == {key, "node:Paper", "edge:Wrote"}
    if columns == "other" and happens:
        old_rows = [{n: v for n, v in row.items() if n != "age"} for row in old_rows]
    assert rows(again, key) == old_rows
    follows_what_is_stored(again)
    is_whole(again)
    if not happens:
        again.apply_schema(text)
        assert len(rows(again, "node:Writer")) == 12


def test_a_graph_without_schema_ids_is_read_on(tmp_path: Path) -> None:
    """Of a format from before: its schema is kept at the first open to write, under its hash."""
    graph = new_library(tmp_path / "graph", "node A { s: String @key }")
    strip_schema_id(graph)
    graph.close()

    again = reopen(graph)
    again.mutate('query q() { insert A { s: "x" } }')
    before = again.snapshot().head.commit_id
    again.apply_schema('node A { t: String @key @rename_from("s") }')

    old = again.query("query q() { match { $a: A } return { $a.s } }", commit=before)
    new = again.query("query q() { match { $a: A } return { $a.t } }", commit=before)
    assert (old.rows(), new.rows()) == ([{"a.s": "x"}], [{"a.t": "x"}])
    assert list(again.diff(before, "main")) == []


def strip_schema_id(graph: og.Graph) -> None:
    """Make the manifest name the hash of its schema alone, and forget the kept text."""
    control = inside(graph).store.manifest
    found = control.read(None)
    row = next(each for each in found.rows.to_pylist() if each["object_type"] == "schema")
    row["metadata"] = json.dumps({"schema_ir_hash": json.loads(row["metadata"])["schema_ir_hash"]})
    control.merge_rows(rows_to_table([row]), read_version=found.version)
    for kept in (Path(graph.uri) / "__schemas").iterdir():
        kept.unlink()
