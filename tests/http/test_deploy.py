"""What is deployed: files that name what exists, a skill, and a guide that works over HTTP."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from omnigraph.config import load_project
from omnigraph.policy import load_policy
from omnigraph.server.boot import Arguments, resolve_settings
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.settings import LIMIT_VARIABLES, TOKENS_FILE
from tests.console import commands
from tests.docs_blocks import ROOT, SKILL
from tests.http.test_process import started

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
GUIDE = ROOT / "docs" / "guides" / "give-agents-their-own-branches.md"
LINES_MAX = 200
SECRET = "./tokens.json"  # made by the operator


def read_dockerfile() -> list[tuple[str, str]]:
    """The instructions, with continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def read_compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def scripts() -> set[str]:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "otel" in project["optional-dependencies"]
    return set(project["scripts"])


def test_the_image_is_made_of_files_that_exist_and_runs_a_command_that_does() -> None:
    instructions = read_dockerfile()
    words = [word for word, _ in instructions]
    copied = [rest.split()[:-1] for word, rest in instructions if word == "COPY"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert words[0] == "FROM"
    assert set(words) <= {
        "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL",
        "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    for names in copied:
        if names[0].startswith("--from"):
            continue
        for name in names:
            assert (ROOT / name).exists(), name
            assert f"!{name.removeprefix('./')}" in ignored, "the build would not see it"
    command = dict(instructions)
    assert set(json.loads(command["ENTRYPOINT"])) <= scripts()
    assert command["USER"] != "root"
    health = re.findall(r"8080(/\w+)", command["HEALTHCHECK"])
    assert health[0] in {each.path for each in OPERATIONS}


def test_the_build_of_the_image_has_every_file_that_the_wheel_is_made_of() -> None:
    import tomllib

    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = whole["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        "pyproject.toml",
        whole["project"]["readme"],
        *whole["project"]["license-files"],
        *wheel["packages"],
        wheel["hooks"]["custom"]["path"],
    }
    copied = {
        name
        for word, rest in read_dockerfile()
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    }

    for name in needed:
        assert any(Path(name).is_relative_to(each) for each in copied), name


def test_the_command_of_the_image_serves_the_configuration_beside_it(tmp_path: Path) -> None:
    arguments = json.loads(dict(read_dockerfile())["CMD"])
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"act-ada": "one", "act-lin": "two"}')
    config = DEPLOY / "config" / given["--config"]

    settings = resolve_settings(
        Arguments(config=config, bind=given["--bind"]), {TOKENS_FILE: str(tokens)}
    )

    settings.check()
    [graph] = settings.graphs
    assert (graph.graph_id, graph.uri) == ("team", "/data/team.omni")
    assert graph.policy_text is not None
    assert load_policy(graph.policy_text, name="policy", resource="team").actors == {
        "act-ada",
        "act-lin",
    }
    assert load_project(config).graphs.keys() == {"team"}


def test_the_compose_file_names_what_exists() -> None:
    compose = read_compose()
    server, proxy = compose["services"]["omnigraph"], compose["services"]["proxy"]
    build = server["build"]

    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    known = {TOKENS_FILE, *LIMIT_VARIABLES}
    assert server["environment"].keys() <= known
    assert server["environment"][TOKENS_FILE] == "/run/secrets/tokens"
    assert compose["secrets"]["tokens"]["file"] == SECRET
    for service in (server, proxy):
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists(), volume
    seconds = int(server["stop_grace_period"].removesuffix("s"))
    assert seconds > int(server["environment"]["OMNIGRAPH_SERVER_SHUTDOWN_SECONDS"])
    assert "443:443" in proxy["ports"]
    assert "ports" not in server, "only the proxy is reached from outside"
    routed = re.findall(r"reverse_proxy (\w+):(\d+)", (DEPLOY / "Caddyfile").read_text())
    assert routed == [("omnigraph", server["expose"][0])]
    assert routed[0][0] in compose["services"]


def test_the_skill_is_short_and_has_a_head() -> None:
    """Its blocks are checked and run with those of the docs."""
    text = SKILL.read_text()
    head = yaml.safe_load(text.split("---")[1])

    assert head["name"] == SKILL.parent.name
    assert 50 < len(head["description"]) < 500
    assert len(text.splitlines()) <= LINES_MAX


def test_the_guide_for_agents_works_over_a_server_only(tmp_path: Path) -> None:
    """Every command of the guide, with --server for --target and a token for --as: same output."""
    for name in ("team.pg", "people.jsonl", "people.gq", "policy.yaml"):
        (tmp_path / name).write_text((ROOT / "examples" / "team" / name).read_text())
    tokens = {"act-lin": "token-of-the-agent", "act-ada": "token-of-a-person"}
    (tmp_path / "tokens.json").write_text(json.dumps(tokens))
    session = re.search(r"(?ms)^```console\n(.*?)^```$", GUIDE.read_text())
    assert session is not None
    steps = [step.partition("\n") for step in re.split(r"(?m)^\$ ", session[1]) if step]
    setup = [step for step in steps if "--target" not in step[0]]
    served = [step for step in steps if "--target" in step[0]]
    assert (len(setup), len(served)) == (3, 6)

    def run(command: str, **environment: str) -> str:
        path = f"{commands()}:{os.environ['PATH']}"
        home = str(tmp_path / "home")
        env = {**os.environ, "PATH": path, "OMNIGRAPH_HOME": home, **environment}
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    for command, _, _ in setup:
        run(command)
    with started(
        tmp_path, "--target", "team", OMNIGRAPH_SERVER_BEARER_TOKENS_FILE="tokens.json"
    ) as (_, url):
        for command, _, shown in served:
            actor = re.search(r" --as (\S+)", command)
            token = tokens[actor[1] if actor else "act-ada"]
            over = re.sub(r" --as \S+", "", command).replace(
                "--target team", f"--server {shlex.quote(url)} --graph team"
            )
            printed = run(over, OMNIGRAPH_BEARER_TOKEN=token)
            assert printed.rstrip("\n") == shown.rstrip("\n"), over
