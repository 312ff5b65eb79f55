"""Tokens: who gets which, and who never does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from omnigraph.config import Operator, load_operator, token_for
from omnigraph.config.credentials import read_token, remove_token, write_token
from omnigraph.config.tokens import read_env_file, server_for
from omnigraph.errors import BadRequestError, ConfigError
from tests.config.conftest import Writer

SERVERS = """\
servers:
  host: { url: "http://h:8080" }
  team: { url: "http://h:8080/team/a" }
  tls: { url: "https://Graph.Example.com" }
"""


@pytest.fixture
def servers(operator: Writer) -> Operator:
    operator(SERVERS)
    return load_operator()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h:8080", "host"),
        ("http://h:8080/", "host"),
        ("http://h:8080/graphs/x", "host"),
        ("http://h:8080/team", "host"),
        ("http://h:8080/team/ab", "host"),
        ("http://h:8080/team/a", "team"),
        ("http://h:8080/team/a/graphs/x", "team"),
        ("https://graph.example.com/graphs/x", "tls"),
        ("https://graph.example.com:443/graphs/x", "tls"),
        ("http://h:8080-evil", None),
        ("http://h:8080.evil.com", None),
        ("http://h:80800", None),
        ("http://h", None),
        ("http://h.evil:8080", None),
        ("http://evil/http://h:8080", None),
        ("http://h:8080@evil/", None),
        ("http://user@h:8080/", None),
        ("https://h:8080/", None),
        ("http://graph.example.com/", None),
        ("https://graph.example.com.evil/", None),
        ("http://h:8080/team/a/../b", None),
        ("http://h:8080/team/a/%2e%2e/b", None),
        ("file:///h:8080", None),
        ("", None),
    ],
)
def test_an_address_belongs_to_the_server_with_the_longest_prefix(
    servers: Operator, url: str, name: str | None
) -> None:
    found = server_for(url, servers)

    assert (found.name if found else None) == name


def test_the_chain_is_variable_then_file_then_the_shared_one(servers: Operator) -> None:
    url, shared = "http://h:8080/graphs/x", {"OMNIGRAPH_BEARER_TOKEN": "shared"}

    assert token_for(url, servers, {}) is None
    assert token_for(url, servers, shared) == "shared"
    write_token(servers.credentials_path, "host", "kept")
    assert token_for(url, servers, shared) == "kept"
    assert token_for(url, servers, {**shared, "OMNIGRAPH_TOKEN_HOST": "keyed"}) == "keyed"
    assert token_for(url, servers, {**shared, "OMNIGRAPH_TOKEN_HOST": " "}) == "kept"


def test_a_keyed_token_is_never_sent_elsewhere(servers: Operator) -> None:
    write_token(servers.credentials_path, "team", "kept")
    environment = {"OMNIGRAPH_TOKEN_HOST": "keyed", "OMNIGRAPH_TOKEN_TEAM": ""}

    for url in ("http://h:8080-evil/graphs/x", "http://evil/", "https://h:8080/", "http://h/"):
        assert token_for(url, servers, environment) is None
        assert token_for(url, servers, {**environment, "OMNIGRAPH_BEARER_TOKEN": "s"}) == "s"
    assert token_for("http://h:8080/team/a", servers, environment) == "kept"
    assert token_for("http://h:8080/team/b", servers, environment) == "keyed"


def test_a_graph_of_a_project_has_a_token_of_its_own(servers: Operator, tmp_path: Path) -> None:
    env_file = tmp_path / ".env.omni"
    env_file.write_text("TEAM_TOKEN=from-file\nOMNIGRAPH_BEARER_TOKEN=shared-file\n")

    def token(**environment: str) -> str | None:
        return token_for(
            "http://elsewhere/", servers, environment, own_variable="TEAM_TOKEN", env_file=env_file
        )

    assert token(TEAM_TOKEN="own", OMNIGRAPH_BEARER_TOKEN="shared") == "own"
    assert token(OMNIGRAPH_BEARER_TOKEN="shared") == "from-file"
    assert token_for("http://x/", servers, {}, env_file=env_file) == "shared-file"
    assert (
        token_for("http://x/", servers, {"OMNIGRAPH_BEARER_TOKEN": "env"}, env_file=env_file)
        == "env"
    )


def test_an_env_file_has_one_setting_per_line(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# tokens\n\nA=1\nexport B='two words'\nC = \"x=y\"\nD=\n")

    assert read_env_file(path) == {"A": "1", "B": "two words", "C": "x=y", "D": ""}
    assert read_env_file(tmp_path / "none") == {}
    path.write_text("A=1\nnonsense\n")
    with pytest.raises(ConfigError, match=r"\.env:2: expected KEY=VALUE"):
        read_env_file(path)


def test_credentials_are_made_for_the_owner_alone(home: Path) -> None:
    old = os.umask(0)
    try:
        write_token(home / "deep" / "credentials", "prod", "secret")
    finally:
        os.umask(old)

    assert stat.S_IMODE((home / "deep" / "credentials").stat().st_mode) == 0o600
    assert [each.name for each in (home / "deep").iterdir()] == ["credentials"]


def test_a_rewrite_keeps_everything_else(home: Path) -> None:
    path = home / "credentials"
    path.write_text(
        "# mine\n[prod]\ntoken = old\nnote = x\n; about lab\n[lab]\ntoken = lab-token\n"
    )
    path.chmod(0o600)

    write_token(path, "prod", "new")

    assert path.read_text() == (
        "# mine\n; about lab\n[lab]\ntoken = lab-token\n\n[prod]\ntoken = new\n"
    )
    assert (read_token(path, "prod"), read_token(path, "lab")) == ("new", "lab-token")
    assert read_token(path, "other") is None


def test_a_rewrite_that_fails_leaves_the_file_as_it_was(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "credentials"
    write_token(path, "prod", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("omnigraph.config.credentials.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_token(path, "prod", "new")

    assert read_token(path, "prod") == "old"
    assert [each.name for each in home.iterdir()] == ["credentials"]


def test_forgetting_a_token_twice_is_fine(home: Path) -> None:
    path = home / "credentials"
    write_token(path, "a", "1")
    write_token(path, "b", "2")

    assert remove_token(path, "a")
    assert not remove_token(path, "a")
    assert (read_token(path, "a"), read_token(path, "b")) == (None, "2")
    assert not remove_token(home / "nowhere", "a")
    assert not (home / "nowhere").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_can_read_is_refused(home: Path, mode: int) -> None:
    path = home / "credentials"
    write_token(path, "prod", "secret")
    path.chmod(mode)

    for use in (read_token, remove_token):
        with pytest.raises(ConfigError, match="can be read by others") as caught:
            use(path, "prod")
        assert "chmod 600" in str(caught.value)
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="can be read by others"):
        write_token(path, "prod", "new")


@pytest.mark.parametrize(
    ("server", "token"),
    [("", "x"), ("a]b", "x"), ("a\nb", "x"), ("a", ""), ("a", "x y"), ("a", "x\ny"), ("a", "\x1b")],
)
def test_what_cannot_be_in_the_file_is_refused(home: Path, server: str, token: str) -> None:
    with pytest.raises(BadRequestError):
        write_token(home / "credentials", server, token)

    assert not (home / "credentials").exists()


def test_a_credentials_file_starts_with_a_section(home: Path) -> None:
    (home / "credentials").write_text("token = lost\n")
    (home / "credentials").chmod(0o600)

    with pytest.raises(ConfigError, match="credentials:1: expected a"):
        read_token(home / "credentials", "prod")
