"""A misspelt key never passes for an absent one: the project file is refused, with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import load_operator, load_project
from omnigraph.errors import ConfigError
from omnigraph.server.boot import Arguments, resolve_settings
from tests.config.conftest import Writer

GRAPH_KEYS = "uri, bearer_token_env, policy, queries, retention, embedding"


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        load_project(path)
    return str(refused.value).removeprefix(str(path))


def test_a_misspelt_policy_does_not_open_a_graph_without_one(project: Writer) -> None:
    path = project("graphs:\n  team:\n    uri: team.omni\n    polcy: { file: policy.yaml }\n")

    with pytest.raises(ConfigError, match="did you mean `policy`"):
        resolve_settings(Arguments(config=path, unauthenticated=True), {})

    assert refusal(path) == (
        f":4:5: graphs.team: the key 'polcy' is not one of {GRAPH_KEYS} — did you mean `policy`?"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("grphs: {}", ":1:1: the key 'grphs' is not one of project, graphs, server, cli, query, "),
        ("cli: { brnch: dev }", ":1:8: cli: the key 'brnch' is not one of graph, branch, actor, "),
        ("policy: { fil: p.yaml }", ":1:11: policy: the key 'fil' is not one of file — did you"),
        ("server: { policy: { x: y } }", ":1:21: server.policy: the key 'x' is not one of file"),
        (
            "queries: { q: { file: q.gq, mcp: { hide: true } } }",
            ":1:36: queries.q.mcp: the key 'hide' is not one of expose, tool_name",
        ),
        ("aliases: { a: { query: q, fmt: csv } }", ":1:27: aliases.a: the key 'fmt' is not one"),
    ],
)
def test_an_unknown_key_is_refused_anywhere(project: Writer, text: str, problem: str) -> None:
    assert refusal(project(text)).startswith(problem)


def test_one_run_reports_every_problem(project: Writer) -> None:
    path = project("grphs: {}\ncli: { brnch: dev, output_format: xml }\n")

    with pytest.raises(ConfigError) as refused:
        load_project(path)

    places = [line.removeprefix(str(path)).split(" ")[0] for line in str(refused.value).split("\n")]
    assert places == [":1:1:", ":2:8:", ":2:35:"]


def test_the_operator_config_loads_with_a_warning_for_an_unknown_key(operator: Writer) -> None:
    """It is written for several versions of the program; no policy depends on it."""
    path = operator('servers: { prod: { url: "http://a", token: secret } }\n')

    found = load_operator()

    assert found.server("prod").url == "http://a"
    assert found.warnings == (
        f"{path}:1:37: servers.prod: the key 'token' is not one of url, and is ignored",
    )
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "actor"),
    [("on", "on"), ("no", "no"), ("007", "007"), ("0x10", "0x10"), ("1:30", "1:30"),
     ("2024-01-01", "2024-01-01"), ("1_000", "1_000"), ("1.10", "1.10"), ("'true'", "true")],
)  # fmt: skip
def test_a_plain_word_is_the_text_that_is_written(
    project: Writer, operator: Writer, text: str, actor: str
) -> None:
    operator(f"operator: {{ actor: {text} }}")

    assert load_project(project(f"cli: {{ actor: {text} }}")).cli.actor == actor
    assert load_operator().actor == actor


def test_a_truth_value_is_not_a_name(project: Writer) -> None:
    path = project("cli: { actor: true }")

    assert refusal(path) == ":1:15: cli.actor is true, expected a text — put it in quotes"


def test_parameters_of_an_alias_have_the_values_of_yaml_1_2(operator: Writer) -> None:
    operator(
        "aliases: { a: { server: s, query: q, params: { n: 18446744073709551615, o: 010, x: 0x1F,\n"
        "  w: yes, t: 2024-01-01, m: 1:30, l: [1.5, null, true], d: { k: off } } } }\n"
    )

    assert load_operator().aliases["a"].params == {
        "n": 18446744073709551615,
        "o": 10,
        "x": 31,
        "w": "yes",
        "t": "2024-01-01",
        "m": "1:30",
        "l": [1.5, None, True],
        "d": {"k": "off"},
    }
