"""Scope: of all the ways to name a graph, the first that was used."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.config import Address, DirectScope, ServedScope, load_settings, resolve_scope
from omnigraph.errors import AddressError, BadRequestError, ConfigError
from tests.config.conftest import Writer

PROJECT = """\
graphs:
  team: { uri: team.omni }
  far: { uri: "http://far:1/graphs/g", bearer_token_env: FAR }
cli: { graph: team }
"""
OPERATOR = """\
servers: { prod: { url: "http://prod:1" } }
profiles:
  staging: { server: prod, default_graph: knowledge }
  mine: { store: /mine }
  lost: { server: nowhere }
  brain: { cluster: x }
"""


@pytest.fixture
def both(project: Writer, operator: Writer) -> Callable[[str], None]:
    """Write both files, the operator's with more at its end."""

    def write(more: str = "") -> None:
        project(PROJECT)
        operator(OPERATOR + more)

    return write


def resolve(**address: str) -> DirectScope | ServedScope:
    return resolve_scope(Address(**address), load_settings())


def test_each_way_is_taken_before_the_ones_after_it(
    both: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both("defaults: { server: prod, default_graph: g }\n")

    assert resolve() == ServedScope("http://prod:1", "g"), "4 beats 5"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "mine")
    assert resolve() == DirectScope("/mine"), "3 beats 4"
    assert resolve(profile="staging") == ServedScope("http://prod:1", "knowledge")
    assert resolve(target="team") == DirectScope("team.omni", "team"), "2 beats 3"
    for name in ("uri", "store"):
        assert resolve(**{name: "/x"}) == DirectScope("/x"), "1 beats 3"
    assert resolve(server="prod") == ServedScope("http://prod:1"), "1 has no default graph"


def test_the_project_s_graph_is_the_last_resort(both: Callable[[str], None]) -> None:
    both("")

    assert resolve() == DirectScope("team.omni", "team")


def test_a_default_store_is_a_store(both: Callable[[str], None]) -> None:
    both("defaults: { store: 's3://b/g' }\n")

    assert resolve() == DirectScope("s3://b/g")
    assert not DirectScope("s3://b/g").is_local
    assert DirectScope("file:///b/g").is_local


def test_nothing_addressed_names_every_way() -> None:
    with pytest.raises(AddressError) as caught:
        resolve()

    for way in ("--store", "--server", "--target", "--profile"):
        assert way in str(caught.value)


def test_a_server_is_a_name_or_an_address(both: Callable[[str], None]) -> None:
    both("")

    assert resolve(server="http://other:2/base/") == ServedScope("http://other:2/base")
    assert resolve(server="http://o/graphs/g") == ServedScope("http://o", "g")
    assert resolve(server="prod", graph="x") == ServedScope("http://prod:1", "x")
    with pytest.raises(ConfigError, match=r"server 'prd' is not in .* did you mean `prod`"):
        resolve(server="prd")


def test_a_graph_flag_replaces_the_default_one(both: Callable[[str], None]) -> None:
    both("defaults: { server: prod, default_graph: knowledge }\n")

    assert resolve(graph="other") == ServedScope("http://prod:1", "other")
    assert resolve(profile="staging", graph="other") == ServedScope("http://prod:1", "other")


@pytest.mark.parametrize("address", [{"uri": "/x"}, {"store": "/x"}, {"target": "team"}])
def test_a_graph_flag_has_no_place_in_a_store(
    both: Callable[[str], None], address: dict[str, str]
) -> None:
    both("")

    with pytest.raises(AddressError, match="--graph picks a graph inside a server"):
        resolve(**address, graph="g")


@pytest.mark.parametrize(
    "given",
    [
        ("uri", "store"),
        ("store", "server"),
        ("uri", "server"),
        ("server", "cluster"),
        ("store", "target"),
        ("server", "profile"),
    ],
)
def test_two_addresses_are_refused(given: tuple[str, str]) -> None:
    with pytest.raises(AddressError, match="mutually exclusive — pick one way to address"):
        resolve(**dict.fromkeys(given, "x"))


@pytest.mark.parametrize("name", ["uri", "store"])
def test_a_server_s_address_is_no_store(name: str) -> None:
    with pytest.raises(BadRequestError, match=re.escape("use --server https://h/x")):
        resolve(**{name: "https://h/x"})


def test_a_graph_of_the_project_may_be_served(both: Callable[[str], None]) -> None:
    both("")

    assert resolve(target="far") == ServedScope("http://far:1", "g", token_variable="FAR")


def test_the_token_of_a_served_graph_is_its_own(
    both: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    both("")
    monkeypatch.setenv("FAR", "far-token")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", "prod-token")
    settings = load_settings()

    def token(**address: str) -> str | None:
        scope = resolve_scope(Address(**address), settings)
        assert isinstance(scope, ServedScope)
        return scope.token(settings)

    assert token(target="far") == "far-token"
    assert token(server="prod", graph="x") == "prod-token"
    assert token(server="http://prod:1") == "prod-token"
    assert token(server="http://prod:11") is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("lost", "server 'nowhere' is not in"),
        ("brain", "clusters are not part of this build"),
        ("stagng", "did you mean `staging`"),
    ],
)
def test_a_profile_that_leads_nowhere_is_refused(
    both: Callable[[str], None], name: str, problem: str
) -> None:
    both("")

    with pytest.raises(ConfigError, match=problem):
        resolve(profile=name)


def test_a_policy_goes_with_the_unnamed_graph_and_not_with_a_plain_store(project: Writer) -> None:
    """`--store` is the storage as it is; a URI is the project's unnamed graph."""
    path = project("policy: { file: p.yaml }\nqueries: { q: { file: q.gq } }\n")
    scope = resolve(uri="/x")

    assert isinstance(scope, DirectScope)
    assert scope.policy_file == Path("p.yaml")
    assert set(scope.queries) == {"q"}
    assert resolve(store="/x") == DirectScope("/x")
    assert path.exists()
