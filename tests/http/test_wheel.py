"""The wheel: a user who installs it has the workbench, and needs no Node for it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.running import EXAMPLES
from tests.depth import IS_TORTURE
from tests.docs_blocks import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_TORTURE, reason="part of make torture"),
    pytest.mark.skipif(
        importlib.util.find_spec("hatchling") is None, reason="needs hatchling, of the dev extra"
    ),
]


def run(*arguments: str | Path, **options: object) -> None:
    subprocess.run([sys.executable, *map(str, arguments)], check=True, **options)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the wheel of this checkout has, and nothing else of it."""
    folder = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (wheel,) = folder.glob("omnigraph-*.whl")
    run("-m", "pip", "install", "-q", "--no-deps", "--target", folder / "site", wheel)
    return folder / "site"


@contextmanager
def opened(graph: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of `omnigraph ui`."""
    command = [sys.executable, "-m", "omnigraph", "ui", str(graph), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=graph.parent
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[^/]+", process.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()


def test_the_workbench_is_served_from_the_installed_wheel_without_node(
    installed: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PATH": str(tmp_path)}
    where = "import omnigraph, sys; print(omnigraph.__file__, file=open(sys.argv[1], 'w'))"
    run("-c", where, tmp_path / "where", env=environment, cwd=tmp_path)
    assert (tmp_path / "where").read_text().startswith(str(installed))
    graph = tmp_path / "graph"
    schema = EXAMPLES / "team.pg"
    run("-m", "omnigraph", "init", graph, "--schema", schema, env=environment, cwd=tmp_path)

    with opened(graph, environment) as url, httpx.Client(base_url=url) as client:
        page = client.get("/")
        scripts = re.findall(r'(?:src|href)="[./]*(workbench/[^"]+)"', page.text)
        answers = {each: client.get(f"/{each}") for each in scripts}

    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert any(each.endswith(".js") for each in answers)
    assert {each.status_code for each in answers.values()} == {200}
    assert (installed / "omnigraph" / "graph" / "picture_files" / "widget.js").is_file()
