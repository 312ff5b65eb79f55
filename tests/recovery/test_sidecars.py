"""Sidecars: what they say, what older ones mean, and that a bad one is refused, named and kept."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import InvariantViolated, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph import Graph
from omnigraph.testing.inside import inside
from omnigraph.write.sidecar import (
    Sidecar,
    SidecarPin,
    WriterKind,
    sidecar_from_json,
    sidecar_to_json,
)
from omnigraph.write.sidecar_files import (
    BYTES_MAX,
    confirm_sidecar,
    list_sidecars,
    read_sidecar_if_exists,
    write_sidecar,
)
from tests.recovery import work
from tests.recovery.staging import (
    commit_rows,
    fixture,
    is_whole,
    kinds,
    leave,
    mutate,
    names,
    new_graph,
    reopen,
    sidecar,
    sidecar_files,
    write_raw,
)

PUBLISH = Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


# What a sidecar says


@pytest.mark.accepts("S-085", "S-086", "S-128")
def test_before_any_head_moves_a_sidecar_names_every_table(graph: Graph) -> None:
    before = work.standing_of(graph)
    leave(graph, Failpoint.COMMIT_AFTER_SIDECAR, count=5)

    found = sidecar(graph)
    after = work.standing_of(graph)

    assert after["heads"] == before["heads"]
    assert sidecar_files(graph)[0].stem == found["operation_id"]
    assert (found["schema_version"], found["writer_kind"], found["actor_id"]) == (
        2,
        "Mutation",
        "worker",
    )
    entries = graph.snapshot().entries
    assert {pin["table_key"] for pin in found["tables"]} == {
        "node:Person", "node:Firm", "node:City", "edge:Knows", "edge:WorksAt",
    }  # fmt: skip
    for pin in found["tables"]:
        entry = entries[pin["table_key"]]
        assert pin["table_path"] == f"{graph.uri}/{entry.table_path}"
        assert pin["expected_version"] == entry.version
        assert pin["post_commit_pin"] == entry.version + 1
        assert "confirmed_version" not in pin
        assert len(pin["transactions"]) == 1


@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        ("insert", "Mutation"),
        ("delete", "Mutation"),
        ("load merge", "Load"),
        ("update", "Mutation"),
    ],
)
def test_a_sidecar_says_what_kind_of_writer_left_it(graph: Graph, writer: str, kind: str) -> None:
    leave(graph, PUBLISH, writer=writer)

    assert sidecar(graph)["writer_kind"] == kind


SAMPLE = Sidecar(
    operation_id="01HV0000000000000000000000",
    writer_kind=WriterKind.BRANCH_MERGE,
    started_at=1_700_000_000_000_000,
    branch="review/ü",
    actor_id=None,
    commit_id="01HVC000000000000000000000",
    pins=(
        SidecarPin("node:A", "/graph/nodes/1", 7, 8, "review/ü", ("uuid-1", "uuid-2")),
        SidecarPin("edge:B", "/graph/edges/2", 3, 4, "review/ü", (), 5),
    ),
    merge_source_commit_id="01HVS000000000000000000000",
    branch_id="3:abc",
    read_versions={"node:C": 4, "node:A": 7},
    if_commit="01HVH000000000000000000000",
)


def test_a_sidecar_reads_back_as_it_was_written() -> None:
    assert sidecar_from_json(sidecar_to_json(SAMPLE), SAMPLE.operation_id) == SAMPLE
    plain = replace(
        SAMPLE, branch=None, branch_id=None, read_versions={}, if_commit=None, commit_id=None
    )
    text = sidecar_to_json(plain)
    assert sidecar_from_json(text, SAMPLE.operation_id) == plain
    absent = {"branch_id", "read_versions", "if_commit", "lineage"}
    assert not absent & set(json.loads(text))


# Confirmation


@pytest.mark.accepts("S-125")
def test_a_confirmed_sidecar_has_the_version_of_every_table(graph: Graph) -> None:
    texts = inside(graph).store.texts
    write_sidecar(texts, SAMPLE)

    confirmed = confirm_sidecar(texts, SAMPLE, {"node:A": 9, "edge:B": 4})

    assert [pin.confirmed_version for pin in confirmed.pins] == [9, 4]
    assert read_sidecar_if_exists(texts, SAMPLE.operation_id) == confirmed


@pytest.mark.accepts("S-134")
def test_a_table_without_an_achieved_version_cannot_be_confirmed(graph: Graph) -> None:
    texts = inside(graph).store.texts
    write_sidecar(texts, SAMPLE)

    with pytest.raises(InvariantViolated, match="'edge:B'"):
        confirm_sidecar(texts, SAMPLE, {"node:A": 9})

    assert read_sidecar_if_exists(texts, SAMPLE.operation_id) == SAMPLE


@pytest.mark.accepts("S-141")
def test_a_confirmation_that_fails_leaves_the_sidecar_unconfirmed(graph: Graph) -> None:
    texts = inside(graph).store.texts
    write_sidecar(texts, SAMPLE)

    with (
        arm_failpoints({Failpoint.RECOVERY_SIDECAR_CONFIRM: "raise"}),
        pytest.raises(FailpointError),
    ):
        confirm_sidecar(texts, SAMPLE, {"node:A": 9, "edge:B": 4})

    assert read_sidecar_if_exists(texts, SAMPLE.operation_id) == SAMPLE


# Older and newer sidecars


def merged(graph: Graph, *keys: str) -> None:
    """What a merge had committed when it died."""
    for key in keys:
        commit_rows(graph, key, "merged")


@pytest.mark.accepts("S-130", "S-131")
def test_a_merge_of_version_1_is_believed_and_rolls_forward(graph: Graph) -> None:
    """It could not confirm; a completed merge must not be thrown away for that."""
    merged(graph, "node:Person", "edge:Knows")
    fixture(graph, "v1_branch_merge")

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledForward"]
    assert "merged" in names(recovered)
    assert recovered.recoveries()[0].for_actor == "merger"
    is_whole(recovered)


@pytest.mark.accepts("S-132")
def test_a_partial_merge_of_version_1_that_moved_every_table_is_believed_too(
    graph: Graph,
) -> None:
    """The known residual: of two commits to a table only one was made, and nothing can tell."""
    merged(graph, "node:Person", "node:Person", "edge:Knows")
    fixture(graph, "v1_branch_merge")

    assert kinds(reopen(graph)) == ["RolledForward"]


@pytest.mark.accepts("S-096", "S-127", "S-130")
@pytest.mark.parametrize("moved", [["node:Person"], ["node:Person", "edge:Knows"]])
def test_an_unconfirmed_merge_of_version_2_rolls_back(graph: Graph, moved: list[str]) -> None:
    merged(graph, *moved)
    fixture(graph, "v2_branch_merge_unconfirmed")

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    assert "merged" not in names(recovered)
    is_whole(recovered)


@pytest.mark.accepts("S-126")
def test_a_confirmed_merge_rolls_forward_to_exactly_those_versions(graph: Graph) -> None:
    merged(graph, "node:Person", "edge:Knows")
    fixture(graph, "v2_branch_merge_confirmed")

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledForward"]
    entries = recovered.snapshot().entries
    assert (entries["node:Person"].version, entries["edge:Knows"].version) == (3, 3)
    is_whole(recovered)


def test_a_confirmed_merge_whose_tables_moved_on_rolls_back(graph: Graph) -> None:
    merged(graph, "node:Person", "node:Person", "edge:Knows")
    fixture(graph, "v2_branch_merge_confirmed")

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    is_whole(recovered)


@pytest.mark.accepts("S-130")
def test_a_sidecar_from_the_future_is_refused_with_both_versions(graph: Graph) -> None:
    path = fixture(graph, "v3_branch_merge")
    before = path.read_bytes()

    for attempt in (lambda: reopen(graph), lambda: mutate(graph, work.INSERTS[1]), graph.refresh):
        with pytest.raises(RecoveryRequired, match=r"schema_version 3.* up to 2"):
            attempt()

    assert path.read_bytes() == before
    assert reopen(graph, mode="r").branches() == ["main"]


# Hostile sidecars


def refused(graph: Graph, path: Path, before: bytes) -> None:
    """Writes are refused with the name of the file, reads go on, and the file stays."""
    for attempt in (lambda: reopen(graph), lambda: mutate(graph, work.INSERTS[1]), graph.refresh):
        with pytest.raises((RecoveryRequired, StorageError)) as caught:
            attempt()
        assert path.name in str(caught.value)
    assert path.read_bytes() == before
    assert sorted(names(reopen(graph, mode="r"))) == ["ann", "bob", "cy"]


HOSTILE = {
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "text": b'"sidecar"',
    "zeros": b"\0" * 512,
    "not UTF-8": b'{"schema_version": 2, "operation_id": "\xff\xfe"}',
    "deep": b"[" * 200_000,
    "no fields": b"{}",
    "version as text": b'{"schema_version": "2"}',
    "version as bool": b'{"schema_version": true}',
    "version 0": b'{"schema_version": 0, "operation_id": "X", "writer_kind": "Load", "tables": []}',
    "unknown writer": b'{"schema_version": 2, "operation_id": "X", "writer_kind": "Me"}',
    "no tables": b'{"schema_version": 2, "operation_id": "X", "writer_kind": "Load", "tables": [], '
    b'"started_at": "1"}',
    "another name": b'{"schema_version": 2, "operation_id": "Y", "writer_kind": "Load"}',
    "negative": b'{"schema_version": 2, "operation_id": "X", "writer_kind": "Load", "tables": [{'
    b'"table_key": "node:Person", "table_path": "x", "expected_version": -1, '
    b'"post_commit_pin": 2}]}',
}


@pytest.mark.accepts("S-139")
@pytest.mark.parametrize("what", HOSTILE)
def test_a_damaged_sidecar_is_refused_by_name_and_kept(graph: Graph, what: str) -> None:
    path = write_raw(graph, "X", HOSTILE[what])

    refused(graph, path, HOSTILE[what])


@pytest.mark.accepts("S-139")
def test_a_sidecar_cut_off_anywhere_is_refused(graph: Graph) -> None:
    """At every byte of a real one; the graph itself is asked at every fiftieth."""
    leave(graph, Failpoint.COMMIT_AFTER_TABLE)
    (path,) = sidecar_files(graph)
    whole = path.read_bytes()

    for length in range(len(whole)):
        with pytest.raises(RecoveryRequired, match=path.name):
            sidecar_from_json(whole[:length].decode(errors="replace"), path.stem)
        if length % 200 == 0:
            path.write_bytes(whole[:length])
            refused(graph, path, whole[:length])

    path.write_bytes(whole)
    recovered = reopen(graph)
    assert kinds(recovered) == ["RolledBack"]
    is_whole(recovered)


@pytest.mark.accepts("S-139")
def test_a_sidecar_with_a_flipped_bit_never_means_something_else(graph: Graph) -> None:
    """Every bit of a real one: refused, or read as exactly what was written."""
    leave(graph, Failpoint.COMMIT_AFTER_TABLE)
    (path,) = sidecar_files(graph)
    whole = path.read_bytes()
    meant = sidecar_from_json(whole.decode(), path.stem)
    read, flips = [], 0

    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            flips += 1
            try:
                text = bytes(flipped).decode()
                read.append(sidecar_from_json(text, path.stem))
            except (UnicodeDecodeError, RecoveryRequired):
                continue

    # What is read still hit white space or the name of the checksum field.
    assert all(each == meant for each in read)
    assert len(read) < flips / 10


def test_a_huge_sidecar_is_refused_without_being_read(graph: Graph) -> None:
    path = write_raw(graph, "X", b"")
    with path.open("r+b") as file:
        file.truncate(100 * 1024 * 1024)

    started = time.process_time()
    with pytest.raises(StorageError, match=rf"X\.json.*{BYTES_MAX}"):
        reopen(graph)

    assert time.process_time() - started < 5
    assert path.stat().st_size == 100 * 1024 * 1024
    assert sorted(names(reopen(graph, mode="r"))) == ["ann", "bob", "cy"]


def test_a_sidecar_of_another_graph_touches_nothing(tmp_path: Path) -> None:
    """Copied by mistake: neither the graph it names nor the one it lies in may move."""
    other = new_graph(tmp_path / "other")
    leave(other, Failpoint.COMMIT_AFTER_TABLE)
    graph = new_graph(tmp_path / "graph")
    foreign = sidecar_files(other)[0]
    path = write_raw(graph, foreign.stem, foreign.read_bytes())
    before = work.standing_of(other), work.standing_of(graph)

    with pytest.raises(RecoveryRequired, match="another graph"):
        reopen(graph)

    assert (work.standing_of(other), work.standing_of(graph)) == before
    assert path.exists()
    path.unlink()
    assert kinds(reopen(other)) == ["RolledBack"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table_path", "/etc"),
        ("table_path", "../../elsewhere"),
        ("table_path", "s3://bucket/nodes/1"),
        ("table_path", "ftp://nowhere"),
        ("table_path", ""),
        ("table_key", "node:Nobody"),
        ("table_branch", "review/x"),
    ],
)
def test_a_sidecar_that_points_elsewhere_is_refused(graph: Graph, field: str, value: str) -> None:
    leave(graph, Failpoint.COMMIT_AFTER_TABLE)
    (path,) = sidecar_files(graph)
    forged = json.loads(path.read_text())
    del forged["checksum"]
    forged["tables"][0][field] = value
    path.write_text(json.dumps(forged))
    before = work.standing_of(graph)

    with pytest.raises(RecoveryRequired, match=path.name):
        reopen(graph)

    assert work.standing_of(graph) == before
    assert path.exists()


def test_a_graph_that_was_copied_recovers_itself_and_not_the_original(graph: Graph) -> None:
    leave(graph, Failpoint.COMMIT_AFTER_TABLE)
    copy = Path(f"{graph.uri}-copy")
    shutil.copytree(graph.uri, copy)
    before = work.standing_of(graph)

    recovered = work.open_graph(str(copy))

    assert kinds(recovered) == ["RolledBack"]
    assert sidecar_files(recovered) == []
    assert work.standing_of(graph) == before
    assert kinds(reopen(graph)) == ["RolledBack"]


def test_a_copy_still_refuses_a_sidecar_of_a_third_graph(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    other = new_graph(tmp_path / "other")
    leave(other, Failpoint.COMMIT_AFTER_TABLE)
    copy = Path(f"{graph.uri}-copy")
    shutil.copytree(graph.uri, copy)
    (foreign,) = sidecar_files(other)
    (copy / "__recovery").mkdir(exist_ok=True)
    shutil.copy(foreign, copy / "__recovery")

    with pytest.raises(RecoveryRequired, match="another graph"):
        work.open_graph(str(copy))

    assert (copy / "__recovery" / foreign.name).read_bytes() == foreign.read_bytes()


@pytest.mark.accepts("S-142")
def test_what_a_crash_leaves_of_a_sidecar_write_is_invisible(graph: Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    folder.mkdir(exist_ok=True)
    (folder / "01HV.json#123").write_bytes(b"half")
    (folder / "notes.txt").write_text("not a sidecar")

    assert list_sidecars(inside(graph).store.texts) == []
    mutate(reopen(graph), work.INSERTS[1])
    with pytest.raises(OmnigraphError, match="temporary"):
        inside(graph).store.texts.read_text("__recovery/01HV.json#123")
