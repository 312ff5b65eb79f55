"""A branch goes back to an earlier commit: later ones are dropped, and nothing else changes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    BranchInUse,
    ChangeCursorRejected,
    CommitNotFound,
    ConflictError,
    PreconditionFailed,
)
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.manifest import Publish, publish
from omnigraph.testing.inside import inside
from omnigraph.write.intent import mint_commit
from tests.branch.people import SCHEMA, change, new_people, state_of
from tests.manifest.test_line_states import compare

pytestmark = pytest.mark.slow

TAGGED = SCHEMA.replace("age: I32?", "age: I32?\n    nick: String?")
WITHOUT_FIRMS = SCHEMA.replace("node Firm { code: String @key }", "").replace(
    "edge WorksAt: Person -> Firm @card(0..1)", ""
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A branch `b` whose commits made alice 31, 32 and 33; the last one added a firm as well."""
    graph = new_people(tmp_path / "graph")
    graph.create_branch("b")
    for age in (31, 32, 33):
        change(graph, "age", "b", name="alice", age=age)
    change(graph, "firm", "b", code="f3")
    return graph


def reopen(graph: og.Graph) -> og.Graph:
    return og.open(graph.uri, durability="process", self_care=False)


def alice(graph: og.Graph, branch: str = "b") -> int:
    found: int = state_of(graph, branch)["node:Person"]["alice"]["age"]
    return found


def ids(graph: og.Graph, branch: str = "b") -> list[str]:
    return [each.commit_id for each in graph.commits(branch)]


def commits_of(graph: og.Graph, type_: str, id_: str) -> list[str]:
    """The commits of `b` that changed an entity, newest first."""
    found = graph.history(type_, id_, branch="b")
    return [each.commit.commit_id for each in found if each.commit is not None]


def test_a_branch_goes_back_and_on_from_there(graph: og.Graph) -> None:
    other, line = reopen(graph), ids(graph)
    assert alice(other) == 33
    version = graph.snapshot("b").manifest_version
    previewed = graph.reset_branch("b", "b~3", preview=True)
    assert ids(graph) == line

    done = graph.reset_branch("b", "b~3")

    assert (done.commit_id, done.head_before, done.commits_dropped) == (line[3], line[0], 3)
    assert (done.dropped, done.is_preview) == (tuple(line[:3]), False)
    assert (previewed.dropped, previewed.is_preview) == (done.dropped, True)
    for each in (other, graph):
        with pytest.raises(CommitNotFound):
            each.commit(line[0])
        assert (alice(each), ids(each)) == (31, line[3:])
        # Versions of the manifest say what they said, however often they are asked.
        past = [inside(each).coordinator.at_version("b", version - at) for at in (0, 1, 2, 3) * 2]
        assert [state.head.commit_id for state in past] == line[:4] * 2
        assert state_of(each, "main") == state_of(each, "b~1")
    change(other, "age", "b", name="bob", age=26)
    assert alice(graph) == 31
    assert [each.id for each in graph.diff("main", "b")] == ["alice", "bob"]
    assert [each.commit_id for each in graph.log("b")][1:] == line[3:]
    assert graph.merge("b").commit_id is not None
    assert (alice(graph, "main"), graph.verify().errors) == (31, ())


def test_nothing_after_the_commit_is_nothing_to_drop(graph: og.Graph) -> None:
    version = graph.snapshot("b").manifest_version

    assert graph.reset_branch("b", "b").commits_dropped == 0
    assert graph.snapshot("b").manifest_version == version


def test_a_branch_goes_back_to_where_it_came_from_and_further(graph: og.Graph) -> None:
    assert graph.reset_branch("b", "main").commits_dropped == 4
    assert state_of(graph, "b") == state_of(graph, "main")
    change(graph, "age", "b", name="alice", age=50)
    assert alice(graph) == 50

    graph.reset_branch("b", "main~1")

    assert not any(state_of(graph, "b").values())
    change(graph, "person", "b", name="zoe", age=1)
    graph.cleanup(keep=1, confirm=True)
    assert list(state_of(graph, "b")["node:Person"]) == ["zoe"]
    assert (alice(graph, "main"), graph.verify().errors) == (30, ())


