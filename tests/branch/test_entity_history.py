"""What commits did to one entity: at what cost, and where the history is not whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lance import LanceDataset

import omnigraph as og
from omnigraph.branch.entity_history import REMOVED, Blame
from omnigraph.errors import BadRequestError, EntityNotFound
from omnigraph.storage import row_addresses, row_search
from omnigraph.storage.counters import counting
from tests.branch.people import change, merged, new_people


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "g.omni")


def told(graph: og.Graph, type_name: str, entity_id: str, branch: str = "main") -> list[str]:
    """Operation, branch and actor of each change."""
    return [
        " ".join(filter(None, [each.op, each.commit.branch, each.commit.actor]))
        for each in graph.history(type_name, entity_id, branch=branch)
        if each.commit is not None
    ]


@pytest.mark.slow
def test_a_history_costs_what_happened_to_the_entity(tmp_path: Path) -> None:
    """Not the number of commits: each change is one version, and the manifest is read once."""
    graph = og.init(
        tmp_path / "g.omni",
        schema="node N { k: String @key n: I32? }",
        self_care=False,
        durability="process",
    )
    graph.load([{"type": "N", "data": {"k": f"k{i}", "n": 0}} for i in range(50)], mode="append")
    graph.mutate('query q() { delete N where k = "k9" }')
    for number in range(30):
        key = "k7" if number in (3, 17) else f"k{number + 20}"
        graph.mutate(f'query q() {{ update N set {{ n: {number} }} where k = "{key}" }}')

    with counting() as counters:
        blamed = graph.blame("N", "k7")

    assert blamed["n"].value == 17
    # Two look-ups of the row now, one of the row before its last change, and where the insert was.
    assert counters.opens <= 12
    assert counters.control_reads <= 2
    with counting() as counters:
        found = graph.history("N", "k7")
    assert [each.after["n"] for each in found if each.after] == [17, 3, 0]
    assert counters.control_reads <= 2
    assert counters.scans <= 4
    with counting() as counters:
        assert [each.op for each in graph.history("N", "k9")] == ["delete", "insert"]
    # The ids of each data file are read once, however many versions show it.
    assert counters.rows_scanned <= 50 + 30


@pytest.mark.slow
def test_a_history_costs_the_same_whatever_the_size_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No id of the table is read but those that were asked for, and no row ids are expanded."""
    monkeypatch.setattr(row_search, "ROWS_PER_LOOKUP", 100)
    monkeypatch.setattr(row_addresses, "LOOKUP_TABLE_ROWS_MIN", 0)
    monkeypatch.delattr(LanceDataset, "_take_rows")
    costs = []
    for size in (1_000, 10_000):
        graph = og.init(
            tmp_path / str(size), schema="node N { k: String @key n: I32? }", durability="process"
        )
        rows = [{"type": "N", "data": {"k": f"k{n}", "n": n}} for n in range(size)]
        graph.load(rows, mode="append")
        graph.optimize()
        for text in ('insert N { k: "new", n: 1 }', 'update N set { n: 0 } where k = "k7"'):
            graph.mutate(f"query q() {{ {text} }}")
        graph.mutate('query q() { delete N where k = "k8" }')
        with counting() as counters:
            told = [[each.op for each in graph.history("N", key)] for key in ("new", "k7", "k8")]
            blamed = [graph.blame("N", key)["n"].value for key in ("new", "k7", "k9")]

        assert told == [["insert"], ["update", "insert"], ["delete", "insert"]]
        assert blamed == [1, 0, 9]
        costs.append(counters)

    assert costs[0] == costs[1]
    assert costs[0].rows_scanned < 50


def test_commits_that_were_published_together_are_told_apart(tmp_path: Path) -> None:
    """Inserts that waited for each other are one publish with a commit each."""
    graph = new_people(tmp_path / "g.omni")

    def insert(number: int) -> str:
        text = f'query q() {{ insert Person {{ name: "p{number}", age: {number} }} }}'
        commit_id = graph.mutate(text, actor=f"actor-{number}").commit_id
        assert commit_id is not None
        return commit_id

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(insert, range(12)))

    versions = {graph.commit(each).manifest_version for each in made}
    assert len(versions) < len(made), "no two commits were published together"
    for number, commit_id in enumerate(made):
        blamed = graph.blame("Person", f"p{number}")
        assert {each.commit_id for each in blamed.values()} == {commit_id}
        assert blamed["age"].actor == f"actor-{number}"


