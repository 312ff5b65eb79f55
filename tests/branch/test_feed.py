"""The change feed: whoever follows it ends with what the graph holds, wherever it was stopped."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.branch import change_records, feed
from omnigraph.errors import (
    BadRequestError,
    ChangeCursorRejected,
    ChangeFeedGap,
    NotFoundError,
    ResourceLimitError,
)
from tests.depth import depth

SCHEMA = """
node Person { slug: String @key  age: I32? }
node Place { slug: String @key }
edge Knows: Person -> Person { since: I32? }
"""
INSERT = "query q($s: String, $a: I32) { insert Person { slug: $s, age: $a } }"
DELETE = "query q($s: String) { delete Person where slug = $s }"
KNOWS = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 1 } }"

Entity = tuple[str, str, str]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        yield graph


def put(graph: og.Graph, slug: str, age: int = 1, branch: str = "main") -> None:
    graph.mutate(INSERT, params={"s": slug, "a": age}, branch=branch)


class Reader:
    """Keeps a copy of a graph by what the feed says. Applying a change twice does no harm."""

    def __init__(self, branch: str = "main", **wanted: Any) -> None:
        self.branch = branch
        self.wanted = wanted
        self.cursor: str | None = None
        self.copy: dict[Entity, Any] = {}
        self.seen: list[str] = []

    def start(self, graph: og.Graph) -> None:
        found = graph.change_baseline(self.branch, **self.wanted)
        for record in found.records:
            self.copy[key_of_record(record)] = None
        self.cursor = found.cursor

    def follow(self, graph: og.Graph, stops: random.Random | None = None, limit: int = 3) -> None:
        """Read a whole poll; `stops` may end it at any page, before its cursor is known."""
        page = graph.poll_changes(self.branch, cursor=self.cursor, limit=limit, **self.wanted)
        while True:
            self._apply(page)
            if stops is not None and stops.random() < 0.3:
                return
            if page.next_page_token is None:
                self.cursor = page.cursor
                return
            page = graph.poll_changes(
                self.branch, page_token=page.next_page_token, limit=limit, **self.wanted
            )

    def _apply(self, page: feed.ChangePage) -> None:
        for block in page.blocks:
            self.seen.append(block.cause["graph_commit_id"])
            for change in block.changes:
                key = change["kind"], change["type"]["name"], change["id"]
                if change["op"] == "delete":
                    self.copy.pop(key, None)
                else:
                    self.copy[key] = None


def key_of_record(record: Any) -> Entity:
    if "edge" in record:
        return "edge", record["edge"], record["data"]["id"]
    return "node", record["type"], record["data"]["slug"]


def entities(graph: og.Graph, branch: str = "main") -> set[Entity]:
    return {key_of_record(each) for each in graph.export(branch=branch)}


@pytest.mark.slow
@settings(max_examples=depth(2, 200))
@given(seed=st.integers(0, 2**32))
def test_a_reader_stopped_at_random_ends_equal_to_the_graph(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = random.Random(seed)
    reader = Reader()
    with og.init(tmp_path_factory.mktemp("g"), schema=SCHEMA, durability="process") as graph:
        put(graph, "first")
        reader.start(graph)
        for step in range(12):
            names = [each[2] for each in sorted(entities(graph)) if each[0] == "node"]
            match chance.randrange(5):
                case 0:
                    put(graph, f"p{step}", step)
                case 1:
                    rows = [{"slug": f"p{step}-{number}"} for number in range(5)]
                    graph.load([{"type": "Person", "data": row} for row in rows], mode="append")
                case 2 if names:
                    graph.mutate(DELETE, params={"s": chance.choice(names)})
                case 3 if names:
                    ends = {"a": chance.choice(names), "b": chance.choice(names)}
                    graph.mutate(KNOWS, params=ends)
                case _:
                    graph.create_branch(f"b{step}")
                    put(graph, f"b{step}", branch=f"b{step}")
                    graph.merge(f"b{step}", delete_branch=True)
            if chance.random() < 0.5:
                reader.follow(graph, chance, limit=chance.randint(1, 4))
            if chance.random() < 0.2:
                graph.optimize()

        reader.follow(graph)

        assert set(reader.copy) == entities(graph)
        line = [each.commit_id for each in graph.commits()]
        assert [each for each in dict.fromkeys(reader.seen) if each not in line] == []


def test_a_poll_goes_through_pages_and_ends_with_a_cursor(graph: og.Graph) -> None:
    start = graph.poll_changes(start="now")
    assert (start.blocks, start.caught_up, start.next_page_token) == ([], True, None)
    graph.load([{"type": "Person", "data": {"slug": f"p{n}"}} for n in range(5)], mode="append")
    put(graph, "last")

    first = graph.poll_changes(cursor=start.cursor, limit=2)
    put(graph, "later")
    pages = [first]
    while pages[-1].next_page_token is not None:
        pages.append(graph.poll_changes(page_token=pages[-1].next_page_token, limit=2))

    sizes = [[len(block.changes) for block in page.blocks] for page in pages]
    assert sizes == [[2], [2], [1, 1]]
    assert [page.cursor is None for page in pages] == [True, True, False]
    assert pages[-1].caught_up is False, "what came during the poll waits for the next one"
    following = graph.poll_changes(cursor=pages[-1].cursor)
    assert [block.changes[0]["id"] for block in following.blocks] == ["later"]
    assert following.caught_up is True


def test_changes_have_both_images_and_the_order_of_the_specification(graph: og.Graph) -> None:
    put(graph, "ada", 1)
    records = [
        {"edge": "Knows", "from": "bob", "to": "ada", "data": {"since": 7}},
        {"type": "Place", "data": {"slug": "here"}},
        {"type": "Person", "data": {"slug": "ada", "age": 2}},
        {"type": "Person", "data": {"slug": "bob"}},
    ]
    loaded = graph.load(records, mode="merge").commit_id
    assert loaded is not None

    page = graph.commit_changes(loaded)

    listed = [(each["kind"], each["type"]["name"], each["op"]) for each in page.changes]
    assert listed == [
        ("node", "Person", "update"),
        ("node", "Person", "insert"),
        ("node", "Place", "insert"),
        ("edge", "Knows", "insert"),
    ]
    update, insert, _, edge = page.changes
    assert update["before"]["properties"] == {"slug": "ada", "age": 1}
    assert update["after"]["properties"] == {"slug": "ada", "age": 2}
    assert "before" not in insert
    assert edge["after"] == {
        "properties": {"since": 7},
        "endpoints": {"from": "bob", "to": "ada"},
    }
    assert page.cause["graph_commit_id"] == loaded
    assert graph.commit_changes(graph.log()[-1].commit_id).changes == [], "the first commit"


def test_a_commit_is_read_page_by_page_in_one_order(graph: og.Graph) -> None:
    records = [{"type": "Person", "data": {"slug": f"p{n}"}} for n in range(7)]
    records += [{"edge": "Knows", "from": "p0", "to": f"p{n}"} for n in range(1, 4)]
    commit = graph.load(records, mode="append").commit_id
    assert commit is not None
    whole = graph.commit_changes(commit).changes

    pages = [graph.commit_changes(commit, limit=3)]
    while pages[-1].next_page_token is not None:
        pages.append(graph.commit_changes(commit, limit=3, page_token=pages[-1].next_page_token))

    assert [change for page in pages for change in page.changes] == whole
    assert [len(page.changes) for page in pages] == [3, 3, 3, 1]


def test_a_page_is_bounded_in_bytes_and_still_goes_on(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_records, "PAGE_BYTES", 1)
    start = graph.poll_changes(start="now").cursor
    graph.load([{"type": "Person", "data": {"slug": f"p{n}"}} for n in range(3)], mode="append")

    reader = Reader()
    reader.cursor = start
    reader.follow(graph, limit=1_000)

    assert {each[2] for each in reader.copy} == {"p0", "p1", "p2"}
    assert len(reader.seen) == 3, "one change a page"


def test_a_long_history_takes_several_polls(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "COMMITS_PER_POLL", 2)
    for number in range(5):
        put(graph, f"p{number}")

    polls = [graph.poll_changes(start="beginning")]
    while not polls[-1].caught_up:
        polls.append(graph.poll_changes(cursor=polls[-1].cursor))

    assert [len(page.blocks) for page in polls] == [2, 2, 1]


def test_filters_leave_out_and_belong_to_the_cursor(graph: og.Graph) -> None:
    people = graph.poll_changes(start="now", types=["Person"], ops=["insert"]).cursor
    put(graph, "ada")
    put(graph, "ada", 2)
    graph.load([{"type": "Place", "data": {"slug": "here"}}], mode="append")

    page = graph.poll_changes(cursor=people, types=["Person"], ops=["insert"])

    assert [block.changes[0]["id"] for block in page.blocks] == ["ada"]
    with pytest.raises(ChangeCursorRejected, match="made with other filters"):
        graph.poll_changes(cursor=people)
    with pytest.raises(BadRequestError, match="there is no type 'Persn'"):
        graph.poll_changes(start="now", types=["Persn"])


def test_a_cursor_of_something_else_is_rejected(graph: og.Graph) -> None:
    graph.create_branch("dev")
    cursor = graph.poll_changes("dev", start="now").cursor
    assert cursor is not None

    with pytest.raises(ChangeCursorRejected, match="another branch than 'main'"):
        graph.poll_changes(cursor=cursor)
    with pytest.raises(ChangeCursorRejected, match="no page token"):
        graph.poll_changes("dev", page_token=cursor)
    graph.delete_branch("dev")
    graph.create_branch("dev")
    with pytest.raises(ChangeCursorRejected, match="deleted and made again"):
        graph.poll_changes("dev", cursor=cursor)


def seal(value: Any) -> str:
    """A token whose checksum is right, whatever it says."""
    data = json.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.crc32(data).to_bytes(4, "big") + data).decode()


PLACES = st.dictionaries(
    st.sampled_from(["after", "end", "kind", "type", "id"]),
    st.one_of(st.none(), st.text(max_size=8), st.integers()),
)
FORGED = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["cursor", "page", "x"]),
        "branch": st.just("main"),
        "incarnation": st.none(),
        "wanted": st.just([None, None, None]),
        "place": st.one_of(PLACES, st.integers(), st.none()),
    }
)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    with og.init(tmp_path_factory.mktemp("s"), schema=SCHEMA, durability="process") as graph:
        put(graph, "ada")
        yield graph


@settings(max_examples=depth(40, 2_000))
@given(token=st.one_of(st.text(max_size=60), FORGED.map(seal), st.integers().map(seal)))
def test_no_forged_token_gets_past_a_typed_rejection(standing: og.Graph, token: str) -> None:
    for kind in ("cursor", "page_token"):
        with pytest.raises(ChangeCursorRejected, match="change cursor rejected: "):
            standing.poll_changes(**{kind: token})  # type: ignore[arg-type]


def test_a_place_that_makes_no_sense_is_refused(graph: og.Graph) -> None:
    cursor = graph.poll_changes(start="now").cursor
    with pytest.raises(BadRequestError, match="give one of cursor, start and page_token"):
        graph.poll_changes(cursor=cursor, start="now")
    with pytest.raises(BadRequestError, match="expected now, beginning or after:COMMIT"):
        graph.poll_changes(start="yesterday")
    with pytest.raises(NotFoundError, match="is not on the line of branch 'main'"):
        graph.poll_changes(start="after:01J00000000000000000000000")
    with pytest.raises(ResourceLimitError, match="8192"):
        graph.poll_changes(limit=8_193)
    with pytest.raises(BadRequestError, match="limit is 0"):
        graph.poll_changes(limit=0)


def test_what_a_cleanup_removed_is_a_gap_that_names_where_it_begins(graph: og.Graph) -> None:
    put(graph, "ada")
    before = graph.poll_changes(start="now").cursor
    gone = graph.commits()[0].commit_id
    put(graph, "bob")
    put(graph, "eve")
    graph.cleanup(keep=1, confirm=True)

    with pytest.raises(ChangeFeedGap) as caught:
        graph.poll_changes(cursor=before)

    assert caught.value.first_unreadable_commit_id == gone
    assert caught.value.cursor == before
    reader = Reader()
    reader.start(graph)
    put(graph, "kim")
    reader.follow(graph)
    assert set(reader.copy) == entities(graph), "a new baseline goes on"


def test_a_type_that_is_renamed_keeps_its_identity_in_the_feed(graph: og.Graph) -> None:
    put(graph, "ada")
    cursor = graph.poll_changes(start="now").cursor
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    graph.apply_schema(renamed.replace("Person -> Person", "Human -> Human"))
    graph.mutate(INSERT.replace("Person", "Human"), params={"s": "bob", "a": 1})

    page = graph.poll_changes(cursor=cursor)

    assert [change["id"] for block in page.blocks for change in block.changes] == ["bob"]


RENAMED = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {').replace(
    "Person -> Person", "Human -> Human"
)


def ids_of(page: feed.ChangePage) -> list[str]:
    return [change["id"] for block in page.blocks for change in block.changes]


def test_a_filter_follows_its_type_through_a_rename(graph: og.Graph) -> None:
    """A reader of one type is told of it by the name it asked for, in every later poll."""
    cursor = graph.poll_changes(start="now", types=["Person"]).cursor
    first = graph.commits()[0].commit_id
    put(graph, "ada")
    graph.apply_schema(RENAMED)
    graph.mutate(INSERT.replace("Person", "Human"), params={"s": "bob", "a": 1})
    graph.load([{"type": "Place", "data": {"slug": "here"}}], mode="append")

    across = graph.poll_changes(cursor=cursor, types=["Person"])
    graph.mutate(INSERT.replace("Person", "Human"), params={"s": "cy", "a": 1})
    behind = graph.poll_changes(cursor=across.cursor, types=["Person"])

    assert (ids_of(across), ids_of(behind)) == (["ada", "bob"], ["cy"])
    listed = graph.changes(first, types=["Person"])
    assert [each.id for one in listed for each in one.changes] == ["ada", "bob", "cy"]
    baseline = graph.change_baseline(types=["Person"])
    assert {each["data"]["slug"] for each in baseline.records} == {"ada", "bob", "cy"}
    head = graph.commits()[0].commit_id
    assert len(graph.commit_changes(head, types=["Person"]).changes) == 1
    with pytest.raises(ChangeCursorRejected, match="made with other filters"):
        graph.poll_changes(cursor=behind.cursor, types=["Human"])
    with pytest.raises(BadRequestError, match="there is no type 'Nobody'"):
        graph.poll_changes(start="now", types=["Nobody"])


def test_a_filter_wants_every_type_that_bears_its_name(graph: og.Graph) -> None:
    """A name that is given away is followed on both ways: at least once, never less."""
    cursor = graph.poll_changes(start="now", types=["Person"]).cursor
    graph.apply_schema(RENAMED)
    graph.apply_schema(RENAMED + "node Person { slug: String @key }")
    for name, slug in (("Human", "old"), ("Person", "new")):
        text = f"query q($s: String) {{ insert {name} {{ slug: $s }} }}"
        graph.mutate(text, params={"s": slug})

    assert ids_of(graph.poll_changes(cursor=cursor, types=["Person"])) == ["old", "new"]


def test_the_commits_of_a_deleted_branch_are_readable_while_a_branch_shows_them(
    graph: og.Graph,
) -> None:
    for name in ("merged", "lost"):
        graph.create_branch(name)
        put(graph, name, branch=name)
    put(graph, "main")  # so that the merge is one, and no fast-forward
    merged, lost = (graph.commits(name)[0].commit_id for name in ("merged", "lost"))
    tokens = graph.poll_changes("lost", start="beginning", limit=1)
    graph.merge("merged", delete_branch=True)
    graph.delete_branch("lost")

    assert [each["id"] for each in graph.commit_changes(merged).changes] == ["merged"]
    with pytest.raises(NotFoundError, match=f"commit '{lost}' not found"):
        graph.commit_changes(lost)
    for place in ({"page_token": tokens.next_page_token}, {"start": "now"}):
        with pytest.raises(NotFoundError, match="branch 'lost' not found"):
            graph.poll_changes("lost", **place)
    graph.cleanup(keep=1, confirm=True)
    with pytest.raises(ChangeFeedGap) as caught:
        graph.commit_changes(merged)
    assert caught.value.first_unreadable_commit_id == merged


def test_a_cursor_of_another_graph_is_rejected(graph: og.Graph, tmp_path: Path) -> None:
    put(graph, "ada")
    with og.init(tmp_path / "other", schema=SCHEMA, durability="process") as other:
        put(other, "ada")
        cursor = other.poll_changes(start="now").cursor

    with pytest.raises(ChangeCursorRejected, match="is not on the line of branch 'main'"):
        graph.poll_changes(cursor=cursor)