def test_a_reset_is_refused_with_what_to_do_instead(graph: og.Graph) -> None:
    with pytest.raises(BadRequestError, match=r"'main' cannot be reset.*`revert`.*`restore`"):
        graph.reset_branch("main", "main~1")
    change(graph, "age", name="dan", age=51)
    with pytest.raises(BadRequestError, match=r"not on the line of branch 'b'.*delete the branch"):
        graph.reset_branch("b", "main")
    with pytest.raises(PreconditionFailed):
        graph.reset_branch("b", "b~1", if_commit=ids(graph)[1])

    assert alice(graph) == 33


@pytest.mark.parametrize("use", ["branch", "merge", "both"])
def test_a_commit_that_another_branch_comes_from_is_not_dropped(graph: og.Graph, use: str) -> None:
    """Whether it has commits of its own or not."""
    users = {"branch": ("kid",), "merge": ("main",), "both": ("main", "kid")}[use]
    if "kid" in users:
        graph.create_branch("kid", from_="b~1")
    if "main" in users:
        graph.merge("b")
    before = state_of(graph, "b")

    with pytest.raises(BranchInUse, match=f"'{users[0]}'") as refused:
        graph.reset_branch("b", "b~2")

    assert (refused.value.branch, refused.value.others) == ("b", users)
    assert state_of(graph, "b") == before
    if use == "branch":
        graph.reset_branch("b", "b~1")
        assert state_of(graph, "kid") == state_of(graph, "b")


def test_a_tag_on_a_dropped_commit_still_reads(graph: og.Graph) -> None:
    graph.tag("late", "b")
    shown = state_of(graph, "b")

    graph.reset_branch("b", "main")
    change(graph, "age", "b", name="alice", age=99)
    graph.cleanup(keep=1, confirm=True)

    rows = graph.query("query q() { match { $p: Person } return { $p.age } }", branch="tag:late")
    assert 33 in [row["p.age"] for row in rows.rows()]
    graph.create_branch("again", from_="tag:late")
    assert state_of(graph, "again") == shown
    assert [each.id for each in graph.diff("tag:late", "b")] == ["f3", "alice"]
    assert graph.verify().errors == ()


def test_history_blame_and_the_log_tell_of_what_is_left(graph: og.Graph) -> None:
    line = ids(graph)
    graph.reset_branch("b", "b~2")
    change(graph, "age", "b", name="alice", age=60)
    head = ids(graph)[0]

    told = commits_of(graph, "Person", "alice")
    assert told == [head, *line[2:4], line[4]]
    assert graph.blame("Person", "alice", branch="b")["age"].commit_id == head
    assert graph.blame("Person", "bob", branch="b")["age"].commit_id == line[4]
    assert ids(graph) == [head, *line[2:]]
    compare(graph)


def test_a_cursor_of_a_dropped_commit_is_rejected_and_others_go_on(graph: og.Graph) -> None:
    line = ids(graph)
    late = graph.poll_changes("b", start="now").cursor
    early = graph.poll_changes("b", start=f"after:{line[3]}").cursor
    kept = graph.poll_changes("b", start=f"after:{line[4]}", limit=1)
    graph.reset_branch("b", "b~3")
    change(graph, "age", "b", name="alice", age=60)

    for cursor in filter(None, (late, early)):
        with pytest.raises(ChangeCursorRejected, match="not on the line of branch"):
            graph.poll_changes("b", cursor=cursor)
    page = graph.poll_changes("b", start=f"after:{line[4]}")
    assert [each.changes[0]["after"]["properties"]["age"] for each in page.blocks] == [31, 60]
    assert kept.blocks[0].changes[0]["after"]["properties"]["age"] == 31


