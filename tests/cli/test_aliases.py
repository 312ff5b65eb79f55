"""Aliases, stored queries, profiles and logins: what config files make of a command."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.config import StoredEntry
from tests.cli.running import run
from tests.http.serving import make_graph, served, single

QUERIES = """\
query find($slug: String, $least: I32?) @description("Finds a person.") {
    match { $p: Person { slug: $slug } }
    return { $p.slug, $p.age }
}
query older($least: I32) {
    match { $p: Person  $p.age >= $least }
    return { $p.slug }
    order { $p.slug }
}
query add($slug: String) { insert Person { slug: $slug } }
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "queries").mkdir(parents=True)
    monkeypatch.chdir(folder)
    Path("queries/people.gq").write_text(QUERIES)
    return make_graph(tmp_path / "graph")


@pytest.fixture
def url(graph: Path) -> Iterator[str]:
    file = Path("queries/people.gq").resolve()
    stored = {name: StoredEntry(file) for name in ("find", "older", "add")}
    with served(single(graph, queries=stored)) as server:
        yield server.url


def project(graph: Path, more: str = "") -> None:
    Path("omnigraph.yaml").write_text(
        f"""\
graphs:
  team:
    uri: {graph}
    queries:
      find: {{ file: queries/people.gq, mcp: {{ tool_name: find_person }} }}
      add: {{ file: queries/people.gq, mcp: {{ expose: false }} }}
query: {{ roots: [queries] }}
aliases:
  who: {{ command: read, query: people.gq, name: find, args: [slug, least], graph: team,
          format: csv }}
  older: {{ query: people.gq, name: older, args: [least], graph: team }}
  new: {{ command: change, query: people.gq, name: add, args: [slug], graph: team }}
{more}"""
    )


def test_an_alias_binds_positional_arguments(graph: Path) -> None:
    project(graph)

    outcome = run("query", "--alias", "who", "ada")

    assert (outcome.code, outcome.out) == (0, "p.slug,p.age\nada,36\n")


def test_positional_arguments_get_the_types_that_the_query_declares(graph: Path) -> None:
    project(graph)
    run("mutate", "--alias", "new", "42")

    assert run("query", "--alias", "who", "42").out == "p.slug,p.age\n42,null\n"
    assert run("query", "--alias", "older", "40", "--format", "csv").out == "p.slug\ngrace\n"


def test_params_override_positional_arguments(graph: Path) -> None:
    project(graph)

    outcome = run("query", "--alias", "who", "ada", "--params", '{"slug": "grace"}')

    assert outcome.out == "p.slug,p.age\ngrace,45\n"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (
            ("query", "--alias", "whoo", "x"),
            1,
            "alias 'whoo' is not configured — did you mean `who",
        ),
        (("query", "--alias", "new", "x"), 1, "alias 'new' is a mutate — use omnigraph mutate"),
        (("mutate", "--alias", "who", "x"), 1, "alias 'who' is a query — use omnigraph query"),
        (("query", "--alias", "who", "a", "1", "c"), 2, "takes slug, least, but 3 were given"),
        (("query", "--alias", "who", "-e", "x"), 2, "--alias has its query already"),
        (("query", "--alias", "who"), 1, "parameter 'slug' not provided"),
        (("query", "a", "b", "--query", "people.gq"), 2, "one query runs at a time"),
    ],
)
def test_an_alias_that_cannot_run_says_why(
    graph: Path, command: tuple[str, ...], code: int, message: str
) -> None:
    project(graph)

    outcome = run(*command)

    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_the_format_is_the_flag_then_the_alias_then_the_operator_then_the_project(
    graph: Path, home: Path
) -> None:
    project(graph, "cli: { output_format: kv }\n")

    def first_line(*flags: str) -> str:
        return run("query", *flags).out.splitlines()[0]

    assert first_line("--alias", "who", "ada", "--format", "jsonl").startswith('{"kind"')
    assert first_line("--alias", "who", "ada", "--json") == "{"
    assert first_line("--alias", "who", "ada") == "p.slug,p.age"
    assert run("query", "--alias", "older", "40").out.splitlines()[1] == "row 1"
    (home / "config.yaml").write_text("defaults: { output: jsonl }\n")
    assert first_line("--alias", "older", "40").startswith('{"kind"')


def test_an_explicit_address_wins_over_the_alias_s_graph(graph: Path, tmp_path: Path) -> None:
    project(graph)
    other = make_graph(tmp_path / "other")
    run("mutate", "-e", 'query d() { delete Person where slug = "ada" }', "--store", other)

    assert run("query", "--alias", "who", "ada", "--store", other).out == "p.slug,p.age\n"


