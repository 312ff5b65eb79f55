"""Verify with content: one flipped byte, in any file, is found and named."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, GraphNotFound
from omnigraph.failpoints import Failpoint
from omnigraph.graph.verify_at import verify_at
from omnigraph.storage.checksums import canonical_version, foreign_bases
from omnigraph.storage.lance_manifest import manifest_in, replace_base_paths, with_manifest
from omnigraph.storage.location import TableLocation
from omnigraph.testing.crash import run_spawned
from omnigraph.testing.inside import inside
from omnigraph.upkeep.findings import Finding, Verification
from tests.depth import depth
from tests.upkeep.damage import (
    BRANCH,
    files_below,
    flipped_byte,
    log_lines,
    new_graph_of_all_kinds,
    without,
)
from tests.upkeep.graphs import fill, new_library, reopen

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph with a file of every kind. Tests damage it and put it right again."""
    return new_graph_of_all_kinds(tmp_path_factory.mktemp("kinds") / "graph")


def named(report: Verification, path: Path) -> list[Finding]:
    """The errors that name a file."""
    return [each for each in report.errors if each.file == str(path) or str(path) in each.message]


def batches(root: Path, paths: list[Path], size: int) -> list[list[Path]]:
    """All paths, in groups whose members lie far apart; those of the whole graph alone.

    Without its schema nothing else of a graph can be looked at.
    """
    tables = [path for path in paths if path.parent != root]
    count = -(-len(tables) // size)
    alone = [[path] for path in paths if path.parent == root]
    return [*alone, *(tables[start::count] for start in range(count))]


def test_a_sound_graph_is_clean_to_the_last_byte(kinds: og.Graph) -> None:
    report = kinds.verify(content=True)

    assert report.errors == ()
    assert {each.check for each in report.warnings} <= {"indexes"}
    assert report.files_checked > 150
    assert report.bytes_compared > 300_000


def test_verify_looks_at_the_files_and_not_at_what_the_handle_remembers(kinds: og.Graph) -> None:
    """A handle may have read a file while it was damaged, and keeps what it read."""
    states = inside(kinds).coordinator.states
    known = states.fresh("dev/x")
    wrong = {key: replace(entry, row_count=10**6) for key, entry in known.entries.items()}
    states.remember(replace(known, entries=wrong))
    try:
        assert kinds.verify().errors == ()
    finally:
        states.forget("dev/x")


def test_a_flipped_byte_in_any_file_is_found_and_named(kinds: og.Graph) -> None:
    """Many files at a time, of different tables and kinds; in a torture run each on its own."""
    everything = files_below(Path(kinds.uri))
    logs = [path for path in everything if path.parent.name == "_checksums"]
    # A damaged log may hide one of these. A damaged mark is read as none.
    others = sorted(set(everything) - {*logs, Path(kinds.uri) / "__history.json"})
    missed: list[Path] = []
    for batch in [*batches(Path(kinds.uri), others, depth(24, 1)), *([log] for log in logs)]:
        with ExitStack() as damage:
            for path in batch:
                damage.enter_context(flipped_byte(path))
            report = kinds.verify(content=True)
        missed += [path for path in batch if not named(report, path)]

    assert missed == []
    assert kinds.verify(content=True).errors == ()


def test_a_file_that_is_gone_is_found_without_reading_content(kinds: og.Graph) -> None:
    """Index files, large blobs, versions of older commits and refs of tables included."""
    root = Path(kinds.uri)
    refs = set(root.rglob("_refs/branches/*"))
    # A log of checksums is about other files, and says nothing once it is gone. States of a deleted
    # branch that are gone look as if a cleanup had let go of them.
    exempt = {*refs, *root.rglob("_checksums/*"), *root.glob("__commits/*")}
    exempt.add(root / "__history.json")
    missed: list[Path] = []
    for batch in batches(root, sorted(set(files_below(root)) - exempt), depth(24, 1)):
        with ExitStack() as damage:
            for path in batch:
                damage.enter_context(without(path))
            report = kinds.verify()
        missed += [path for path in batch if not named(report, path)]

    assert missed == []
    for ref in refs:
        with without(ref):
            report = kinds.verify()
        if "__manifest" in ref.parts:
            # This looks like a branch whose deletion was interrupted.
            assert "branch 'dev/x' is not seen" in str(report.warnings)
        elif ref.name != "merged.json":  # the state of a deleted branch is read without it
            assert named(report, ref)
    assert kinds.verify(content=True).errors == ()


def test_a_finding_names_the_branches_and_commit_that_the_damage_affects(kinds: og.Graph) -> None:
    """The rows of the branch that its own load wrote: one author, in one commit."""
    commit = kinds.commits(branch=BRANCH)[0]
    entry = kinds.snapshot(BRANCH).entries["node:Author"]
    fork = Path(kinds.uri) / entry.table_path / "tree" / BRANCH
    last = log_lines(fork / "_checksums" / "files.log")[-1]["files"]
    newest = fork.parents[2] / next(path for path in last if path.endswith(".lance"))

    with flipped_byte(newest):
        (found,) = named(kinds.verify(content=True), newest)

    assert (found.subject, found.branches) == ("'node:Author'", (BRANCH,))
    assert (found.commit, found.rows) == (commit.commit_id, 1)
    assert "its bytes are not those that were written" in found.message
    assert "backup" in found.fix


def test_a_damaged_graph_that_cannot_be_opened_is_verified_all_the_same(kinds: og.Graph) -> None:
    root = Path(kinds.uri)
    latest = min((root / "__manifest" / "_versions").glob("*.manifest"))
    for victim in (latest, root / "_schema.pg", root / "__schema_state.json"):
        with flipped_byte(victim, seed=2):
            assert named(verify_at(root, content=True), victim), victim
        with without(victim):
            assert verify_at(root).errors, victim
    whole = latest.read_bytes()
    latest.write_bytes(b"")
    try:
        assert named(verify_at(root), latest)
    finally:
        latest.write_bytes(whole)

    assert verify_at(root, content=True).errors == ()
    with pytest.raises(GraphNotFound):
        verify_at(root / "nodes")


def test_a_copy_of_a_graph_without_branches_is_clean(tmp_path: Path) -> None:
    graph = new_library(tmp_path / "graph")
    fill(graph)
    shutil.copytree(graph.uri, tmp_path / "copy")

    copy = og.open(tmp_path / "copy")

    assert copy.verify(content=True).errors == ()
    assert "checksum" not in str(copy.verify(content=True).warnings)


def test_a_moved_fork_has_the_checksum_it_had(kinds: og.Graph) -> None:
    """Where a fork says that its rows lie is no part of it: a move changes that."""
    for path in Path(kinds.uri).rglob("tree/**/_versions/*.manifest"):
        dataset = str(path).partition("/tree/")[0]
        elsewhere = f"/another/place/{Path(dataset).name}"
        data = path.read_bytes()
        moved = with_manifest(data, replace_base_paths(manifest_in(data), {dataset: elsewhere}))

        assert moved != data
        assert canonical_version(moved, elsewhere) == canonical_version(data, dataset)
        assert foreign_bases(data, dataset) == []
        assert foreign_bases(data, elsewhere) == [dataset]


def test_cleanup_takes_the_records_with_it(tmp_path: Path) -> None:
    graph = new_graph_of_all_kinds(tmp_path / "graph")

    graph.cleanup(keep=1, confirm=True)

    report = graph.verify(content=True)
    assert report.errors == ()
    assert "checksum" not in str(report.warnings)
    for log in Path(graph.uri).rglob("_checksums/files.log"):
        if "tree" in log.parts:
            continue
        (record,) = log_lines(log)
        assert all((log.parents[1] / path).exists() for path in record["files"]), log


def test_an_interrupted_cleanup_is_not_reported_as_damage(tmp_path: Path) -> None:
    """It had removed files and not yet their records."""
    graph = new_graph_of_all_kinds(tmp_path / "graph")
    logs = {path: path.read_bytes() for path in Path(graph.uri).rglob("_checksums/files.log")}
    graph.cleanup(keep=1, confirm=True)
    for path, data in logs.items():
        if not path.parent.exists():
            continue  # a fork of a branch that is gone
        path.write_bytes(data)
        (path.parent / "cleaning").touch()

    report = graph.verify(content=True)

    assert report.errors == ()
    assert "`omnigraph cleanup`" in str(report.warnings)
    graph.cleanup(keep=1, confirm=True)
    assert "clean-up" not in str(graph.verify(content=True).warnings)


@pytest.mark.parametrize("nth", [1, 2])
def test_a_writer_killed_before_its_record_leaves_a_clean_graph(tmp_path: Path, nth: int) -> None:
    """First the table's, then the manifest's: the rows are safe, their files are not recorded."""
    graph = new_library(tmp_path / "graph")
    fill(graph)

    died = run_spawned(
        "tests.upkeep.damage:insert_author",
        {"path": graph.uri, "arm": f"{Failpoint.CHECKSUMS_BEFORE_RECORD}=kill@{nth}"},
    )

    assert died.was_killed
    again = reopen(graph)
    report = again.verify(content=True)
    assert report.errors == ()
    warned = [each for each in report.warnings if each.check == "content"]
    assert warned
    assert "have no checksum" in warned[0].message
    assert "--record" in warned[0].fix


def test_a_graph_without_checksums_gets_them_when_asked(tmp_path: Path) -> None:
    """One that an older version wrote, for instance."""
    graph = new_graph_of_all_kinds(tmp_path / "graph")
    for folder in Path(graph.uri).rglob("_checksums"):
        shutil.rmtree(folder)
    reader = reopen(graph, mode="r")

    before = reader.verify(content=True)
    with pytest.raises(BadRequestError):
        reader.verify(content=True, record=True)
    graph.verify(content=True, record=True)
    after = reader.verify(content=True)

    assert before.errors == after.errors == ()
    assert len([each for each in before.warnings if each.check == "content"]) == 4
    assert [each for each in after.warnings if each.check == "content"] == []
    tables = inside(graph).store.tables
    pinned = tables.reads.fragments(tables.open_at(*_main_authors(graph)))
    victim = Path(_main_authors(graph)[0].uri) / "data" / pinned[0].files[0]
    with flipped_byte(victim):
        assert named(reader.verify(content=True), victim)


def _main_authors(graph: og.Graph) -> tuple[TableLocation, int]:
    entry = graph.snapshot().entries["node:Author"]
    return inside(graph).store.tables.root.table(entry.table_path), entry.version
