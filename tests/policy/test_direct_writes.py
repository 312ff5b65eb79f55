"""A graph opened with a policy asks it before every write, and writes nothing that is denied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import PolicyError
from omnigraph.policy import Policy, load_policy
from tests.graph.reading import ADD, SCHEMA, names, new_graph
from tests.policy.bundles import bundle_of, rule, team
from tests.policy.test_every_write_asks import WRITES

RECORD = '{"type": "Person", "data": {"name": "ann"}}\n'
BOB = "act-bob"  # may change and make unprotected branches
ADA = "act-ada"  # may merge into main and change its schema as well


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path / "graph", policy=team())


def head(graph: og.Graph, branch: str = "main") -> str | None:
    return graph.snapshot(branch).head.commit_id


def add_person(graph: og.Graph, name: str, *, branch: str, actor: str | None) -> None:
    graph.mutate(ADD, "person", {"name": name}, branch=branch, actor=actor)


def test_a_writer_of_unprotected_branches_is_denied_on_main_and_let_through_on_a_branch(
    graph: og.Graph,
) -> None:
    before = head(graph)

    with pytest.raises(PolicyError) as denial:
        add_person(graph, "ann", branch="main", actor=BOB)
    graph.create_branch("work", actor=BOB)
    add_person(graph, "ann", branch="work", actor=BOB)

    assert str(denial.value) == "policy denied action 'change' on branch 'main' for actor 'act-bob'"
    assert head(graph) == before
    assert graph.commits("work")[0].actor == BOB


def test_the_policy_is_checked_for_the_actor_of_the_handle(tmp_path: Path) -> None:
    new_graph(tmp_path / "graph").create_branch("work")
    graph = og.open(tmp_path / "graph", actor=BOB, policy=team(), durability="process")

    add_person(graph, "ann", branch="work", actor=None)
    with pytest.raises(PolicyError, match="unknown actor 'eve'"):
        add_person(graph, "bob", branch="work", actor="eve")

    assert names(graph, "work") == ["ann"]


def test_without_an_actor_everything_is_denied(graph: og.Graph) -> None:
    for write in (
        lambda: graph.mutate(ADD, "person", {"name": "ann"}),
        lambda: graph.load(RECORD, mode="merge"),
        lambda: graph.create_branch("work"),
        lambda: graph.apply_schema(SCHEMA),
    ):
        with pytest.raises(PolicyError, match="no actor is given, say who acts"):
            write()

    assert graph.branches() == ["main"]


def test_without_a_policy_every_write_is_allowed(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")

    add_person(graph, "ann", branch="main", actor=None)
    graph.create_branch("work")
    graph.delete_branch("work", actor="anybody")

    assert graph.branches() == ["main"]


def test_a_branch_name_with_spaces_does_not_bypass_main_protection(graph: og.Graph) -> None:
    with pytest.raises(PolicyError, match="on branch 'main'"):
        add_person(graph, "ann", branch=" main ", actor=BOB)


def test_a_merge_needs_its_target_and_deleting_the_branch_needs_more(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", policy=team())
    graph.create_branch("work", actor=BOB)
    add_person(graph, "ann", branch="work", actor=BOB)

    with pytest.raises(
        PolicyError, match="'branch_merge' on branch 'work' targeting branch 'main'"
    ):
        graph.merge("work", actor=BOB)
    graph.merge("work", actor=ADA, delete_branch=True)

    assert graph.branches() == ["main"]
    assert names(graph) == ["ann"]


def only(*allows: str) -> Policy:
    """A policy that lets `act-ada` do just these things."""
    rules = "".join(rule(fields, f"r{n}") for n, fields in enumerate(allows))
    text = bundle_of(rules, groups=f"{{ g: [{ADA}] }}", rest="protected_branches: [main]\n")
    return load_policy(text, name="only", resource="x")


def test_a_merge_that_may_not_delete_its_branch_does_not_begin(tmp_path: Path) -> None:
    new_graph(tmp_path / "graph").create_branch("work")
    policy = only("actions: [branch_merge, change]")
    graph = og.open(tmp_path / "graph", actor=ADA, policy=policy, durability="process")
    add_person(graph, "ann", branch="work", actor=None)
    before = head(graph)

    with pytest.raises(PolicyError, match="'branch_delete' targeting branch 'work'"):
        graph.merge("work", delete_branch=True)

    assert head(graph) == before
    assert "work" in graph.branches()


def test_a_preview_of_a_merge_is_a_read(graph: og.Graph) -> None:
    graph.create_branch("work", actor=BOB)

    assert graph.merge("work", preview=True).outcome == "already_up_to_date"


def test_a_load_that_makes_its_branch_needs_both(tmp_path: Path) -> None:
    new_graph(tmp_path / "graph")
    graph = og.open(
        tmp_path / "graph", actor=ADA, policy=only("actions: [change]"), durability="process"
    )

    with pytest.raises(PolicyError, match="'branch_create' on branch 'main' targeting branch 'w"):
        graph.ingest(RECORD, branch="work")
    assert graph.branches() == ["main"]

    allowed = only(
        "actions: [change]", "actions: [branch_create], target_branch_scope: unprotected"
    )
    graph = og.open(tmp_path / "graph", actor=ADA, policy=allowed, durability="process")
    assert graph.ingest(RECORD, branch="work").branch_created
    assert names(graph, "work") == ["ann"]


def test_a_load_into_an_existing_branch_needs_no_permission_to_create_it(tmp_path: Path) -> None:
    new_graph(tmp_path / "graph").create_branch("work")
    policy = only("actions: [change], branch_scope: unprotected")
    graph = og.open(tmp_path / "graph", actor=ADA, policy=policy, durability="process")

    assert not graph.ingest(RECORD, branch="work").branch_created


def test_a_branch_deleted_during_a_load_is_not_recreated_without_permission(tmp_path: Path) -> None:
    other = new_graph(tmp_path / "graph")
    other.create_branch("work")
    policy = only("actions: [change]")
    graph = og.open(tmp_path / "graph", actor=ADA, policy=policy, durability="process")

    def records() -> Iterator[dict[str, object]]:
        other.delete_branch("work")
        yield {"type": "Person", "data": {"name": "ann"}}

    with pytest.raises(PolicyError, match="'branch_create'"):
        graph.load(records(), mode="merge", branch="work", base="main")

    assert graph.branches() == ["main"]


def test_frames_and_schemas_are_writes_like_any_other(graph: og.Graph) -> None:
    next_schema = f"{SCHEMA}\nnode Place {{ name: String @key }}\n"

    with pytest.raises(PolicyError, match="'change' on branch 'main'"):
        graph.load_dataframe(FRAME, type="Person", mode="merge", actor=BOB)
    with pytest.raises(PolicyError, match="'change' on branch 'main'"):
        graph.load_dataframes({"Person": FRAME}, mode="merge", actor=BOB)
    with pytest.raises(PolicyError, match="'schema_apply' targeting branch 'main'"):
        graph.apply_schema(next_schema, actor=BOB)
    assert graph.apply_schema(next_schema, actor=ADA).applied


def test_permission_to_delete_branches_does_not_include_protected_ones(graph: og.Graph) -> None:
    graph.create_branch("work", actor=BOB)

    with pytest.raises(PolicyError, match="'branch_delete' targeting branch 'main'"):
        graph.delete_branch("main", actor=BOB)
    graph.delete_branch("work", actor=BOB)

    assert graph.branches() == ["main"]


FRAME = pa.table({"name": ["ann"]})
ABSENT = Path("/absent/file")
DENIED: dict[str, Callable[[og.Graph], object]] = {
    "algorithm": lambda graph: graph.algorithm(
        "degrees", node="Person", edge="Knows", write_to="age", actor="eve"
    ),
    "apply_schema": lambda graph: graph.apply_schema("", actor="eve"),
    "cleanup": lambda graph: graph.cleanup(keep=1, actor="eve"),
    "create_branch": lambda graph: graph.create_branch("work", actor="eve"),
    "delete_branch": lambda graph: graph.delete_branch("work", actor="eve"),
    "reset_branch": lambda graph: graph.reset_branch("work", "work~1", actor="eve"),
    "cherry_pick": lambda graph: graph.cherry_pick("main~1", into="main", actor="eve"),
    "restore": lambda graph: graph.restore("main~1", actor="eve"),
    "revert": lambda graph: graph.revert("main", actor="eve"),
    "revert_session": lambda graph: graph.revert_session(actor="ann", by="eve"),
    "apply_checks": lambda graph: graph.apply_checks([], actor="eve"),
    "delete_tag": lambda graph: graph.delete_tag("v1", actor="eve"),
    "embed": lambda graph: graph.embed(actor="eve"),
    "ensure_indices": lambda graph: graph.ensure_indices(actor="eve"),
    "fetch": lambda graph: graph.fetch(ABSENT, actor="eve"),
    "add_remote": lambda graph: graph.add_remote("far", ABSENT, actor="eve"),
    "remove_remote": lambda graph: graph.remove_remote("far", actor="eve"),
    "pull": lambda graph: graph.pull(ABSENT, actor="eve"),
    "ingest": lambda graph: graph.ingest(ABSENT, branch="work", actor="eve"),
    "load": lambda graph: graph.load(ABSENT, mode="merge", actor="eve"),
    "load_dataframe": lambda graph: graph.load_dataframe(
        FRAME, type="Person", mode="merge", actor="eve"
    ),
    "load_dataframes": lambda graph: graph.load_dataframes(
        {"Person": FRAME}, mode="merge", actor="eve"
    ),
    "merge": lambda graph: graph.merge("work", actor="eve"),
    "mutate": lambda graph: graph.mutate(ABSENT, actor="eve"),
    "approve_merge_request": lambda graph: graph.approve_merge_request(1, actor="eve"),
    "close_merge_request": lambda graph: graph.close_merge_request(1, actor="eve"),
    "comment_on_merge_request": lambda graph: graph.comment_on_merge_request(1, "x", actor="eve"),
    "complete_merge_request": lambda graph: graph.complete_merge_request(1, actor="eve"),
    "edit_merge_request": lambda graph: graph.edit_merge_request(1, title="x", actor="eve"),
    "open_merge_request": lambda graph: graph.open_merge_request("x", title="x", actor="eve"),
    "reopen_merge_request": lambda graph: graph.reopen_merge_request(1, actor="eve"),
    "request_changes": lambda graph: graph.request_changes(1, actor="eve"),
    "withdraw_approval": lambda graph: graph.withdraw_approval(1, actor="eve"),
    "optimize": lambda graph: graph.optimize(actor="eve"),
    "repair": lambda graph: graph.repair(actor="eve"),
    "tag": lambda graph: graph.tag("v1", actor="eve"),
    "verify": lambda graph: graph.verify(record=True, actor="eve"),
    "write_blob": lambda graph: graph.write_blob("node", "Person", "x", "y", ABSENT, actor="eve"),
}


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_denied_write_does_not_touch_the_store(
    graph: og.Graph, tmp_path: Path, name: str
) -> None:
    """With the store gone, a call that looked at it first would complain about that."""
    shutil.rmtree(tmp_path / "graph")

    with pytest.raises(PolicyError, match="for unknown actor 'eve'"):
        DENIED[name](graph)

    assert not (tmp_path / "graph").exists()
