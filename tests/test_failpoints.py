"""Failpoints are inert unless armed, and code and enum name the same ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints, hit

SOURCE = Path(failpoints.__file__).parent
POINT = next(iter(Failpoint))


def points_used_in_code() -> set[str]:
    """The enum members that product code passes to `hit` or hands on as a point."""
    return {
        name
        for path in SOURCE.rglob("*.py")
        if path.name != "failpoints.py"
        for name in re.findall(r"Failpoint\.([A-Z][A-Z0-9_]*)", path.read_text())
    }


def test_code_and_enum_name_the_same_points() -> None:
    """A point that is never hit, or a hit of an unlisted point, is a mistake."""
    assert points_used_in_code() == {point.name for point in Failpoint}


def test_an_unarmed_point_does_nothing() -> None:
    hit(POINT)


def test_a_raising_point_raises_until_the_block_ends() -> None:
    with (
        arm_failpoints({POINT: "raise"}),
        pytest.raises(FailpointError, match=re.escape(POINT.value)),
    ):
        hit(POINT)

    hit(POINT)


def test_a_counting_point_counts_and_lets_through() -> None:
    with arm_failpoints({POINT: "count"}) as hits:
        hit(POINT)
        hit(POINT)

    assert hits[POINT] == 2


def test_a_point_can_fire_at_its_nth_hit_only() -> None:
    with arm_failpoints({POINT: "raise@2"}):
        hit(POINT)
        with pytest.raises(FailpointError):
            hit(POINT)
        hit(POINT)


def test_a_callback_point_calls_back() -> None:
    called: list[str] = []

    with arm_failpoints({POINT: lambda: called.append("here")}):
        hit(POINT)

    assert called == ["here"]


def test_a_sleeping_point_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("omnigraph.failpoints.time.sleep", slept.append)

    with arm_failpoints({POINT: "sleep:1.5"}):
        hit(POINT)

    assert slept == [1.5]


def run_child(setting: str) -> subprocess.CompletedProcess[str]:
    code = f"from omnigraph.failpoints import Failpoint, hit; hit(Failpoint.{POINT.name})"
    environment = {**os.environ, failpoints.ENVIRONMENT_VARIABLE: setting}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_killing_point_armed_by_the_environment_kills_the_process() -> None:
    assert run_child(f"{POINT}=kill").returncode == -signal.SIGKILL


def test_an_unknown_point_in_the_environment_is_refused() -> None:
    child = run_child("no.such.point=kill")

    assert child.returncode == 1
    assert "no.such.point" in child.stderr