def test_an_operator_alias_runs_a_stored_query(url: str, home: Path) -> None:
    (home / "config.yaml").write_text(
        f"servers: {{ lab: {{ url: '{url}' }} }}\n"
        "aliases:\n"
        "  who: { server: lab, graph: default, query: find, args: [slug], format: csv }\n"
        "  grown: { server: lab, query: older, args: [least], params: { least: 40 },\n"
        "           format: csv }\n"
        "  new: { server: lab, query: add, args: [slug] }\n"
    )

    assert run("alias", "who", "ada").out == "p.slug,p.age\nada,36\n"
    assert run("alias", "grown").out == "p.slug\ngrace\n", "the alias has a default"
    assert run("alias", "grown", "30").out == "p.slug\nada\ngrace\n", "a word wins over it"
    assert run("alias", "grown", "99", "--params", '{"least": 1}').out == "p.slug\nada\ngrace\n"
    assert json.loads(run("alias", "who", "ada", "--json").out)["query_name"] == "find"
    assert run("query", "--alias", "who", "grace").out == "p.slug,p.age\ngrace,45\n"
    refused = run("alias", "new", "lin")
    assert refused.code == 1
    assert "is a mutation" in refused.err
    assert run("alias", "who", "1", "2").code == 2


def test_query_prefers_the_project_alias_and_alias_the_operator_alias(
    url: str, graph: Path, home: Path
) -> None:
    project(graph)
    (home / "config.yaml").write_text(
        f"servers: {{ lab: {{ url: '{url}' }} }}\n"
        "aliases: { who: { server: lab, query: older, params: { least: 1 }, format: csv } }\n"
    )

    assert run("alias", "who").out.startswith("p.slug\n"), "the operator's"
    assert run("query", "--alias", "who", "ada").out.startswith("p.slug,p.age\n"), "the project's"


def test_a_stored_query_runs_by_its_name_alone(url: str, graph: Path) -> None:
    read = run("query", "find", "--params", '{"slug": "ada"}', "--server", url, "--format", "csv")
    change = run("mutate", "add", "--params", '{"slug": "lin"}', "--server", url)
    wrong = run("query", "add", "--params", '{"slug": "x"}', "--server", url)
    unknown = run("query", "nope", "--server", url)
    bare = run("query", "find", "--store", graph)
    project(graph)
    listed = run("query", "find", "--target", "team", "--params", '{"slug": "ada"}')

    assert read.out == "p.slug,p.age\nada,36\n"
    assert change.out == "changed main via add: 1 nodes, 0 edges\n"
    assert (wrong.code, unknown.code) == (1, 1)
    assert "is a mutation" in wrong.err
    assert "stored query not found" in unknown.err
    assert bare.code == 2
    assert "this graph is not on a server" in bare.err
    assert listed.code == 0, "omnigraph.yaml names its file"


def test_a_query_file_is_found_in_the_roots(graph: Path) -> None:
    project(graph)

    found = run(
        "query", "older", "--query", "people.gq", "--params", '{"least": 1}', "--target", "team"
    )
    lost = run("query", "--query", "peple.gq", "--target", "team")

    assert found.code == 0, found.err
    assert "cannot read 'peple.gq': no such file, nor in 'queries'" in lost.err


def test_wide_cells_are_cut_or_wrapped_as_configured(graph: Path, home: Path) -> None:
    text = 'query q() { match { $p: Person { slug: "ada" } } return { $p.name as long_name } }'
    name = 'query n() { update Person set { name: "0123456789abcdef" } where slug = "ada" }'
    run("mutate", "-e", name, "--store", graph)
    Path("omnigraph.yaml").write_text("cli: { table_max_column_width: 9 }\n")

    cut = run("query", "-e", text, "--store", graph).out.splitlines()[1:]
    (home / "config.yaml").write_text(
        "defaults: { table_max_column_width: 1, table_cell_layout: wrap }\n"
    )
    wrapped = run("query", "-e", text, "--store", graph).out.splitlines()[1:]

    assert cut == ["long_name", "---------", "01234567…"]
    assert wrapped == ["long_nam", "e", "--------", "01234567", "89abcdef"]


def test_stored_queries_are_listed_and_checked(graph: Path) -> None:
    project(graph)

    listed = run("queries", "list", "--target", "team")
    described = json.loads(run("queries", "list", "--target", "team", "--json").out)
    checked = run("queries", "validate", "--target", "team")

    assert listed.out == (
        "add($slug: String) mutation (not listed)\nfind($slug: String, $least: I32?) read\n"
    )
    assert described["queries"][1] == {
        "name": "find",
        "mcp_expose": True,
        "tool_name": "find_person",
        "mutation": False,
        "description": "Finds a person.",
        "params": [
            {"name": "slug", "type": "String", "nullable": False},
            {"name": "least", "type": "I32", "nullable": True},
        ],
    }
    assert (checked.code, checked.out) == (0, "OK    query `add`\nOK    query `find`\n")


