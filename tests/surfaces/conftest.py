"""The same small graph behind every surface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.settings import forget_settings
from tests.http.serving import make_graph, served, single
from tests.surfaces.surfaces import CommandLine, Http, Library, Surface

SURFACES = ("library", "command line, direct", "command line, served", "http")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    return forget_settings(monkeypatch, tmp_path_factory)


def surface_of(kind: str, path: Path, folder: Path, stack: ExitStack) -> Surface:
    """A surface of the graph at `path`; the stack stops its server."""
    match kind:
        case "library":
            return Library(path)
        case "command line, direct":
            return CommandLine(("--store", str(path)), folder)
        case "command line, served":
            server = stack.enter_context(served(single(path)))
            return CommandLine(("--server", server.url), folder)
        case _:
            return Http(stack.enter_context(served(single(path))).url)


@pytest.fixture(params=SURFACES)
def surface(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Surface]:
    with ExitStack() as stack:
        yield surface_of(request.param, make_graph(tmp_path / "graph"), tmp_path, stack)


@pytest.fixture(scope="module", params=SURFACES)
def standing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Surface]:
    """A graph that no test changes: for reads, and for what is refused."""
    folder = tmp_path_factory.mktemp("standing")
    with ExitStack() as stack:
        yield surface_of(request.param, make_graph(folder / "graph"), folder, stack)
