"""The class archive: made once, used when it is whole, never in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, SparkError
from omnigraph.pipeline import archive
from omnigraph.pipeline.java import CACHE_VARIABLE, Java, find_java
from tests.depth import IS_TORTURE


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java, and an empty cache directory."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(archive.ARCHIVE_VARIABLE, "auto")
    monkeypatch.setattr(archive, "_planned", set())
    return find_java()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would run at the end of this process."""
    found: list[object] = []
    monkeypatch.setattr("atexit.register", found.append)
    return found


def warm_up(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Have another program stand for the session that makes the archive."""
    monkeypatch.setattr(archive, "WARM_UP", f"import sys, pathlib\n{body}")


def test_it_is_planned_once_where_there_is_none(java: Java, planned: list[object]) -> None:
    archive.build_later(java)
    archive.build_later(java)

    assert len(planned) == 1
    assert archive.java_options(java) == []


def test_it_is_neither_made_nor_used_when_switched_off(
    java: Java, planned: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    java.archive.parent.mkdir(parents=True, exist_ok=True)
    for choice, uses in (("use", True), ("off", False)):
        monkeypatch.setenv(archive.ARCHIVE_VARIABLE, choice)
        java.archive.unlink(missing_ok=True)
        archive.build_later(java)
        java.archive.touch()
        assert bool(archive.java_options(java)) is uses
    monkeypatch.setenv(archive.ARCHIVE_VARIABLE, "maybe")
    with pytest.raises(BadRequestError, match="is 'maybe', expected one of auto, use, off"):
        archive.java_options(java)

    assert planned == []


def test_it_appears_whole_or_not_at_all(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that dies leaves nothing behind, and after three failures there is no further try."""
    warm_up(monkeypatch, "pathlib.Path(sys.argv[1]).write_bytes(b'half'); sys.exit(1)")
    with pytest.raises(SparkError, match="Spark works without it"):
        archive.build_archive()
    monkeypatch.setattr(os, "nice", lambda _: 0)
    for _ in range(5):
        archive.main()

    left = sorted(path.suffix for path in java.archive.parent.glob("*.*") if path.is_file())
    assert left == [".lock", ".tries"]
    assert java.archive.with_suffix(".tries").read_bytes() == b"x" * archive.TRIES_MAX

    warm_up(monkeypatch, "pathlib.Path(sys.argv[1]).write_bytes(b'whole')")
    assert archive.build_archive().read_bytes() == b"whole"


def test_only_one_process_makes_it(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up(monkeypatch, "sys.exit('never started')")

    with (
        archive._only_one(java.archive),
        pytest.raises(SparkError, match="another process makes the class archive"),
    ):
        archive.build_archive()


def test_one_that_java_does_not_start_with_is_removed(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java dies with it and starts without it; the session is there."""
    from omnigraph.pipeline import session

    java.archive.parent.mkdir(parents=True, exist_ok=True)
    java.archive.touch()
    starts: list[bool] = []

    def create(*_: object) -> str:
        starts.append(java.archive.exists())
        if starts[-1]:
            raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")
        return "a session"

    monkeypatch.setattr(session, "_create", create)

    assert session._start("local", java, {}) == "a session"  # type: ignore[comparison-overlap]
    assert starts == [True, False]


def test_another_build_of_java_has_another_archive(java: Java) -> None:
    newer = Java(java.executable, java.version, java.home, java.build + "+1")

    assert newer.archive != java.archive


@pytest.mark.slow
@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture: a minute and 180 MB")
def test_the_first_program_with_a_session_leaves_one_that_the_next_one_uses(java: Java) -> None:
    started = og.spark.build_archive()
    assert started == java.archive
    assert stat.S_ISREG(started.stat().st_mode)
    code = (
        "import omnigraph as og; s = og.spark.session();"
        "print(s.conf.get('spark.driver.extraJavaOptions'), s.range(3).count())"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert str(started) in ran.stdout
    assert ran.stdout.split()[-1] == "3"