def test_a_stored_query_that_does_not_fit_the_schema_fails_validation(graph: Path) -> None:
    project(graph)
    Path("queries/people.gq").write_text("query find() { match { $p: Persn } return { $p.x } }")

    outcome = run("queries", "validate", "--target", "team", "--json")

    report = json.loads(outcome.out)
    assert (outcome.code, report["ok"]) == (1, False)
    assert [each["query"] for each in report["breakages"]] == ["add", "find"]


def test_login_keeps_a_token_that_requests_then_carry(
    graph: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(single(graph, tokens={"ada": "secret-1"})) as server:
        (home / "config.yaml").write_text(f"servers: {{ lab: {{ url: '{server.url}' }} }}\n")
        before = run("snapshot", "--server", "lab")
        monkeypatch.setattr("sys.stdin", io.StringIO("secret-1\n"))
        login = run("login", "lab", "--json")
        after = run("snapshot", "--server", "lab")
        by_address = run("snapshot", "--server", f"{server.url}/graphs/default")
        logout = run("logout", "lab")
        again = run("logout", "lab")
        gone = run("snapshot", "--server", "lab")

    path = home / "credentials"
    assert json.loads(login.out) == {
        "server": "lab",
        "credentials_path": str(path),
        "declared": True,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.code for each in (before, after, by_address, gone)] == [1, 0, 0, 1]
    assert (logout.code, again.code) == (0, 0)
    assert "secret-1" not in login.out + login.err


def test_login_to_an_undeclared_server_stores_the_token_and_warns(home: Path) -> None:
    outcome = run("login", "lab", "--token", "x")

    assert outcome.code == 0
    assert "there is no server 'lab'" in outcome.err
    assert (home / "credentials").read_text() == "[lab]\ntoken = x\n"


def test_login_without_a_token_keeps_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    outcome = run("login", "lab")

    assert outcome.code == 1
    assert "no token was given" in outcome.err
    assert not (home / "credentials").exists()


def test_profiles_are_listed_with_what_is_wrong_with_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.yaml").write_text(
        "servers: { lab: { url: 'http://lab:1' } }\n"
        "profiles:\n"
        "  staging: { server: lab, default_graph: g }\n"
        "  lost: { server: nowhere }\n"
        "  none: {}\n"
        "defaults: { output: kv, store: /data/mine }\n"
    )
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "staging")

    listed = json.loads(run("profile", "list", "--json").out)
    text = run("profile", "list").out.splitlines()
    active = json.loads(run("profile", "show", "--json").out)
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    default = run("profile", "show").out

    assert [each["valid"] for each in listed] == [True, False, False]
    assert listed[0] == {
        "name": "staging",
        "binding": "server=lab",
        "scope_kind": "server",
        "target": "lab",
        "valid": True,
        "error": None,
        "default_graph": "g",
        "active": True,
    }
    assert text[0] == "* staging server=lab graph=g"
    assert "server 'nowhere' is not in" in text[1]
    assert active == {
        "name": "staging",
        "scope_kind": "server",
        "target": "lab",
        "endpoint": "http://lab:1",
        "default_graph": "g",
        "output_format": "kv",
    }
    assert default.splitlines()[1:3] == ["scope_kind: store", "target: /data/mine"]


def test_without_a_profile_or_a_default_there_is_nothing_to_show() -> None:
    outcome = run("profile", "show")

    assert outcome.code == 1
    assert "no profile is active" in outcome.err


@pytest.mark.parametrize("old", ["lint", "check"])
def test_the_old_names_of_lint_under_query_work_and_say_so(graph: Path, old: str) -> None:
    outcome = run("query", old, "--query", "queries/people.gq", graph)

    assert outcome.code == 0
    assert f"`omnigraph query {old}` is deprecated; use `omnigraph lint`" in outcome.err
    assert "INFO  Lint complete: 3 queries processed" in outcome.out


@pytest.mark.parametrize(
    ("old", "new"),
    [(("read", "-e"), "query"), (("change", "-e"), "mutate"), (("schema", "get"), "schema show")],
)
def test_old_names_work_identically_and_say_so(graph: Path, old: tuple[str, ...], new: str) -> None:
    text = {
        "query": "query q() { match { $p: Person } return { $p.slug } order { $p.slug } }",
        "mutate": 'query q() { delete Person where slug = "nobody" }',
    }.get(new)
    rest = [text] if text else []

    before = run(*old, *rest, "--store", graph)
    after = run(*new.split(), *(["-e", text] if text else []), "--store", graph)

    assert (before.code, before.out) == (0, after.out)
    assert before.err == (
        f"warning: `omnigraph {' '.join(old).removesuffix(' -e')}` is deprecated; "
        f"use `omnigraph {new}` instead\n"
    )
