"""A directory of the test's own, and an operator directory beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.settings import forget_settings

Writer = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.chdir(tmp_path)
    return forget_settings(monkeypatch, tmp_path_factory)


@pytest.fixture
def project(tmp_path: Path) -> Writer:
    """Write `omnigraph.yaml` of the present directory."""

    def write(text: str) -> Path:
        path = tmp_path / "omnigraph.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def operator(home: Path) -> Writer:
    """Write the operator's config."""

    def write(text: str) -> Path:
        path = home / "config.yaml"
        path.write_text(text)
        return path

    return write
