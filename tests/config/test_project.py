"""`omnigraph.yaml`: every key of it, and what is wrong with a file, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import load_project
from omnigraph.config.project import ProjectAlias, StoredEntry
from omnigraph.errors import BadRequestError, ConfigError
from tests.config.conftest import Writer

FULL = """\
project: { name: team }
graphs:
  team:
    uri: data/team.omni
    bearer_token_env: TEAM_TOKEN
    policy: { file: team.policy.yaml }
    queries:
      find: { file: queries/find.gq, mcp: { expose: false, tool_name: find_person } }
  cloud: { uri: "s3://bucket/cloud" }
  far: { uri: "https://graph.example.com/graphs/far" }
server: { graph: team, bind: "0.0.0.0:9000", policy: { file: server.yaml } }
cli: { graph: cloud, branch: dev, actor: ada, output_format: kv,
       table_max_column_width: 4, table_cell_layout: wrap }
query: { roots: [queries, more], schema: app.pg }
auth: { env_file: ./.env.omni }
aliases:
  who: { command: read, query: find.gq, name: find, args: [slug, day], graph: team, branch: b,
         format: csv }
  fix: { command: change, query: fix.gq }
"""


# Ten times ten times ten: a short text that stands for more than any memory holds.
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


def test_every_key_is_read_and_paths_are_relative_to_the_file(project: Writer) -> None:
    found = load_project(project(FULL))

    root = found.directory
    team = found.graph("team")
    assert found.name == "team"
    assert (team.uri, team.bearer_token_env) == (str(root / "data/team.omni"), "TEAM_TOKEN")
    assert team.policy_file == root / "team.policy.yaml"
    assert team.queries == {"find": StoredEntry(root / "queries/find.gq", False, "find_person")}
    assert found.graph("cloud").uri == "s3://bucket/cloud"
    assert found.graph("far").is_served
    assert (found.server.graph, found.server.bind) == ("team", "0.0.0.0:9000")
    assert found.server.policy_file == root / "server.yaml"
    assert (found.cli.graph, found.cli.branch, found.cli.actor) == ("cloud", "dev", "ada")
    assert (found.cli.output_format, found.cli.table_cell_layout) == ("kv", "wrap")
    assert found.cli.table_max_column_width == 8, "narrower than 8 cannot be read"
    assert found.query_roots == (root / "queries", root / "more")
    assert found.query_schema == root / "app.pg"
    assert found.auth_env_file == root / ".env.omni"
    assert found.aliases["who"] == ProjectAlias(
        "who", "query", "find.gq", "find", ("slug", "day"), "team", "b", "csv"
    )
    assert found.aliases["fix"].command == "mutate"


def test_no_file_is_an_empty_project() -> None:
    found = load_project()

    assert (found.path, dict(found.graphs), found.cli.branch) == (None, {}, None)


def test_the_file_of_the_present_directory_is_found(project: Writer) -> None:
    project("project: { name: here }")

    assert load_project().name == "here"


def test_a_file_that_is_named_has_to_be_there() -> None:
    with pytest.raises(ConfigError, match=r"cannot read 'other\.yaml': no such file"):
        load_project(Path("other.yaml"))


def test_an_empty_file_is_an_empty_project(project: Writer) -> None:
    assert load_project(project("# nothing yet\n")).graphs == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: [1\nb: 2", 2, "not YAML"),
        ("project: {name: x}\n\tx: 1", 2, "not YAML"),
        ("project: { name: a }\nproject: { name: b }", 2, "the key 'project' is on line 1 already"),
        ("- a\n- b", 1, "the file is a list, expected a mapping"),
        ("graphs:\n  team: nowhere", 2, "graphs.team is a text, expected a mapping"),
        ("graphs:\n  team:\n    policy: {}", 2, "graphs.team: the key 'uri' is missing"),
        ("graphs:\n  team:\n    uri: [a]", 3, "graphs.team.uri is a list, expected a text"),
        ("graphs:\n  team:\n    uri: '  '", 3, "graphs.team.uri is blank"),
        (
            "cli:\n  output_format: xml",
            2,
            "cli.output_format: 'xml' is not one of table, kv, ",
        ),
        ("cli:\n  table_max_column_width: wide", 2, "expected a whole number"),
        ("cli:\n  table_max_column_width: true", 2, "expected a whole number"),
        (
            "aliases:\n  a:\n    query: x.gq\n    command: erase",
            4,
            "'erase' is not one of read, ",
        ),
        ("aliases:\n  a:\n    query: x.gq\n    args: p", 4, "expected a list"),
        ("aliases:\n  a: {}", 2, "aliases.a: the key 'query' is missing"),
        ("queries:\n  q:\n    file: q.gq\n    mcp: { expose: maybe }", 4, "expected true or false"),
        ("a: &x [*x]", 1, "the alias '*x' names nothing above it"),
        (BOMB, 6, "there are more than 100000 values"),
        (
            "a: !!python/object:os.system x",
            1,
            "the tag 'tag:yaml.org,2002:python/",
        ),
        ("? [a, b]\n: c", 1, "a key is not a text"),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    project: Writer, text: str, line: int, problem: str
) -> None:
    path = project(text)

    with pytest.raises(ConfigError) as caught:
        load_project(path)

    assert str(caught.value).startswith(f"{path}:{line}:")
    assert problem in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "omnigraph.yaml").write_bytes(b"a: \xff")

    with pytest.raises(ConfigError, match="not UTF-8"):
        load_project()


def test_an_unknown_graph_is_named_with_the_nearest(project: Writer) -> None:
    found = load_project(project(FULL))

    with pytest.raises(ConfigError, match=r"graph 'tem' not found in omnigraph\.yaml — .*`team`"):
        found.graph("tem")


@pytest.mark.parametrize(
    ("top", "named"),
    [
        ("policy: { file: p.yaml }", "policy.file"),
        ("queries: { q: { file: q.gq } }", "queries"),
        ("policy: { file: p.yaml }\nqueries: { q: { file: q.gq } }", "policy.file and queries"),
    ],
)
def test_settings_of_the_unnamed_graph_do_not_go_with_a_named_one(
    project: Writer, top: str, named: str
) -> None:
    """They would be ignored, and a policy that is ignored is worse than an error."""
    found = load_project(project(f"graphs: {{ team: {{ uri: t }} }}\n{top}\n"))

    with pytest.raises(ConfigError, match=f"{named} at the top would be ignored for graph 'team'"):
        found.graph("team")


def test_an_empty_top_level_setting_has_no_effect(project: Writer) -> None:
    found = load_project(project("graphs: { team: { uri: t } }\npolicy: {}\nqueries: {}\n"))

    assert found.graph("team").name == "team"


def test_a_query_file_is_found_as_typed_then_beside_the_file_then_in_the_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    elsewhere = tmp_path / "elsewhere"
    for folder in (root / "queries", root / "more", elsewhere):
        folder.mkdir(parents=True)
    (root / "omnigraph.yaml").write_text("query: { roots: [queries, more] }")
    found = load_project(root / "omnigraph.yaml")
    monkeypatch.chdir(elsewhere)
    places = [
        root / "more" / "a.gq",
        root / "queries" / "a.gq",
        root / "a.gq",
        elsewhere / "a.gq",
    ]

    for place in places:
        place.write_text("x")
        assert found.query_file("a.gq").resolve() == place, "each beats the ones before"

    assert found.query_file(str(places[0])) == places[0]
    with pytest.raises(BadRequestError, match=r"cannot read 'b\.gq': no such file, nor in"):
        found.query_file("b.gq")