@pytest.mark.parametrize("back", ["b~3", "main"])
def test_a_writer_that_has_seen_what_was_dropped_is_not_let_through(
    graph: og.Graph, back: str
) -> None:
    """Numbers of versions may repeat after a reset; a handle that knows them is refused."""
    other = reopen(graph)
    assert alice(other) == 33
    graph.reset_branch("b", back)
    for age in (41, 42, 43):
        change(graph, "age", "b", name="alice", age=age)

    with pytest.raises(ConflictError):
        change(other, "age", "b", name="bob", age=70)

    other.refresh()
    change(other, "age", "b", name="bob", age=70)
    assert (alice(graph), state_of(graph, "b")["node:Person"]["bob"]["age"]) == (43, 70)


def test_a_writer_and_a_reset_take_turns(graph: og.Graph) -> None:
    """The write comes before and is dropped, or after and stays: never in between."""
    other, line = reopen(graph), ids(graph)
    outcomes: list[object] = []

    def write() -> None:
        try:
            outcomes.append(other.mutate('query q() { insert Person { name: "eve" } }', branch="b"))
        except ConflictError as error:
            outcomes.append(error)

    writer = threading.Thread(target=write)

    def begin() -> None:
        writer.start()
        writer.join(timeout=0.3)

    with arm_failpoints({Failpoint.BRANCH_RESET_BEFORE_PUBLISH: begin}):
        done = graph.reset_branch("b", line[3])
    writer.join()

    assert done.dropped == tuple(line[:3])
    rows = state_of(graph, "b")["node:Person"]
    assert rows["alice"]["age"] == 31
    assert ("eve" in rows) == (not isinstance(outcomes[0], ConflictError))
    assert graph.verify().errors == ()


# Schemas


def test_a_branch_goes_back_into_an_earlier_schema(graph: og.Graph) -> None:
    graph.apply_schema(TAGGED + "node City { name: String @key }\n", branch="b")
    graph.mutate('query q() { insert City { name: "rome" } }', branch="b")
    before = graph.branch_schema("main")

    graph.reset_branch("b", "b~3")

    assert graph.branch_schema("b") == before
    assert (alice(graph), "node:City" in state_of(graph, "b")) == (33, False)
    graph.apply_schema(TAGGED, branch="b")
    graph.mutate('query q() { update Person set { nick: "al" } where name = "alice" }', branch="b")
    assert state_of(graph, "b")["node:Person"]["alice"]["nick"] == "al"
    compare(graph)
    assert graph.verify().errors == ()


def test_a_type_that_was_dropped_and_made_anew_is_the_first_one_again(graph: og.Graph) -> None:
    """Its pins had the numbers of the second one; which commits wrote its rows is still known."""
    told = commits_of(graph, "Firm", "f3")
    line, shown = ids(graph), state_of(graph, "b")
    graph.apply_schema(WITHOUT_FIRMS, branch="b")
    graph.apply_schema(SCHEMA, branch="b")
    for number in range(6):
        change(graph, "firm", "b", code=f"new{number}")

    graph.reset_branch("b", line[0])

    assert state_of(graph, "b") == shown
    assert commits_of(graph, "Firm", "f3") == told
    assert graph.blame("Firm", "f3", branch="b")["code"].commit_id == line[0]
    change(graph, "firm", "b", code="f4")
    assert graph.blame("Firm", "f3", branch="b")["code"].commit_id == line[0]
    compare(graph)
    assert graph.verify().errors == ()


# Others that know the branch


def test_an_approval_of_a_dropped_head_is_stale(graph: og.Graph) -> None:
    graph.open_merge_request("b", title="Ages", actor="ada")
    graph.approve_merge_request(1, actor="bob")

    graph.reset_branch("b", "b~1")

    review = graph.merge_request(1).review
    assert review is not None
    assert review.head == ids(graph)[0]
    assert [(each.is_stale, each.counts) for each in review.verdicts] == [(True, False)]
    graph.complete_merge_request(1)
    assert alice(graph, "main") == 33


