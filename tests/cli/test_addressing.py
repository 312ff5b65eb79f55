"""Addressing: every way to say which graph, and every flag that a command has no use for."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.http.serving import PEOPLE, make_graph, served, single

HEADLINE = "2 rows from branch main via people"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph, and the present directory for config files."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return make_graph(tmp_path / "graph")


@pytest.fixture
def url(graph: Path) -> Iterator[str]:
    with served(single(graph)) as server:
        yield server.url


def reads(*flags: str | Path) -> bool:
    outcome = run("query", "-e", PEOPLE, *flags)
    assert outcome.code == 0, outcome.err
    return outcome.out.startswith(HEADLINE)


def test_a_store_is_addressed_in_every_way(graph: Path, home: Path) -> None:
    Path("omnigraph.yaml").write_text(f"graphs: {{ team: {{ uri: {graph} }} }}\n")
    (home / "config.yaml").write_text(f"profiles: {{ mine: {{ store: {graph} }} }}\n")

    assert reads("--store", graph)
    assert reads("--uri", graph)
    assert reads("--store", f"file://{graph}")
    assert reads("--target", "team")
    assert reads("--profile", "mine")
    assert run("snapshot", graph).code == 0
    assert run("--store", str(graph), "snapshot").code == 0, "before the command too"
    (home / "config.yaml").write_text(f"defaults: {{ store: {graph} }}\n")
    assert reads()


def test_a_server_is_addressed_in_every_way(url: str, home: Path) -> None:
    Path("other.yaml").write_text(f"graphs: {{ far: {{ uri: '{url}/graphs/default' }} }}\n")
    (home / "config.yaml").write_text(
        f"servers: {{ lab: {{ url: '{url}' }} }}\n"
        "profiles: { lab: { server: lab, default_graph: default } }\n"
        "defaults: { server: lab }\n"
    )

    assert reads("--server", url)
    assert reads("--server", url, "--graph", "default")
    assert reads("--server", f"{url}/graphs/default")
    assert reads("--server", "lab")
    assert reads("--profile", "lab")
    assert reads("--target", "far", "--config", "other.yaml")
    assert reads()


def test_the_project_s_graph_branch_and_actor_are_the_defaults(graph: Path) -> None:
    Path("omnigraph.yaml").write_text(
        f"graphs: {{ team: {{ uri: {graph} }} }}\ncli: {{ graph: team, branch: dev, actor: ada }}\n"
    )
    run("branch", "create", "dev")
    delete = 'query gone() { delete Person where slug = "ada" }'

    outcome = run("mutate", "-e", delete)

    assert outcome.out == "changed dev via gone: 1 nodes, 1 edges\nactor_id: ada\n"
    assert run("query", "-e", PEOPLE).out.startswith("1 rows from branch dev")
    assert reads("--branch", "main")


def test_the_actor_is_the_flag_then_the_operator_then_the_project(graph: Path, home: Path) -> None:
    Path("omnigraph.yaml").write_text("cli: { actor: project }\n")
    grow = 'query grow() { update Person set { age: 1 } where slug = "ada" }'

    def actor(*flags: str) -> str:
        outcome = run("mutate", "-e", grow, "--store", graph, *flags, "--json")
        found: str = json.loads(outcome.out)["commit"]["actor_id"]
        return found

    assert actor() == "project"
    (home / "config.yaml").write_text("operator: { actor: operator }\n")
    assert actor() == "operator"
    assert actor("--as", "flag") == "flag"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ("init", "--schema", "x", "--server", "x"),
            "init is a direct command; --server addresses a served graph and does not apply. "
            "Use the graph's path or --store <path or URI>.",
        ),
        (
            ("init", "g", "--schema", "x", "--graph", "x"),
            "init is a direct command; --graph picks a graph inside a server",
        ),
        (("cleanup", "g", "--keep", "1", "--cluster", "c"), "clusters are not part of this build"),
        (("snapshot", "--cluster", "c"), "clusters are not part of this build"),
        (
            ("graphs", "list", "--store", "x"),
            "graphs list is a served command; --store addresses one graph's storage",
        ),
        (
            ("graphs", "list", "--graph", "x"),
            "graphs list is a served command; --graph picks a graph inside a server",
        ),
        (
            ("query", "-e", PEOPLE, "--store", "x", "--as", "ada"),
            "query is a read command; --as names the actor of a direct write",
        ),
        (
            ("queries", "list", "--server", "x"),
            "queries list is a control command; --server addresses a served graph",
        ),
        (
            ("login", "prod", "--server", "x"),
            "login is a local command; --server addresses a served graph and does not apply. "
            "It needs no graph.",
        ),
        (("profile", "list", "--profile", "x"), "profile list is a local command; --profile"),
        (("embed", "--server", "a", "--store", "b"), "--store and --server are mutually"),
        (("snapshot", "a", "--server", "b"), "a URI and --server are mutually exclusive"),
        (("snapshot", "--store", "a", "--server", "b"), "--store and --server are mutually"),
        (("snapshot", "--store", "a", "--graph", "b"), "--graph picks a graph inside a server"),
        (("--store", "a", "snapshot", "--server", "b"), "--store and --server are mutually"),
        (("--store", "a", "version"), "version is a local command; --store addresses"),
        (("--config", "a", "policy", "validate"), "put them after the command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_flag_that_does_not_apply_is_an_error(
    graph: Path, command: tuple[str, ...], message: str
) -> None:
    outcome = run(*command)

    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_what_only_works_on_a_store_is_refused_over_a_server(url: str) -> None:
    for command in (
        ("query", "-e", PEOPLE, "--at", "2020-01-01"),
        ("export", "--snapshot", "x"),
        ("load", "--data", "x", "--mode", "merge", "--on-error", "quarantine"),
    ):
        outcome = run(*command, "--server", url)
        assert outcome.code == 2
        assert "works on a store, not over a server" in outcome.err
    outcome = run("mutate", "-e", PEOPLE, "--server", url, "--as", "ada")
    assert outcome.code == 2
    assert "The server takes the actor from the token." in outcome.err


def test_a_direct_command_does_not_follow_a_default_to_a_server(graph: Path, home: Path) -> None:
    (home / "config.yaml").write_text(
        "servers: { lab: { url: 'http://lab:1' } }\ndefaults: { server: lab }\n"
    )

    outcome = run("schema", "plan", "--schema", "x")

    assert outcome.code == 2
    assert "schema plan is a direct command; http://lab:1 addresses a served graph" in outcome.err


def test_of_several_graphs_one_has_to_be_picked(tmp_path: Path, graph: Path) -> None:
    from dataclasses import replace

    from omnigraph.server.settings import ServedGraph

    two = tuple(ServedGraph(name, str(make_graph(tmp_path / name))) for name in ("one", "two"))
    policy = (
        "version: 1\nkind: server\ngroups: { all: [ada] }\n"
        "rules:\n  - id: list\n    allow: { actors: { group: all }, actions: [graph_list] }\n"
    )
    settings = replace(
        single(graph, tokens={"ada": "t"}),
        graphs=two,
        is_single=False,
        server_policy_text=policy,
    )
    with pytest.MonkeyPatch.context() as patch, served(settings) as server:
        patch.setenv("OMNIGRAPH_BEARER_TOKEN", "t")
        listed = run("graphs", "list", "--server", server.url)
        unclear = run("snapshot", "--server", server.url)
        clear = run("snapshot", "--server", server.url, "--graph", "two")

    assert listed.out == f"one\t{tmp_path / 'one'}\ntwo\t{tmp_path / 'two'}\n"
    assert unclear.code == 2
    assert "pick one with --graph: one, two" in unclear.err
    assert clear.code == 0, clear.err


def test_a_server_that_is_not_there_is_one_clear_error() -> None:
    outcome = run("snapshot", "--server", "http://127.0.0.1:1")

    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: no response from http://127.0.0.1:1: ")


def test_a_wrong_token_is_reported_but_not_printed(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(single(graph, tokens={"ada": "right"})) as server:
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "wrong-one")
        wrong = run("snapshot", "--server", server.url)
        monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN")
        missing = run("snapshot", "--server", server.url)
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "right")
        right = run("snapshot", "--server", server.url)

    assert (wrong.code, missing.code, right.code) == (1, 1, 0)
    assert wrong.err.startswith("error: invalid bearer token — `omnigraph login")
    assert missing.err.startswith("error: missing bearer token — ")
    assert "wrong-one" not in wrong.err


@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize(
    "command", [("branch", "delete", "dev"), ("load", "--data", "x.jsonl", "--mode", "overwrite")]
)
def test_a_removal_on_another_machine_needs_consent(
    url: str, command: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    """Without a terminal to ask on there is only the flag."""
    Path("x.jsonl").write_text('{"type": "Company", "data": {"slug": "x"}}\n')
    run("branch", "create", "dev", "--server", url)

    refused = run(*command, *flags, "--server", url)
    agreed = run(*command, *flags, "--server", url, "--yes")

    assert refused.code == 1
    assert "add --yes" in refused.err
    assert agreed.code == 0, agreed.err


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("said", "code"), [("yes", 0), ("Y", 0), ("no", 1), ("maybe", 1)])
def test_on_a_terminal_the_user_is_prompted(
    url: str, monkeypatch: pytest.MonkeyPatch, said: str, code: int
) -> None:
    run("branch", "create", "dev", "--server", url)
    monkeypatch.setattr("sys.stdin", Terminal(f"{said}\n"))

    outcome = run("branch", "delete", "dev", "--server", url)

    assert outcome.code == code
    assert f"delete branch dev on {url}? [yes/no]" in outcome.err
    assert ("dev" in run("branch", "list", "--server", url).out) == bool(code)
    assert outcome.out == ("" if code else "deleted branch dev\n"), "stdout has results only"


def test_a_removal_on_this_machine_needs_no_consent(graph: Path) -> None:
    run("branch", "create", "dev", "--store", graph)

    assert run("branch", "delete", "dev", "--store", graph).code == 0
    assert run("cleanup", f"file://{graph}", "--keep", "1", "--confirm").code == 0


def test_a_removal_in_a_bucket_needs_consent() -> None:
    outcome = run("cleanup", "s3://bucket/graph", "--keep", "1", "--confirm")

    assert outcome.code == 1
    assert "omnigraph cleanup → s3://bucket/graph (direct, remote)" in outcome.err
    assert "add --yes to remove old versions" in outcome.err


def test_writes_say_where_and_quiet_does_not(url: str) -> None:
    loud = run("branch", "create", "a", "--server", url)
    quiet = run("branch", "create", "b", "--server", url, "--quiet")

    assert loud.err == f"omnigraph branch create → {url} (served)\n"
    assert quiet.err == ""


def test_a_served_error_names_the_file_it_is_about(url: str) -> None:
    Path("typo.gq").write_text("query q() {\n    match { $p: Person }\n    return { $p.nmae }\n}\n")
    Path("bad.jsonl").write_text('\n{"type": "Persn", "data": {}}\n')

    query = run("query", "--query", "typo.gq", "--server", url)
    load = run("load", "--data", "bad.jsonl", "--mode", "merge", "--server", url)

    assert " --> typo.gq:3:17\n" in query.err
    assert "error: bad.jsonl:2: record: unknown node type" in load.err


def test_a_served_load_accepts_the_same_files_as_a_direct_load(url: str) -> None:
    """Comments, records over several lines, arrays, compressed files, several files."""
    import gzip

    Path("a.jsonl").write_text('// two\n{"type": "Company",\n "data": {"slug": "a"}}\n')
    Path("b.json").write_text(
        '[{"type": "Company", "data": {"slug": "b"}},\n {"type": "Company", "data": {"slug": "c"}}]'
    )
    with gzip.open("c.jsonl.gz", "wt") as file:
        file.write('{"type": "Company", "data": {"slug": "d"}}\n')

    outcome = run(
        "load", "--data", "[ab].json*", "--data", "c.jsonl.gz", "--mode", "append", "--server", url
    )

    assert outcome.code == 0, outcome.err
    assert "4 entities across 1 node types" in outcome.out
    lines = run("export", "--type", "Company", "--server", url).out.splitlines()
    slugs = [json.loads(line)["data"]["slug"] for line in lines]
    assert slugs == ["a", "acme", "b", "c", "d"]


def test_an_export_from_a_server_is_compressed_as_its_name_says(url: str) -> None:
    run("export", "--server", url, "--out", "all.jsonl.gz")

    packed = Path("all.jsonl.gz").read_bytes()
    assert gzip.decompress(packed).decode() == run("export", "--server", url).out


def test_a_device_is_not_sent_to_a_server(url: str) -> None:
    sent = run("load", "--server", url, "--data", "/dev/zero", "--mode", "merge")

    assert sent.code != 0
    assert "it is a device" in sent.err


def test_an_interrupted_export_leaves_no_file(url: str) -> None:
    whole = run("export", "--server", url, "--out", "all.jsonl")
    none = run("export", "--server", url, "--out", "none.jsonl", "--type", "Nope")

    assert whole.code == 0
    assert Path("all.jsonl").read_text() == run("export", "--server", url).out
    assert none.code == 1
    assert sorted(each.name for each in Path().iterdir()) == ["all.jsonl"]


def test_init_force_removes_the_files_of_an_interrupted_init(graph: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    (half / "_schema.pg").write_text("node Old { }")
    Path("new.pg").write_text("node New { slug: String @key }")

    refused = run("init", half, "--schema", "new.pg")
    forced = run("init", half, "--schema", "new.pg", "--force")
    there = run("init", half, "--schema", "new.pg", "--force")

    assert (refused.code, forced.code, there.code) == (1, 0, 1)
    assert "part of a graph exists" in refused.err
    assert "a graph already exists" in there.err
    assert run("schema", "show", half).out == "node New { slug: String @key }\n"


POLICY = """\
version: 1
groups: { writers: [ada] }
protected_branches: [main]
rules:
  - id: off-main
    allow: { actors: { group: writers }, actions: [change], branch_scope: unprotected }
  - id: make
    allow: { actors: { group: writers }, actions: [branch_create], target_branch_scope: any }
