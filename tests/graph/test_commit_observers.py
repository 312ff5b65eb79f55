"""A handle that is notified of what another one publishes sees it without reading the store."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.graph.commit_observers import ReaderObserver
from omnigraph.manifest import PublishDelta
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside

SCHEMA = "node Person { slug: String @key  age: I32? }\n"
WHO = "query who($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }"
INSERT = "query add($slug: String, $age: I32) { insert Person { slug: $slug, age: $age } }"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    people = [{"type": "Person", "data": {"slug": f"p{n}", "age": n}} for n in range(50)]
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as graph:
        graph.load(people, mode="overwrite")
    return tmp_path / "graph"


def ages(graph: og.Graph, slug: str, branch: str = "main") -> list[int]:
    found = graph.query(WHO, params={"slug": slug}, branch=branch)
    return [row["p.age"] for row in found.rows()]


def test_a_delta_from_a_notification_is_not_read_again(path: Path) -> None:
    with (
        og.open(path) as reader,
        og.open(path, config={"read_ahead": ReaderObserver(inside(reader))}) as writer,
    ):
        assert ages(reader, "p7") == [7]
        for n in range(3):
            writer.mutate(INSERT, params={"slug": f"new{n}", "age": 100 + n})
            with counting() as counters:
                found = ages(reader, f"new{n}")

            assert found == [100 + n]
            assert (counters.control_reads, counters.scans, counters.opens) == (0, 0, 0)


def test_without_a_notification_a_handle_reads_the_manifest(path: Path) -> None:
    """The same without an observer: the counts above would show it."""
    with og.open(path) as reader, og.open(path) as writer:
        assert ages(reader, "p7") == [7]
        writer.mutate(INSERT, params={"slug": "new", "age": 100})
        with counting() as counters:
            found = ages(reader, "new")

        assert found == [100]
        assert counters.control_reads > 0


def test_a_lost_notification_is_not_waited_for_twice(path: Path) -> None:
    """A writer that dies between announcing and notifying: readers read the manifest."""

    class Mute:
        def __init__(self, reader: og.Graph) -> None:
            self.before_publish = ReaderObserver(inside(reader)).before_publish

        def after_publish(self, state: object) -> None:
            pass

    with og.open(path) as reader, og.open(path, config={"read_ahead": Mute(reader)}) as writer:
        assert ages(reader, "p7") == [7]
        writer.mutate(INSERT, params={"slug": "new", "age": 100})

        assert ages(reader, "new") == [100]
        assert not inside(reader).coordinator.states._expected


def test_a_branch_that_was_never_read_here_is_not_prefetched(path: Path) -> None:
    with (
        og.open(path) as reader,
        og.open(path, config={"read_ahead": ReaderObserver(inside(reader))}) as writer,
    ):
        assert ages(reader, "p7") == [7]
        writer.create_branch("side")
        writer.mutate(INSERT, params={"slug": "new", "age": 100}, branch="side")

        assert inside(reader).coordinator.states.find("side") is None
        assert ages(reader, "new", branch="side") == [100]
        assert ages(reader, "new") == []


def test_an_old_delta_does_not_hide_newer_rows(path: Path) -> None:
    deltas: list[PublishDelta] = []

    class Late:
        def before_publish(self, branch: str, pins: object) -> None:
            pass

        def after_publish(self, delta: PublishDelta) -> None:
            deltas.append(delta)

    with og.open(path) as reader, og.open(path, config={"read_ahead": Late()}) as writer:
        assert ages(reader, "p7") == [7]
        for n in range(2):
            writer.mutate(INSERT, params={"slug": f"new{n}", "age": 100})
        ReaderObserver(inside(reader)).after_publish(deltas[1])  # the one before it is missing
        assert ages(reader, "new1") == [100]
        for delta in deltas:
            ReaderObserver(inside(reader)).after_publish(delta)

        assert ages(reader, "new0") == ages(reader, "new1") == [100]


def test_a_delta_that_comes_during_a_probe_is_applied(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltas: list[PublishDelta] = []

    class Late:
        def __init__(self, reader: og.Graph) -> None:
            self.before_publish = ReaderObserver(inside(reader)).before_publish

        def after_publish(self, delta: PublishDelta) -> None:
            deltas.append(delta)

    with og.open(path) as reader, og.open(path, config={"read_ahead": Late(reader)}) as writer:
        assert ages(reader, "p7") == [7]
        writer.mutate(INSERT, params={"slug": "new", "age": 100})
        probe, probes = inside(reader).coordinator.states._find_if_latest, []

        def interrupted(branch: str, branch_id: str | None) -> object:
            known = probe(branch, branch_id)
            probes.append(known)
            if len(probes) == 2:  # by the thread whose turn it is to read
                ReaderObserver(inside(reader)).after_publish(deltas[0])
            return known

        monkeypatch.setattr(inside(reader).coordinator.states, "_find_if_latest", interrupted)
        with counting() as counters:
            assert ages(reader, "new") == [100]

        assert probes[:2] == [None, None]
        assert counters.control_reads == 0


def test_an_applied_delta_gives_the_same_state_as_a_read(path: Path) -> None:
    with (
        og.open(path) as reader,
        og.open(path, config={"read_ahead": ReaderObserver(inside(reader))}) as writer,
    ):
        assert ages(reader, "p7") == [7]
        writer.mutate(INSERT, params={"slug": "new", "age": 100}, actor="ada")
        with counting() as counters:
            notified = inside(reader).coordinator.fresh("main")
        with og.open(path) as other:
            read = inside(other).coordinator.fresh("main")

        assert counters.control_reads == 0
        assert notified == read
        by_id = [("object_id", "ascending")]
        assert notified.commit_rows.sort_by(by_id).equals(read.commit_rows.sort_by(by_id))


def test_read_ahead_takes_a_switch_or_an_observer(path: Path) -> None:
    with pytest.raises(BadRequestError, match="`read_ahead` is 'yes', expected True or False"):
        og.open(path, config={"read_ahead": "yes"})


def test_a_handle_that_only_writes_reads_nothing_ahead(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[object]()
    monkeypatch.setattr("omnigraph.graph.session.prefetch", lambda *_, **__: calls.append(1))
    with og.open(path) as graph:
        graph.mutate(INSERT, params={"slug": "first", "age": 1})
        assert calls == []
        assert ages(graph, "first") == [1]
        graph.mutate(INSERT, params={"slug": "second", "age": 2})
        assert calls == [1]