def test_a_fetch_follows_a_branch_that_was_reset(graph: og.Graph, tmp_path: Path) -> None:
    og.clone(graph.uri, tmp_path / "away", durability="process")
    away = og.open(tmp_path / "away", durability="process", self_care=False)
    away.fetch(graph.uri)
    away.create_branch("mine", from_="origin/b")
    shown = state_of(away, "mine")
    graph.reset_branch("b", "b~2")

    assert away.fetch(graph.uri).renewed == ("origin/b",)
    assert ids(away, "origin/b") == ids(graph)
    assert alice(away, "origin/b") == 32
    change(graph, "age", "b", name="alice", age=70)
    away.fetch(graph.uri)
    assert alice(away, "origin/b") == 70
    away.cleanup(keep=1, confirm=True)
    assert state_of(away, "mine") == shown  # it keeps what it came from, as with git
    away.merge("origin/b", "mine", resolve="theirs")
    assert (alice(away, "mine"), away.verify().errors) == (70, ())


def test_what_a_merge_needs_of_a_fetched_branch_outlives_it(
    graph: og.Graph, tmp_path: Path
) -> None:
    og.clone(graph.uri, tmp_path / "away", durability="process")
    away = og.open(tmp_path / "away", durability="process", self_care=False)
    change(graph, "age", "b", name="alice", age=34)
    away.fetch(graph.uri)
    merged = ids(graph)[0]
    away.merge("origin/b")
    graph.reset_branch("b", "b~3")

    away.fetch(graph.uri)
    away.delete_branch("origin/b")

    assert any("34" in str(row) for row in away.export(commit=merged))
    away.cleanup(keep=1, confirm=True)
    assert (alice(away, "main"), away.verify().errors) == (34, ())


def test_a_process_that_shares_no_locks_loses_no_commit(graph: og.Graph) -> None:
    """As on an object store: whichever publish comes second finds out."""
    other = inside(reopen(graph)).coordinator
    lineage = [mint_commit("ann")]

    def publish_first() -> None:
        if lineage:
            publish(other, Publish("b", (), commits=(lineage.pop(),)))

    point = Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT
    with (
        arm_failpoints({point: publish_first}),
        pytest.raises(ConflictError, match="at the same time — nothing was reset"),
    ):
        graph.reset_branch("b", "b~1")

    assert (graph.commits("b")[0].actor, alice(graph)) == ("ann", 33)


def test_a_pull_brings_dropped_commits_back(graph: og.Graph, tmp_path: Path) -> None:
    """As with git: what another store still has is ahead of a branch that went back."""
    og.clone(graph.uri, tmp_path / "away", durability="process")
    line, shown = ids(graph), state_of(graph, "b")
    graph.reset_branch("b", "b~3")
    graph.push(tmp_path / "away", "b")

    graph.pull(tmp_path / "away", "b")

    assert (ids(graph), state_of(graph, "b")) == (line, shown)
    change(graph, "age", "b", name="alice", age=71)
    compare(graph)
    assert (alice(graph), graph.verify().errors) == (71, ())


def test_a_reset_branch_is_cloned_and_deleted_like_any_other(
    graph: og.Graph, tmp_path: Path
) -> None:
    graph.reset_branch("b", "b~2")
    change(graph, "age", "b", name="bob", age=1)
    og.clone(graph.uri, tmp_path / "away", durability="process")

    with og.open(tmp_path / "away", durability="process") as away:
        assert (ids(away), state_of(away, "b")) == (ids(graph), state_of(graph, "b"))
        assert away.verify().errors == ()
    graph.delete_branch("b")
    graph.create_branch("b")
    change(graph, "age", "b", name="alice", age=5)
    graph.cleanup(keep=1, confirm=True)
    assert (alice(graph), graph.verify().errors) == (5, ())