def test_a_renamed_type_and_property_keep_their_history(graph: og.Graph) -> None:
    change(graph, "age", name="bob", age=26)
    inserted, aged = [each.commit_id for each in graph.commits()][1::-1]
    renamed = graph.schema.replace("node Person {", 'node Human @rename_from("Person") {')
    renamed = renamed.replace("age: I32?", 'years: I32? @rename_from("age")')
    renamed = renamed.replace("@range(age,", "@range(years,").replace("Person ->", "Human ->")
    graph.apply_schema(renamed.replace("-> Person", "-> Human"))

    blamed = graph.blame("Human", "bob")
    before, first = graph.history("Human", "bob")

    assert blamed["years"].value == 26
    assert blamed["years"].commit_id == aged
    assert blamed["name"].commit_id == inserted
    assert (before.type_name, before.before, first.op) == ("Person", first.after, "insert")
    with pytest.raises(BadRequestError, match="unknown type 'Person'"):
        graph.history("Person", "bob")


def test_a_type_that_was_dropped_and_added_again_has_no_past(graph: og.Graph) -> None:
    """Another identity under the same name: what the first one had is not its history."""
    without = graph.schema.replace("node Firm { code: String @key }", "")
    without = without.replace("edge WorksAt: Person -> Firm @card(0..1)", "")
    full = graph.schema
    graph.apply_schema(without, allow_data_loss=True)
    graph.apply_schema(full)

    with pytest.raises(EntityNotFound, match="node:Firm 'f1' was never on branch 'main'"):
        graph.history("Firm", "f1")

    change(graph, "firm", code="f1")
    assert told(graph, "Firm", "f1") == ["insert main"]


def test_an_edge_has_a_history_with_its_ends(graph: og.Graph) -> None:
    [edge] = graph.edges("Knows").to_arrow().to_pylist()
    change(graph, "apart", a="bob")

    gone, made = graph.history("Knows", edge["id"])

    assert (gone.op, gone.endpoints) == ("delete", ("bob", "carol"))
    assert (made.op, made.endpoints) == ("insert", ("bob", "carol"))
    with pytest.raises(EntityNotFound, match="deleted it") as caught:
        graph.blame("edge:Knows", edge["id"])
    assert gone.commit is not None
    assert caught.value.deleted_by == gone.commit.commit_id


def test_a_merge_that_decided_is_blamed_itself_only_for_what_it_decided(graph: og.Graph) -> None:
    graph.create_branch("dev")
    graph.mutate('query q() { update Person set { age: 1 } where name = "bob" }', actor="ours")
    graph.mutate(
        'query q() { update Person set { age: 2 } where name = "bob" }', branch="dev", actor="dev"
    )
    theirs = graph.commits("dev")[0].commit_id
    made = merged(graph, "dev", resolve="theirs", actor="judge", delete_branch=True)

    age = graph.blame("Person", "bob")["age"]

    assert (age.value, age.commit_id, age.actor) == (2, theirs, "dev")
    assert age.through == made.commit_id
    assert told(graph, "Person", "bob")[:2] == ["update dev dev", "update main ours"]


def test_changes_that_came_over_two_merges_are_told_once(graph: og.Graph) -> None:
    """A branch of a branch, merged twice on the way: `through` is the merge into the asked one."""
    graph.create_branch("dev")
    graph.create_branch("part", from_="dev")
    for age in (1, 2):
        change(graph, "age", branch="part", name="bob", age=age)
        merged(graph, "part", "dev")
    change(graph, "age", name="bob", age=3)
    merged(graph, "main", "dev", resolve="theirs")
    change(graph, "age", branch="dev", name="bob", age=4)
    made = merged(graph, "dev")

    history = graph.history("Person", "bob")

    part = ["update part", "update part"]
    assert told(graph, "Person", "bob") == ["update dev", *part, "update main", "insert main"]
    assert [each.through for each in history] == [made.commit_id] * 3 + [None, None]
    assert graph.blame("Person", "bob")["age"].through == made.commit_id


