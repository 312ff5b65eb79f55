"""Pull the plug at any moment of any writer: nothing acknowledged is lost, nothing is half done.

One life of a graph is recorded, system call by system call; from the recording the states are
built that POSIX allows a power cut to leave; each is opened and looked at. The seed is printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.testing.crash import CrashRunner
from tests.depth import IS_TORTURE, depth
from tests.power.calls import Call
from tests.power.disk import Disk
from tests.power.recording import Recording, record, replay
from tests.power.states import CrashState, crash_states

SEED = int(os.environ.get("OMNIGRAPH_POWER_SEED", depth(1, time.time_ns() % 1_000_000)))
CHECKS = "tests.power.checks"
PTRACE = "tests.power.ptrace"
THOROUGH_EVERY = 8
PICTURES_MAX = 2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("power"),
]


@pytest.fixture(scope="module", autouse=True)
def _recordable() -> None:
    """Asked in a process of its own: the answer takes a fork, which Lance does not like."""
    asked = subprocess.run(
        [sys.executable, "-m", PTRACE], capture_output=True, text=True, check=True
    )
    if asked.stdout.strip():
        pytest.skip(f"cannot record calls: {asked.stdout.strip()}")


@pytest.fixture(scope="module")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner([CHECKS, "tests.warm"]) as zygote:
        yield zygote


@pytest.fixture(scope="module")
def every_writer(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record("every writer", tmp_path_factory.mktemp("power"))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record("short", tmp_path_factory.mktemp("short"))


def wrong_in(
    recording: Recording, state: CrashState, runner: CrashRunner, *, thorough: bool = False
) -> list[str]:
    """Build a state, look at it in a process of its own, and say what is wrong with it."""
    last = max(state.acknowledged - 1, 0)
    outcome = runner.run(
        f"{CHECKS}:check",
        {
            "path": str(state.build(recording)),
            "allowed": recording.pictures[last : last + PICTURES_MAX],
            "may_be_missing": state.acknowledged == 0,
            "thorough": thorough,
        },
    )
    if outcome.error is not None or outcome.signal is not None:
        return [f"the process died: {outcome.error or outcome.signal}"]
    found: list[str] = outcome.value
    return found


def survey(recording: Recording, per_step: int, runner: CrashRunner) -> dict[str, list[str]]:
    """Look at many states; returns what is wrong, by state."""
    found: dict[str, list[str]] = {}
    count = 0
    for state in crash_states(recording, per_step, SEED):
        count += 1
        is_thorough = IS_TORTURE or count % THOROUGH_EVERY == 0
        wrong = wrong_in(recording, state, runner, thorough=is_thorough)
        if wrong:
            found[str(state)] = wrong
    print(f"{count} states, {len(found)} of them wrong, OMNIGRAPH_POWER_SEED={SEED}")
    return found


def describe(wrong: dict[str, list[str]]) -> str:
    return "\n".join(f"{state}: {each}" for state, found in wrong.items() for each in found)


def loses_something(recording: Recording, runner: CrashRunner, states: int) -> bool:
    """Whether one of some states in which everything that is not sure is gone shows a loss."""
    per_step = 1 + states // len(recording.steps)
    chosen = [*crash_states(recording, per_step, SEED, shapes=["lost", "empty"])]
    # The latest first: what is lost early shows in most states that follow.
    return any(wrong_in(recording, state, runner) for state in reversed(chosen))


def test_a_recording_replayed_is_the_directory_byte_for_byte(short: Recording) -> None:
    """`record` compares; one call that is left out is noticed."""
    written = [number for number, call in enumerate(short.calls) if call.kind == "write"]
    last = short.calls[: written[-1]] + short.calls[written[-1] + 1 :]

    assert replay(short.calls) != replay(last)


def test_no_power_cut_loses_what_was_acknowledged(
    every_writer: Recording, runner: CrashRunner
) -> None:
    """Insert, update, delete, loads, branches, merges, schema, optimize, indices, cleanup."""
    per_step = depth(1, 24)

    wrong = survey(every_writer, per_step, runner)

    assert not wrong, describe(wrong)


def test_no_power_cut_loses_one_of_inserts_that_follow_each_other(
    tmp_path: Path, runner: CrashRunner
) -> None:
    """Most of their versions are written without Lance."""
    wrong = survey(record("inserts", tmp_path), depth(3, 40), runner)

    assert not wrong, describe(wrong)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_no_power_cut_leaves_half_a_branch_or_a_tag(tmp_path: Path, runner: CrashRunner) -> None:
    wrong = survey(record("names", tmp_path), 12, runner)

    assert not wrong, describe(wrong)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_no_power_cut_during_a_load_on_spark_loses_anything(
    tmp_path: Path, runner: CrashRunner
) -> None:
    """The driver's files and those of its workers, adopted by the commit."""
    wrong = survey(record("spark", tmp_path), 15, runner)

    assert not wrong, describe(wrong)


def test_without_syncs_a_power_cut_is_seen_to_lose(tmp_path: Path, runner: CrashRunner) -> None:
    """durability="process" promises no more than to survive the death of the process."""
    recording = record("short", tmp_path, "process")

    assert loses_something(recording, runner, 12)


def is_sync_of_manifest_version(call: Call, disk: Disk) -> bool:
    return call.kind == "sync" and _name(call, disk).startswith("graph/__manifest/_versions/")


def is_sync_of_versions_directory(call: Call, disk: Disk) -> bool:
    return call.kind == "sync" and call.path.endswith("/_versions")


def is_sync_of_staged_rows(call: Call, disk: Disk) -> bool:
    name = _name(call, disk)
    return call.kind == "sync" and name.startswith("graph/nodes/") and name.endswith(".lance")


PLANTED = [is_sync_of_manifest_version, is_sync_of_versions_directory, is_sync_of_staged_rows]


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
@pytest.mark.parametrize("is_planted", PLANTED, ids=lambda each: each.__name__)
def test_one_sync_that_is_missing_is_seen_to_lose(
    short: Recording, runner: CrashRunner, is_planted: object
) -> None:
    """Each is one line of the code; the recording is that of the same code without the line."""
    disk = Disk()
    kept: list[Call] = []
    for call in short.calls:
        disk.apply([call])
        if not is_planted(call, disk):  # type: ignore[operator]
            kept.append(call)

    assert len(kept) < len(short.calls)
    assert loses_something(short.with_calls(kept), runner, 40)


def _name(call: Call, disk: Disk) -> str:
    """The path of the file that a call is about."""
    return "" if call.path else disk.name_of(call.inode)
