"""Inserts of several callers in one commit: each is as if it had come alone."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    CommitStateGone,
    ConstraintError,
    PreconditionFailed,
    RecoveryRequired,
    StorageError,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.appended_versions import Chain
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.testing.together import run_together
from omnigraph.write.sidecar import WriterKind, sidecar_from_json, sidecar_to_json
from tests.graph.reading import ADD, heads, names, new_graph, pins, reopen, sidecars

MIXED: list[tuple[str, dict[str, Any]]] = [
    ("person", {"name": "a", "age": 1}),
    ("knows", {"a": "a", "b": "ann"}),  # to a node of the member before
    ("pair", {"a": "b", "b": "c"}),
    ("knows", {"a": "c", "b": "missing"}),  # no such node
    ("note", {"text": "first"}),
    ("person", {"name": "d", "age": 999}),  # out of range
    ("firm", {"code": "f"}),
    ("works", {"a": "b", "b": "f"}),
    ("works", {"a": "b", "b": "f"}),  # a second job
    ("person", {"name": "e", "age": 5}),
]
FAILING = {3, 5, 8}


def calls_of(
    graph: og.Graph, members: list[tuple[str, dict[str, Any]]], **options: Any
) -> list[Callable[[], og.MutationResult]]:
    return [
        partial(graph.mutate, ADD, name, params, actor=f"actor{number}", **options)
        for number, (name, params) in enumerate(members)
    ]


def run_in_turn(calls: list[Callable[[], Any]]) -> list[Any]:
    outcomes: list[Any] = []
    for call in calls:
        try:
            outcomes.append(call())
        except og.errors.OmnigraphError as error:
            outcomes.append(error)
    return outcomes


def content(graph: og.Graph, commit: str) -> dict[str, list[str]]:
    """The rows that a commit shows; edges without their ids, which are minted."""
    types = ["Person", "Firm", "Note", "Knows", "WorksAt"]
    found = {}
    for name in types:
        rows = graph.scan(name, commit=commit).to_arrow().to_pylist()
        kept = [{k: v for k, v in row.items() if k != "id" or name == "Person"} for row in rows]
        found[name] = sorted(map(str, kept))
    return found


@pytest.fixture
def both(tmp_path: Path) -> tuple[og.Graph, og.Graph]:
    """Two equal graphs: one for a group, one for the same calls in turn."""
    made = [new_graph(tmp_path / name, self_care=False) for name in ("group", "serial")]
    for graph in made:
        graph.mutate(ADD, "person", {"name": "ann"}, actor="first")
    return made[0], made[1]


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["main", "side"])
def test_every_commit_of_a_group_is_that_of_a_serial_run(
    both: tuple[og.Graph, og.Graph], branch: str
) -> None:
    group, serial = both
    if branch != "main":
        for graph in both:
            graph.create_branch(branch)

    outcomes = run_together(group, calls_of(group, MIXED, branch=branch), branch)
    expected = run_in_turn(calls_of(serial, MIXED, branch=branch))

    made = [each for each in outcomes if isinstance(each, og.MutationResult)]
    assert len({each.manifest_version for each in made}) == 1
    for number, (one, other) in enumerate(zip(outcomes, expected, strict=True)):
        assert type(one) is type(other)
        if number in FAILING:
            assert isinstance(one, ConstraintError)
            assert str(one) == str(other)
        else:
            assert (one.affected_nodes, one.affected_edges) == (
                other.affected_nodes,
                other.affected_edges,
            )
    if branch != "main":
        for graph in both:
            graph.merge(branch, "main", delete_branch=False)
    for each in (group, reopen(group)):
        lines = [_line(each, branch), _line(serial, branch)]
        assert lines[0] == lines[1]
    assert group.verify().errors == ()


def _line(graph: og.Graph, branch: str) -> list[Any]:
    commits = [each for each in graph.commits(branch)[::-1] if each.branch == branch]
    before = [None, *commits]
    found = []
    for earlier, commit in zip(before, commits, strict=False):
        changed: Any = None
        if earlier is not None:
            assert commit.parent_id == earlier.commit_id
            assert commit.created_at > earlier.created_at
            diff = graph.diff(earlier.commit_id, commit.commit_id).to_json()
            changed = _kinds(diff)
        found.append([commit.actor, content(graph, commit.commit_id), changed])
    return found


def _kinds(diff: dict[str, Any]) -> Any:
    return diff["stats"] if "stats" in diff else sorted(map(str, diff))


def test_the_first_caller_waits_for_none_and_the_next_go_together(graph: og.Graph) -> None:
    results = run_together(
        graph, calls_of(graph, [("person", {"name": f"p{n}"}) for n in range(5)])
    )

    assert len({each.manifest_version for each in results}) == 1
    assert [each.actor for each in graph.commits()[:5]] == [f"actor{n}" for n in (4, 3, 2, 1, 0)]
    assert reopen(graph).snapshot().head.commit_id == results[-1].commit_id
    with counting() as counters:
        graph.mutate(ADD, "person", {"name": "alone"})
    assert (counters.commits, counters.control_merges) == (1, 1)


def test_the_same_key_twice_leaves_the_last_row(graph: og.Graph) -> None:
    members = [("person", {"name": "a", "age": age}) for age in (1, 2, 3)]

    results = run_together(graph, calls_of(graph, members))

    in_order = sorted(results, key=lambda each: each.manifest_version)
    ages = [
        graph.scan("Person", commit=each.commit_id).to_arrow()["age"].to_pylist()
        for each in in_order
    ]
    assert sorted(map(str, ages)) == ["[1]", "[2]", "[3]"]
    assert len({each.manifest_version for each in results}) == 3


def test_a_unique_value_goes_to_the_first(graph: og.Graph) -> None:
    query = "query q($n: String) { insert Person { name: $n, email: 'x@y' } }".replace("'", '"')
    calls = [partial(graph.mutate, query, "q", {"n": f"p{n}"}) for n in range(3)]

    first, *others = run_together(graph, calls)

    assert first.affected_nodes == 1
    assert all(isinstance(each, ConstraintError) for each in others)
    assert names(graph) == ["p0"]


def test_an_edge_with_a_key_is_there_once(tmp_path: Path) -> None:
    schema = "node Person { name: String @key }\nedge Knows: Person -> Person { @key(src, dst) }"
    graph = new_graph(tmp_path / "graph", schema)
    graph.load([{"type": "Person", "data": {"name": each}} for each in "abc"], mode="append")
    query = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
    ends = [("a", "b"), ("b", "c"), ("a", "b"), ("c", "a")]

    results = run_together(
        graph, [partial(graph.mutate, query, "q", {"a": a, "b": b}) for a, b in ends]
    )

    assert len({each.commit_id for each in results}) == 4
    shared = [results[number].manifest_version for number in (0, 1, 3)]
    assert len(set(shared)) == 1 < results[2].manifest_version - shared[0] + 1
    rows = graph.scan("Knows").to_arrow()
    assert sorted(zip(rows["src"].to_pylist(), rows["dst"].to_pylist(), strict=True)) == [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
    ]


def test_a_condition_is_compared_with_the_commit_before(graph: og.Graph) -> None:
    head = graph.snapshot().head.commit_id
    insert = partial(graph.mutate, ADD, "person")
    calls = [
        partial(insert, {"name": "free"}),
        partial(insert, {"name": "one"}, if_commit=head),
        partial(insert, {"name": "other"}, if_commit=head),
        partial(insert, {"name": "free too"}),
    ]

    free, one, other, free_too = run_together(graph, calls)

    assert isinstance(other, PreconditionFailed)
    assert other.actual == one.commit_id
    assert graph.commit(one.commit_id).parent_id == head
    assert free.manifest_version == one.manifest_version == free_too.manifest_version
    assert names(graph) == ["free", "free too", "one"]


def test_a_reader_sees_none_or_all_of_a_group(graph: og.Graph) -> None:
    seen: list[list[str]] = []
    look: dict[Failpoint, str | Callable[[], None]] = {
        point: lambda: seen.append(names(reopen(graph, mode="r")))
        for point in (
            Failpoint.GROUP_AFTER_MEMBER,
            Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
            Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
        )
    }
    members = [("person", {"name": f"p{n}"}) for n in range(3)]

    with arm_failpoints(look):
        run_together(graph, calls_of(graph, members))

    assert seen == [[]] * 4 + [["p0", "p1", "p2"]]


@pytest.mark.parametrize("failing", [1, 3])
def test_a_group_that_cannot_be_committed_is_undone_and_its_members_run_alone(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    real, count = Chain.append, 0

    def fail_once(self: Chain, added: Any) -> Any:
        nonlocal count
        count += 1
        if count == failing:
            raise StorageError("the disk is on fire")
        return real(self, added)

    monkeypatch.setattr(Chain, "append", fail_once)
    members = [("pair", {"a": f"a{n}", "b": f"b{n}"}) for n in range(3)]

    results = run_together(graph, calls_of(graph, members))

    assert len({each.manifest_version for each in results}) == 3
    assert names(graph) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert heads(graph) == pins(graph)
    assert sidecars(graph) == []


def test_all_members_learn_that_a_group_may_still_take_effect(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: Any) -> None:
        raise RecoveryRequired("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.write.protocol.publish", lose)
        outcomes = run_together(
            graph, calls_of(graph, [("person", {"name": f"p{n}"}) for n in range(3)])
        )

    assert [type(each) for each in outcomes] == [RecoveryRequired] * 3
    graph.refresh()
    assert names(graph) == ["p0", "p1", "p2"]
    assert {each.actor for each in graph.commits()} >= {"actor0", "actor1", "actor2"}


def test_a_sidecar_of_a_group_names_all_commits(graph: og.Graph) -> None:
    members = [("pair", {"a": f"a{n}", "b": f"b{n}"}) for n in range(3)]

    with arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: "raise"}):
        outcomes = run_together(graph, calls_of(graph, members))

    assert [type(each) for each in outcomes] == [FailpointError] * 3
    [path] = Path(graph.uri, "__recovery").glob("*.json")
    left = sidecar_from_json(path.read_text(), path.stem)
    assert left.writer_kind is WriterKind.MUTATION_GROUP
    assert [each.actor for each in left.earlier] == ["actor0", "actor1"]
    assert left.actors == "actor0, actor1, actor2"
    assert sidecar_from_json(sidecar_to_json(left), path.stem) == left
    again = reopen(graph)
    ids = [each.commit_id for each in again.commits()]
    assert ids[1:4] == [left.commit_id, *(each.commit_id for each in left.earlier[::-1])]
    shown = [len(again.scan("Person", commit=each).to_arrow()) for each in ids[:4]]
    assert shown == [6, 6, 4, 2]


def test_a_version_of_a_group_that_is_missing_undoes_all_of_it(graph: og.Graph) -> None:
    """A power cut may take any of the versions, and leave later ones."""
    members = [("person", {"name": f"p{n}"}) for n in range(3)]
    before = graph.snapshot().entries["node:Person"]
    with arm_failpoints({Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER: "raise"}):
        run_together(graph, calls_of(graph, members))
    folder = Path(graph.uri, before.table_path, "_versions")
    newest = sorted(folder.glob("*.manifest"))  # names count down
    newest[1].write_bytes(b"")

    again = reopen(graph)

    assert names(again) == []
    assert heads(again) == pins(again)
    assert again.verify().errors == ()
    again.mutate(ADD, "person", {"name": "next"})
    assert names(again) == ["next"]


@pytest.mark.slow
def test_commits_of_a_group_outlive_compaction_cleanup_and_their_branch(graph: og.Graph) -> None:
    graph.create_branch("side")
    members = [("pair", {"a": f"a{n}", "b": f"b{n}"}) for n in range(4)]
    results = run_together(graph, calls_of(graph, members, branch="side"), "side")
    graph.merge("side", "main")
    graph.optimize()

    def counts() -> list[int]:
        return [len(graph.scan("Person", commit=each.commit_id).to_arrow()) for each in results]

    assert counts() == [2, 4, 6, 8]
    graph.delete_branch("side")
    assert counts() == [2, 4, 6, 8]
    on_main = run_together(
        graph, calls_of(graph, [("person", {"name": f"m{n}"}) for n in range(4)])
    )
    graph.mutate(ADD, "person", {"name": "last"})
    graph.cleanup(keep=3, confirm=True)
    kept = [len(reopen(graph).scan("Person", commit=c.commit_id).to_arrow()) for c in on_main[2:]]
    assert kept == [11, 12]
    assert graph.verify().errors == ()


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.COMMIT_AFTER_STAGE,
        Failpoint.GROUP_AFTER_MEMBER,
        Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER,
        Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    ],
)
def test_an_interrupted_leader_leaves_each_member_whole_and_blocks_none(
    graph: og.Graph, point: Failpoint
) -> None:
    is_first = iter([True])

    def interrupt() -> None:
        if next(is_first, False):
            raise KeyboardInterrupt

    members = [("pair", {"a": f"a{n}", "b": f"b{n}"}) for n in range(3)]

    with arm_failpoints({point: interrupt}):
        leader, *others = run_together(graph, calls_of(graph, members))

    assert isinstance(leader, KeyboardInterrupt)
    if point is Failpoint.COMMIT_AFTER_STAGE:  # nothing had begun: the others go on alone
        assert [each.affected_nodes for each in others] == [2, 2]
    else:
        assert [type(each) for each in others] == [RecoveryRequired] * 2
    graph.mutate(ADD, "person", {"name": "next"})
    found = set(names(graph)) - {"next"}
    assert found in (set(), {"a1", "b1", "a2", "b2"}, {f"{x}{n}" for x in "ab" for n in range(3)})
    assert found or point is not Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT
    assert sidecars(graph) == []
    assert heads(graph) == pins(graph)
    assert graph.verify().errors == ()


def test_a_caller_that_is_interrupted_while_it_waits_leaves_nothing(graph: og.Graph) -> None:
    queue, outcomes = inside(graph).groups.queue, list[Any]()

    def lead_on() -> None:
        with queue.hold("main"):
            is_held.set()
            other.start()
            while queue.count_waiting("main") < 2:
                time.sleep(0.001)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            while queue.count_waiting("main") > 1:
                time.sleep(0.001)

    is_held = threading.Event()
    holder = threading.Thread(target=lead_on)
    insert = partial(graph.mutate, ADD, "person")
    other = threading.Thread(target=lambda: outcomes.append(insert({"name": "other"})))
    holder.start()
    is_held.wait()
    with pytest.raises(KeyboardInterrupt):
        insert({"name": "interrupted"})
    holder.join()
    other.join()

    assert names(graph) == ["other"]
    assert outcomes[0].affected_nodes == 1
    assert insert({"name": "next"}).affected_nodes == 1


@pytest.mark.parametrize("keep", [1, 2])
def test_an_inner_commit_whose_versions_a_cleanup_removed_is_said_to_be_gone(
    graph: og.Graph, keep: int
) -> None:
    """The manifest of the group stays for its last commits, and still names the others."""
    members = [("pair", {"a": f"a{n}", "b": f"b{n}"}) for n in range(4)]
    results = run_together(graph, calls_of(graph, members))

    graph.cleanup(keep=keep, confirm=True)

    for handle in (graph, reopen(graph)):
        for each in results[:-keep]:
            with pytest.raises(CommitStateGone, match=each.commit_id):
                handle.scan("Person", commit=each.commit_id)
            with pytest.raises(CommitStateGone, match=each.commit_id):
                handle.diff(each.commit_id, results[-1].commit_id)
        kept = [len(handle.scan("Person", commit=c.commit_id).to_arrow()) for c in results[-keep:]]
        assert kept == [6, 8][-keep:]
    assert graph.verify().errors == ()
    assert graph.cleanup(keep=keep, confirm=True).tables


@pytest.mark.slow
def test_threads_lose_nothing_and_every_commit_adds_one(graph: og.Graph) -> None:
    count, together = 24, threading.Barrier(8)
    results: list[og.MutationResult] = []

    def work(thread: int) -> None:
        together.wait()
        keys = [f"p{thread}-{number}" for number in range(count // 8)]
        results.extend(graph.mutate(ADD, "person", {"name": key}) for key in keys)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(names(graph)) == count
    assert len({each.commit_id for each in results}) == count
    line = graph.commits()
    sizes = [len(graph.scan("Person", commit=each.commit_id).to_arrow()) for each in line]
    assert sizes == list(range(count, -1, -1))
    assert inside(graph).groups.queue.count_waiting("main") == 0
