"""A conflict that is resolved property by property: the row that comes of it, what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, MergeConflicts
from tests.branch.people import change, merged, new_people, previewed, state_of
from tests.depth import depth
from tests.ready import copy_ready

SCHEMA = """
node Thing {
    key: String @key
    text: String?
    number: F64?
    numbers: [I64]?
    vector: Vector(2)?
    day: Date?
    kind: enum(a, b, c)
    data: Blob?
}
edge Near: Thing -> Thing { @key(src, dst) weight: F64? note: String? }
"""

VALUES: dict[str, list[Any]] = {
    "text": ["", "ä", "long " * 9, None],
    "number": [0.0, -0.0, 1.5, None],
    "numbers": [[], [1, 2], [2, 1], None],
    "vector": [[0.5, 1.0], [1.0, 0.5], [0.0, 0.0], None],
    "day": ["2026-04-14", "1969-01-01", "2000-02-29", None],
    "kind": ["a", "b", "c", "a"],
    "data": ["base64:", "base64:YQ==", "base64:Yg==", None],
}
ROWS = 6

Row = dict[str, Any]


def make_things(path: Path) -> og.Graph:
    return og.init(path, schema=SCHEMA, durability="process")


def new_things(path: Path) -> og.Graph:
    copy_ready("things-to-mix", make_things, path)
    return og.open(path, durability="process")


def load(graph: og.Graph, rows: dict[str, Row], branch: str = "main") -> None:
    graph.load(
        [{"type": "Thing", "data": each} for each in rows.values()], mode="merge", branch=branch
    )


def differ(one: Any, other: Any) -> bool:
    return repr(one) != repr(other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(depth(2, 60)))
def test_a_mixed_row_has_what_was_chosen_and_the_rest_merged_three_ways(
    seed: int, tmp_path: Path
) -> None:
    """Against dicts: every property of every row is drawn for base, ours, theirs and the choice."""
    draw = random.Random(seed)
    graph = new_things(tmp_path / "graph")
    keys = [f"t{each}" for each in range(ROWS)]

    def redraw(row: Row) -> Row:
        return row | {
            name: draw.choice(each) for name, each in VALUES.items() if draw.random() < 0.6
        }

    base = {
        key: redraw({"key": key, **{name: each[0] for name, each in VALUES.items()}})
        for key in keys[1:]
    }
    load(graph, base)
    graph.create_branch("b")
    first = {"key": keys[0], **{name: each[0] for name, each in VALUES.items()}}  # of both sides
    ours = {key: redraw(base.get(key, first)) for key in keys}
    theirs = {key: redraw(base.get(key, first)) for key in keys}
    load(graph, ours)
    load(graph, theirs, "b")

    choices: dict[str, dict[str, Any]] = {}
    expected: dict[str, Row] = {}
    for key in keys:
        old, one, other = base.get(key), ours[key], theirs[key]
        differing = [name for name in VALUES if differ(one[name], other[name])]
        is_contest = old is None or all(
            any(differ(old[name], side[name]) for name in VALUES) for side in (one, other)
        )
        if not differing or not is_contest:
            expected[key] = one if old is not None and differ(old, one) else other
            continue
        picks: dict[str, Any] = {}
        row = dict(one)
        for name in differing:
            alone = old is not None and not differ(old[name], one[name])
            other_alone = old is not None and not differ(old[name], other[name])
            pick = draw.choice(["ours", "theirs", "value", None])
            if pick is None and (alone or other_alone):
                row[name] = other[name] if alone else one[name]
                continue
            match pick:
                case "value":
                    value = draw.choice(VALUES[name])
                    picks[name], row[name] = {"value": value}, value
                case "theirs":
                    picks[name], row[name] = "theirs", other[name]
                case _:
                    picks[name] = "ours"
        choices[key], expected[key] = picks, row
    assert choices, "nothing was contested"

    as_items = [
        {"table_key": "node:Thing", "row_id": key, "take": take} for key, take in choices.items()
    ]
    resolution: Any = as_items if seed % 2 else {"node:Thing": choices}
    seen = {each.id: each.after for each in previewed(graph, "b", resolve=resolution).changes}

    result = merged(graph, "b", resolve=resolution)

    found = state_of(graph)["node:Thing"]
    for key in keys:
        shown = {name: found[key][name] for name in ("key", *VALUES)}
        assert repr(shown) == repr({name: expected[key][name] for name in shown}), key
        assert repr(seen.get(key, found[key])) == repr(found[key]), key
    assert len(graph.commit(str(result.commit_id)).properties["resolved"]) == len(choices)


@pytest.fixture
def things(tmp_path: Path) -> og.Graph:
    """Both sides changed `text`, main alone `number`, the branch alone `day`."""
    graph = new_things(tmp_path / "graph")
    row = {"key": "t", "text": "old", "number": 1.0, "day": "2026-01-01", "kind": "a"}
    load(graph, {"t": row})
    graph.create_branch("b")
    load(graph, {"t": row | {"text": "ours", "number": 2.0}})
    load(graph, {"t": row | {"text": "theirs", "day": "2026-02-02"}}, "b")
    return graph


def resolve(graph: og.Graph, picks: Any, row: str = "t") -> Row:
    merged(graph, "b", resolve={"node:Thing": {row: picks}})
    return state_of(graph)["node:Thing"][row]


def test_one_merge_is_one_commit_on_the_target_and_none_on_the_branch(things: og.Graph) -> None:
    before, head = len(things.commits()), things.commits("b")[0].commit_id

    row = resolve(things, {"text": "theirs"})

    assert (row["text"], row["number"], row["day"]) == ("theirs", 2.0, "2026-02-02")
    made = things.commits()[0]
    assert made.merged_parent_id == head == things.commits("b")[0].commit_id
    assert len(things.commits()) == before + 1
    (noted,) = made.properties["resolved"]
    assert noted["take"] == {"text": "theirs"}


def test_a_preview_shows_the_row_as_it_was_chosen(things: og.Graph) -> None:
    picks = {"node:Thing": {"t": {"text": {"value": "new"}}}}

    seen = things.merge("b", preview=True, resolve=picks)

    (found,) = seen.changes
    assert found.after is not None
    assert (found.after["text"], found.after["number"]) == ("new", 2.0)
    assert found.after["day"] == "2026-02-02"
    assert not seen.conflicts


def test_a_property_that_was_not_chosen_leaves_the_conflict_open(things: og.Graph) -> None:
    with pytest.raises(MergeConflicts) as raised:
        things.merge("b", resolve={"node:Thing": {"t": {"day": "ours"}}})

    (found,) = raised.value.conflicts
    assert found.message.endswith("; still to choose: text")
    assert state_of(things)["node:Thing"]["t"]["text"] == "ours"


REFUSED = [
    ({"text": "mine"}, "cannot resolve with 'mine'"),
    ({"text": {"value": 1, "more": 2}}, "cannot resolve with"),
    ({"kind": "ours"}, "no conflict on 'kind' of node:Thing 't'.*differ in day, number, text"),
    ({"text": {"value": 7}}, "node:Thing 't': property 'text'.*nothing was merged"),
    ({"text": "ours", "number": {"value": "x"}}, "property 'number'"),
]


@pytest.mark.parametrize(("picks", "message"), REFUSED)
def test_a_choice_that_cannot_be_made_is_refused(
    things: og.Graph, picks: Any, message: str
) -> None:
    version = things.snapshot().manifest_version

    with pytest.raises(BadRequestError, match=message):
        things.merge("b", resolve={"node:Thing": {"t": picks}})

    assert things.snapshot().manifest_version == version


def test_a_row_that_one_side_deleted_has_no_properties_to_choose(tmp_path: Path) -> None:
    people = new_people(tmp_path / "graph")
    people.create_branch("b")
    change(people, "gone", name="dan")
    change(people, "age", "b", name="dan", age=1)

    with pytest.raises(BadRequestError, match=r"choose 'ours' or 'theirs'"):
        people.merge("b", resolve={"node:Person": {"dan": {"age": "theirs"}}})


def test_the_chosen_row_is_held_to_the_rules(tmp_path: Path) -> None:
    """A value out of its range, and a unique one that another row has, are conflicts."""
    people = new_people(tmp_path / "graph")
    people.create_branch("b")
    change(people, "email", name="bob", email="b@x")
    for branch, age in (("main", 31), ("b", 32)):
        change(people, "age", branch, name="alice", age=age)
        change(people, "email", branch, name="alice", email=f"{branch}@x")

    broken: list[tuple[Any, str]] = [
        ({"age": {"value": 151}, "email": "ours"}, "value_constraint_violation"),
        ({"age": "theirs", "email": {"value": "b@x"}}, "unique_violation"),
    ]
    for picks, kind in broken:
        with pytest.raises(MergeConflicts) as raised:
            people.merge("b", resolve={"node:Person": {"alice": picks}})
        assert [each.kind for each in raised.value.conflicts] == [kind]

    merged(people, "b", resolve={"node:Person": {"alice": {"age": "theirs", "email": "ours"}}})
    row = state_of(people)["node:Person"]["alice"]
    assert (row["age"], row["email"]) == (32, "main@x")


def test_a_required_property_cannot_be_given_nothing(things: og.Graph) -> None:
    row = {"key": "t", "text": "x", "kind": "b"}
    load(things, {"t": row})
    load(things, {"t": row | {"kind": "c"}}, "b")

    with pytest.raises(BadRequestError, match="'kind'"):
        resolve(things, {"kind": {"value": None}, "text": "ours", "number": "ours", "day": "ours"})


def test_edges_are_mixed_too(things: og.Graph) -> None:
    load(things, {"u": {"key": "u", "kind": "a"}}, "b")
    merged(things, "b", resolve="ours")
    things.create_branch("c")
    for branch, weight in (("main", 1.0), ("c", 2.0)):
        edge = {"edge": "Near", "from": "t", "to": "u", "data": {"weight": weight, "note": branch}}
        things.load([edge], mode="merge", branch=branch)
    [(key, _)] = state_of(things)["edge:Near"].items()

    merged(things, "c", resolve={"edge:Near": {key: {"weight": "theirs", "note": "ours"}}})

    found = state_of(things)["edge:Near"][key]
    assert (found["weight"], found["note"]) == (2.0, "main")


def test_blame_tells_what_each_property_lost(things: og.Graph) -> None:
    resolve(things, {"text": {"value": "new"}, "number": "theirs", "day": "theirs"})

    blame = things.blame("Thing", "t")

    merge_id = things.commits()[0].commit_id
    assert blame["text"].commit_id == merge_id
    assert {each.value for each in blame["text"].lost} == {"ours", "theirs"}
    assert {each.kept for each in blame["text"].lost} == {"value"}
    assert [(each.value, each.kept) for each in blame["number"].lost] == [(2.0, "theirs")]
    assert blame["day"].lost == ()


EMBEDDED = """
node Note {
    key: String @key
    body: String
    other: String?
    vector: Vector(2)? @embed("body")
}
"""


@pytest.mark.parametrize(
    ("pick", "vector"),
    [("ours", [1.0, 0.0]), ("theirs", [0.0, 1.0]), ({"value": "new"}, None)],
)
def test_a_vector_goes_with_the_text_it_was_made_of(tmp_path: Path, pick: Any, vector: Any) -> None:
    graph = og.init(tmp_path / "graph", schema=EMBEDDED, durability="process")

    def write(branch: str, body: str, vector: list[float]) -> None:
        data = {"key": "n", "body": body, "vector": vector, "other": branch}
        graph.load([{"type": "Note", "data": data}], mode="merge", branch=branch)

    write("main", "old", [1.0, 1.0])
    graph.create_branch("b")
    write("main", "ours", [1.0, 0.0])
    write("b", "theirs", [0.0, 1.0])

    merged(graph, "b", resolve={"node:Note": {"n": {"body": pick, "other": "ours"}}})

    assert state_of(graph)["node:Note"]["n"]["vector"] == vector


@pytest.mark.slow
def test_rows_of_two_schemas_are_mixed_in_the_joined_one(things: og.Graph) -> None:
    merged(things, "b", resolve="ours")
    things.create_branch("c")
    wider = SCHEMA.replace("number: F64?", "number: F64?  extra: String?")
    things.apply_schema(wider, branch="c")
    things.apply_schema(SCHEMA.replace("number: F64?", "number: F64?  more: [String]?"))
    row = {"key": "t", "number": 2.0, "kind": "a"}
    load(things, {"t": row | {"text": "ours", "day": "2026-03-03", "more": ["m"]}})
    load(things, {"t": row | {"text": "theirs", "day": "2026-04-04", "extra": "e"}}, "c")

    merged(things, "c", resolve={"node:Thing": {"t": {"text": "theirs", "day": "ours"}}})

    found = state_of(things)["node:Thing"]["t"]
    assert (found["text"], found["day"]) == ("theirs", "2026-03-03")
    assert (found["extra"], found["more"]) == ("e", ["m"])
