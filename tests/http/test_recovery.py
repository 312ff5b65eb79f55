"""Failed writes over HTTP: the graph is whole at the next request, and 503 says when it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from omnigraph.failpoints import Failpoint, arm_failpoints
from tests.http.serving import INSERT, Client, Served, make_graph, served, single

BOTH = [
    {"type": "Person", "data": {"slug": "new"}},
    {"type": "Company", "data": {"slug": "new"}},
]
COMPANIES = "query companies() { match { $c: Company } return { $c.slug } order { $c.slug } }"


def failing(times: int) -> Callable[[], None]:
    """A store that fails at first and works again afterwards."""
    failures = iter([StorageError("the disk is gone")] * times)

    def fail() -> None:
        for failure in failures:
            raise failure

    return fail


def seen(client: Client) -> tuple[set[str], set[str]]:
    people = {row["p.slug"] for row in client.rows()}
    companies = {row["c.slug"] for row in client.rows(COMPANIES)}
    return people, companies


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.COMMIT_AFTER_SIDECAR,
        Failpoint.COMMIT_AFTER_TABLE,
        Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER,
        Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    ],
)
def test_a_write_that_fails_half_way_is_whole_or_gone_for_the_next_request(
    own: Served, point: Failpoint
) -> None:
    with own.client() as client:
        with arm_failpoints({point: "raise"}):
            failed = client.load(BOTH)
        people, companies = seen(client)
        after = client.load(BOTH, mode="merge")

        assert failed.status_code == 500
        assert failed.json()["code"] == "internal"
        assert ("new" in people) == ("new" in companies)
        assert after.status_code == 200
        assert all("new" in each for each in seen(client))


def test_a_write_whose_publish_fails_is_undone_and_may_be_repeated(own: Served) -> None:
    with own.client() as client:
        with arm_failpoints({Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT: failing(1)}):
            failed = client.load(BOTH)

        assert failed.status_code == 500
        assert "nothing was written" in failed.json()["error"]
        assert not any("new" in each for each in seen(client))
        assert client.load(BOTH).status_code == 200
        assert all("new" in each for each in seen(client))


def test_a_write_that_cannot_be_undone_is_a_503_that_names_the_operation(own: Served) -> None:
    with own.client() as client:
        with arm_failpoints({Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT: failing(2)}):
            failed = client.load(BOTH)

        assert failed.status_code == 503
        assert set(failed.json()) == {"error", "recovery_required"}
        assert len(failed.json()["recovery_required"]["operation_id"]) == 26
        # The next request settles it: all of it is there, or nothing.
        assert client.mutate(INSERT, params={"slug": "next"}).status_code == 200
        people, companies = seen(client)
        assert ("new" in people) == ("new" in companies)


def test_a_write_that_meets_an_intent_nobody_can_settle_is_a_503(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        folder = graph_path / "__recovery"
        folder.mkdir(exist_ok=True)
        operation_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        (folder / f"{operation_id}.json").write_text('{"schema_version": 999}')

        answer = client.mutate(INSERT, params={"slug": "x"})

        assert answer.status_code == 503
        assert answer.json()["recovery_required"] == {"operation_id": operation_id}
        assert "code" not in answer.json()
        assert client.query().status_code == 200


def test_an_open_heals_what_a_dead_server_left(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with (
        og.open(path) as graph,
        arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}),
        pytest.raises(RuntimeError, match="failpoint"),
    ):
        graph.load(BOTH, mode="merge")

    with served(single(path)) as server, server.client() as client:
        people, companies = seen(client)

        assert ("new" in people) == ("new" in companies)
        assert client.load(BOTH).status_code == 200