"""


def test_a_project_s_policy_gates_direct_writes_and_a_plain_store_has_none(graph: Path) -> None:
    Path("policy.yaml").write_text(POLICY)
    Path("omnigraph.yaml").write_text(
        f"graphs: {{ team: {{ uri: {graph}, policy: {{ file: policy.yaml }} }} }}\n"
    )
    grow = 'query grow() { update Person set { age: 1 } where slug = "ada" }'
    target = ("--target", "team")

    assert run("branch", "create", "dev", *target, "--as", "ada").code == 0
    denied = run("mutate", "-e", grow, *target, "--as", "ada")
    allowed = run("mutate", "-e", grow, *target, "--as", "ada", "--branch", "dev")
    nobody = run("mutate", "-e", grow, *target, "--branch", "dev")
    plain = run("mutate", "-e", grow, "--store", graph)

    assert denied.code == 1
    assert "policy denied action 'change' on branch 'main'" in denied.err
    assert allowed.code == 0, allowed.err
    assert nobody.code == 1
    assert plain.code == 0


def test_a_misspelt_key_of_the_project_file_is_an_error(graph: Path) -> None:
    Path("omnigraph.yaml").write_text("grphs: {}\n")

    outcome = run("query", "-e", PEOPLE, "--store", graph)

    assert outcome.code == 1
    assert outcome.err.startswith("error: omnigraph.yaml:1:1: the key 'grphs' is not one of ")
    assert outcome.err.endswith(" — did you mean `graphs`?\n")


def test_a_misspelt_key_of_the_operator_config_is_warned_about_once(
    graph: Path, home: Path
) -> None:
    (home / "config.yaml").write_text("servrs: {}\n")

    outcome = run("query", "-e", PEOPLE, "--store", graph)

    assert outcome.code == 0
    assert outcome.err == (
        f"warning: {home}/config.yaml:1:1: the key 'servrs' is not one of operator, servers, "
        "clusters, profiles, defaults, aliases, and is ignored — did you mean `servers`?\n"
    )


def test_a_broken_config_file_is_named_with_its_line(graph: Path) -> None:
    Path("omnigraph.yaml").write_text("graphs:\n  team: [\n")

    outcome = run("snapshot", "--target", "team")

    assert outcome.code == 1
    assert outcome.err.startswith("error: omnigraph.yaml:3:1: this is not YAML — ")
