"""The operator's config: servers, profiles, defaults, aliases."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import load_operator
from omnigraph.config.operator import operator_home
from omnigraph.errors import ConfigError
from tests.config.conftest import Writer

FULL = """\
operator: { actor: act-ada }
servers: { prod: { url: "https://graph.example.com/" }, my-lab: { url: "http://lab:8080" } }
clusters: { brain: { root: "s3://bucket/brain" } }
profiles:
  staging: { server: prod, default_graph: knowledge }
  mine: { store: /data/mine }
  both: { server: prod, store: x }
  none: {}
  inside: { store: x, default_graph: y }
defaults: { output: json, table_max_column_width: 20, table_cell_layout: wrap, server: prod,
            default_graph: knowledge }
aliases:
  triage: { server: prod, graph: spike, query: weekly, args: [since], params: { limit: 20 },
            format: table }
"""


def test_every_key_is_read(operator: Writer, home: Path) -> None:
    operator(FULL)

    found = load_operator()

    assert (found.home, found.actor) == (home, "act-ada")
    assert found.server("prod").url == "https://graph.example.com"
    assert found.server("my-lab").token_variable == "OMNIGRAPH_TOKEN_MY_LAB"
    assert found.clusters == {"brain": "s3://bucket/brain"}
    assert found.profile("staging").binding() == ("server", "prod")
    assert (found.defaults.output, found.defaults.server) == ("json", "prod")
    alias = found.aliases["triage"]
    assert (alias.server, alias.graph, alias.query) == ("prod", "spike", "weekly")
    assert (alias.args, alias.params, alias.format) == (("since",), {"limit": 20}, "table")
    assert found.warnings == ()


def test_the_home_is_the_variable_with_its_tilde_or_the_usual_place() -> None:
    assert operator_home({"OMNIGRAPH_HOME": "~/here"}) == Path.home() / "here"
    assert operator_home({}) == Path.home() / ".omnigraph"
    assert operator_home({"OMNIGRAPH_HOME": " "}) == Path.home() / ".omnigraph"


def test_no_file_is_an_empty_config() -> None:
    assert load_operator().servers == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("servers: [}", "not YAML"),
        ("servers: { a: { url: graph.example.com } }", "is not a server address"),
        ("servers: { a: { url: 'ftp://x' } }", "is not a server address"),
        ("servers: { a: { url: 'http://u:p@x' } }", "a host and a path, nothing more"),
        ("servers: { a: { url: 'http://x?y=1' } }", "a host and a path, nothing more"),
        ("servers: { a: {} }", "servers.a: the key 'url' is missing"),
        ("defaults: { server: a, store: b }", "both server and store"),
        ("defaults: { store: b, default_graph: c }", "defaults.store is one graph"),
        ("defaults: { output: xml }", "'xml' is not one of table, kv"),
        ("aliases: { a: { query: q } }", "aliases.a: the key 'server' is missing"),
    ],
)
def test_a_bad_file_is_named_with_its_line(operator: Writer, text: str, problem: str) -> None:
    path = operator(text)

    with pytest.raises(ConfigError) as caught:
        load_operator()

    assert str(caught.value).startswith(f"{path}:1:")
    assert problem in str(caught.value)


def test_two_servers_cannot_share_a_token_variable(operator: Writer) -> None:
    """Else the token of one host would be sent to the other."""
    operator("servers: { a-b: { url: 'http://one' }, a_b: { url: 'http://two' } }")

    with pytest.raises(ConfigError, match="OMNIGRAPH_TOKEN_A_B — rename one"):
        load_operator()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("both", "exactly one of server, cluster, store"),
        ("none", "exactly one of server, cluster, store"),
        ("inside", "a store is one graph"),
    ],
)
def test_a_bad_profile_is_refused_when_it_is_used(
    operator: Writer, name: str, problem: str
) -> None:
    operator(FULL)
    found = load_operator()

    with pytest.raises(ConfigError, match=problem):
        found.profile(name).binding()

    assert found.profile("mine").binding() == ("store", "/data/mine"), "the others work"
