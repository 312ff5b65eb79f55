"""Boot forms: what the arguments, the project file and the environment come to."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.server.boot import Arguments, resolve_settings
from omnigraph.server.main import app

PROJECT = """
graphs:
  alpha: { uri: ./a, policy: { file: ./policy.yaml } }
  beta: { uri: ./b, queries: { find: { file: find.gq } } }
server: { bind: "127.0.0.1:9999", policy: { file: ./server.yaml } }
"""
OPEN = {"OMNIGRAPH_UNAUTHENTICATED": "1"}
TOKEN = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text("version: 1")
    (tmp_path / "server.yaml").write_text("version: 1")
    path = tmp_path / "project.yaml"
    path.write_text(PROJECT)
    return path


def test_a_uri_is_one_graph_called_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    settings = resolve_settings(Arguments(uri="./g"), OPEN)

    assert [(each.graph_id, each.uri) for each in settings.graphs] == [("default", "./g")]
    assert settings.is_single
    assert settings.unauthenticated
    assert settings.bind == "127.0.0.1:8080"


def test_a_target_is_one_graph_under_its_name(project: Path) -> None:
    settings = resolve_settings(Arguments(target="alpha", config=project), TOKEN)

    assert [each.graph_id for each in settings.graphs] == ["alpha"]
    assert settings.graphs[0].policy_text == "version: 1"
    assert settings.is_single
    assert settings.bind == "127.0.0.1:9999"
    assert not settings.is_open


def test_a_project_serves_all_of_its_graphs(project: Path) -> None:
    settings = resolve_settings(Arguments(config=project, bind="0.0.0.0:1"), TOKEN)

    assert [each.graph_id for each in settings.graphs] == ["alpha", "beta"]
    assert not settings.is_single
    assert set(settings.graphs[1].queries) == {"find"}
    assert settings.server_policy_text == "version: 1"
    assert settings.bind == "0.0.0.0:1"


def test_the_graph_that_a_project_names_for_its_server_is_the_one(project: Path) -> None:
    project.write_text(PROJECT.replace("server: {", "server: { graph: beta,"))

    settings = resolve_settings(Arguments(config=project), TOKEN)

    assert [each.graph_id for each in settings.graphs] == ["beta"]
    assert settings.is_single


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (Arguments(cluster="x"), "does not serve a cluster"),
        (Arguments(uri="x", target="y"), "give one of them"),
        (Arguments(target="nope"), "graph 'nope' not found"),
        (Arguments(), "no graph to serve"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Arguments, words: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(OmnigraphError, match=words):
        resolve_settings(arguments, OPEN).check()


@pytest.mark.parametrize(("value", "is_on"), [("", 0), ("0", 0), ("false", 0), ("1", 1), ("no", 1)])
def test_a_switch_in_the_environment_is_on_unless_it_says_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, is_on: int
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"OMNIGRAPH_UNAUTHENTICATED": value, "OMNIGRAPH_REQUIRE_ALL_GRAPHS": value}

    settings = resolve_settings(Arguments(uri="x"), environment)

    assert settings.unauthenticated == settings.require_all_graphs == bool(is_on)


@pytest.mark.usefixtures("logs_as_before")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing", "--unauthenticated"], "no graph at"),
        ([], "no graph to serve"),
        (["--cluster", "x"], "does not serve a cluster"),
        (["nothing"], "there are no bearer tokens"),
    ],
)
def test_a_command_that_cannot_serve_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, [*arguments, "--bind", "127.0.0.1:0"])

    assert isinstance(result.exception, OmnigraphError)
    assert words in str(result.exception)


def test_the_help_of_the_server_names_every_form() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output

    for word in ("--target", "--config", "--bind", "--unauthenticated", "--require-all-graphs"):
        assert word in shown


@pytest.mark.parametrize("chosen", [{"target": "local_s3"}, {}], ids=["by name", "as the only one"])
def test_a_graph_whose_name_cannot_stand_in_a_path_is_served_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, chosen: dict[str, str]
) -> None:
    config = tmp_path / "omnigraph.yaml"
    config.write_text("graphs: { local_s3: { uri: ./a } }")

    settings = resolve_settings(Arguments(config=config, **chosen), OPEN)  # type: ignore[arg-type]

    assert ([each.graph_id for each in settings.graphs], settings.is_single) == (["default"], True)
    assert "graph 'local_s3' is served as 'default'" in caplog.text
    config.write_text("graphs: { local_s3: { uri: ./a }, other: { uri: ./b } }")
    if not chosen:
        with pytest.raises(BadRequestError, match="is not a graph id"):
            resolve_settings(Arguments(config=config), OPEN)
