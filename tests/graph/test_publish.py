"""Publishing a write: what it expects, and that it is seen whole or not at all."""

from __future__ import annotations

import threading

import pytest

import omnigraph as og
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest import MAIN, Publish, UpdatePin, publish
from omnigraph.testing.inside import inside
from omnigraph.write import protocol
from tests.graph.reading import (
    add,
    heads,
    links,
    names,
    pins,
    reopen,
    rows,
    run,
    sidecars,
    standing,
)


@pytest.mark.accepts("S-002")
def test_a_publish_carries_the_version_of_every_table_written_or_read(
    pair: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Publish] = []

    def spying(coordinator: object, request: Publish) -> object:
        seen.append(request)
        return publish(coordinator, request)  # type: ignore[arg-type]

    monkeypatch.setattr(protocol, "publish", spying)
    before = pins(pair)

    add(pair, "knows", a="bob", b="ann")
    add(pair, "gone", name="bob")

    assert seen[0].expected == {key: before[key] for key in ("edge:Knows", "node:Person")}
    # A delete depends on every table that its cascade looks into, also where it finds nothing.
    assert set(seen[1].expected) >= {"node:Person", "edge:Knows", "edge:WorksAt"}
    assert [change.table_key for change in seen[0].changes] == ["edge:Knows"]


@pytest.mark.accepts("S-002", "S-003", "S-028", "S-183")
def test_a_table_that_moves_before_the_publish_stops_all_of_them(pair: og.Graph) -> None:
    """Two tables are committed, one expectation fails, both are as they were, and say so."""
    before = standing(pair)
    tables, entry = inside(pair).store.tables, pair.snapshot().entries["node:Person"]

    def move_a_pin() -> None:
        made = tables.restore(tables.root.table(entry.table_path), entry.version)
        moved = UpdatePin("node:Person", made, None, entry.row_count)
        publish(inside(pair).coordinator, Publish(branch=MAIN, changes=(moved,)))

    with (
        arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: move_a_pin}),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        run(pair, 'insert Knows { from: "ann", to: "ann" } insert Firm { code: "f" }')

    error = caught.value
    assert (error.table_key, error.expected, error.actual) == (
        "node:Person",
        before.pins["node:Person"],
        before.pins["node:Person"] + 1,
    )
    assert "nothing was written" in str(error)
    assert (len(links(pair)), sidecars(pair), heads(pair)) == (1, [], pins(pair))
    assert [each.kind for each in pair.recoveries()] == ["RolledBack"]


@pytest.mark.slow
@pytest.mark.accepts("S-027")
def test_a_reader_never_sees_one_table_without_the_other(graph: og.Graph) -> None:
    reader = reopen(graph)
    stop = threading.Event()
    torn: list[object] = []
    looks = 0

    def look() -> None:
        nonlocal looks
        while not stop.is_set():
            version = reader.snapshot().manifest_version
            known = set(names(reader, version=version))
            ends = {end for row in rows(reader, "Knows", version=version) for end in row.values()}
            torn.extend(ends - known - {None})
            if len(known) != 2 * len(rows(reader, "Knows", version=version)):
                torn.append((version, len(known)))
            looks += 1

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(25):
        add(graph, "pair", a=f"a{number}", b=f"b{number}")
    stop.set()
    thread.join()

    assert torn == []
    assert looks > 0
    assert len(links(graph)) == 25


@pytest.mark.accepts("S-012", "S-037")
@pytest.mark.parametrize(
    ("point", "what"),
    [
        (Failpoint.MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE, "gone"),
        (Failpoint.RECOVERY_SIDECAR_WRITE, "pair"),
        (Failpoint.RECOVERY_SIDECAR_WRITE, "gone"),
    ],
)
def test_a_write_cancelled_before_its_sidecar_leaves_nothing(
    pair: og.Graph, point: Failpoint, what: str
) -> None:
    before = standing(pair)

    def cancel() -> None:
        raise KeyboardInterrupt

    params = {"name": "ann"} if what == "gone" else {"a": "cy", "b": "dee"}
    with arm_failpoints({point: cancel}), pytest.raises(KeyboardInterrupt):
        add(pair, what, **params)

    assert standing(pair) == before
    assert add(pair, what, **params).commit_id is not None


@pytest.mark.accepts("S-012")
@pytest.mark.parametrize(
    "point",
    [
        Failpoint.COMMIT_AFTER_SIDECAR,
        Failpoint.COMMIT_AFTER_TABLE,
        Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER,
        Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    ],
)
def test_a_write_cancelled_before_its_publish_is_not_visible(
    pair: og.Graph, point: Failpoint
) -> None:
    before = pair.snapshot()

    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        add(pair, "pair", a="cy", b="dee")

    reader = reopen(pair, mode="r")
    assert reader.snapshot() == before
    assert (names(reader), links(reader)) == (["ann", "bob"], [("ann", "bob")])


def test_a_write_is_visible_from_its_publish_on(pair: og.Graph) -> None:
    with (
        arm_failpoints({Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT: "raise"}),
        pytest.raises(FailpointError),
    ):
        add(pair, "pair", a="cy", b="dee")

    reader = reopen(pair, mode="r")
    assert names(reader) == ["ann", "bob", "cy", "dee"]
    assert len(links(reader)) == 2
    assert len(reader.commits()) == 3


def test_the_receipt_of_a_write_names_its_own_commit(graph: og.Graph) -> None:
    """Also when other threads commit on the same handle at the same time."""
    receipts: list[og.MutationResult] = []

    def write(number: int) -> None:
        receipts.extend(add(graph, "person", name=f"{number}-{i}") for i in range(4))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(receipts) == 16
    for receipt in receipts:
        commit = graph.commit(str(receipt.commit_id))
        assert commit.manifest_version == receipt.manifest_version
    assert len({receipt.commit_id for receipt in receipts}) == 16