def test_what_a_cleanup_removed_is_said_and_not_guessed(graph: og.Graph) -> None:
    change(graph, "age", name="bob", age=26)
    change(graph, "gone", name="dan")
    graph.cleanup(keep=1, confirm=True)

    history = graph.history("Person", "bob")
    blamed = graph.blame("Person", "bob")

    assert history == []
    assert history.notes == (REMOVED,)
    assert blamed["age"] == Blame(26)
    with pytest.raises(
        EntityNotFound, match="nor in its stored history: older history was removed"
    ):
        graph.history("Person", "dan")
    change(graph, "age", name="bob", age=27)
    assert told(graph, "Person", "bob") == ["update main"]
    assert graph.blame("Person", "bob")["age"].commit_id == graph.commits()[0].commit_id


def test_a_merge_stands_for_a_branch_whose_states_are_gone(graph: og.Graph) -> None:
    graph.create_branch("dev")
    change(graph, "age", branch="dev", name="bob", age=26)
    made = merged(graph, "dev", delete_branch=True, actor="merger")
    change(graph, "age", name="carol", age=41)
    graph.cleanup(keep=3, confirm=True)

    [change_of_bob, *_] = history = graph.history("Person", "bob")
    age = graph.blame("Person", "bob")["age"]

    assert change_of_bob.commit is not None
    assert change_of_bob.commit.commit_id == made.commit_id
    assert any("what branch 'dev' did before merge" in each for each in history.notes)
    assert (age.commit_id, age.actor, age.through) == (made.commit_id, "merger", made.commit_id)


@pytest.mark.parametrize("entity_id", ["", "nope", "bo", "bob'", "\0"])
def test_what_was_never_there_is_not_found(graph: og.Graph, entity_id: str) -> None:
    for ask in (graph.history, graph.blame):
        with pytest.raises(EntityNotFound, match="was never on branch 'main'"):
            ask("Person", entity_id)


def test_blame_tells_what_lost_in_a_conflict_and_how_it_was_resolved(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "g.omni")
    graph.create_branch("review")
    set_age = 'query q($age: I32) { update Person set { age: $age } where name = "alice" }'
    on_main = graph.mutate(set_age, params={"age": 31}, actor="ada").commit_id
    on_review = graph.mutate(set_age, params={"age": 32}, branch="review", actor="bo").commit_id
    change(graph, "email", "review", name="alice", email="a@b.c")
    graph.merge("review", resolve="theirs")
    merge = graph.commits(limit=1)[0].commit_id

    age = graph.blame("Person", "alice")["age"]
    assert (age.value, age.commit_id, age.through) == (32, on_review, merge)
    [lost] = age.lost
    assert (lost.value, lost.commit_id, lost.actor, lost.branch) == (31, on_main, "ada", "main")
    assert (lost.merge_id, lost.kept, lost.is_deletion) == (merge, "theirs", False)
    blamed = graph.blame("Person", "alice")
    assert blamed["name"].lost == ()
    assert blamed["email"].value == "a@b.c"
    assert blamed["email"].lost == (), "main had left it as it was before"

    # The other way round: the merge left the row as it was, and still says what it refused.
    change(graph, "age", "review", name="bob", age=1)
    change(graph, "age", "main", name="bob", age=2)
    graph.merge("review", resolve="ours")
    [lost] = graph.blame("Person", "bob")["age"].lost
    assert (lost.value, lost.kept, lost.branch) == (1, "ours", "review")

    # A deletion can lose as well; a later edit leaves nothing to tell.
    change(graph, "gone", "review", name="carol")
    change(graph, "age", "main", name="carol", age=3)
    graph.merge("review", resolve="ours")
    [lost] = graph.blame("Person", "carol")["age"].lost
    assert (lost.value, lost.is_deletion, lost.branch) == (None, True, "review")
    graph.delete_branch("review")
    assert graph.blame("Person", "carol")["age"].lost == (lost,), "the branch may be gone"
    change(graph, "age", "main", name="carol", age=4)
    assert graph.blame("Person", "carol")["age"].lost == ()
