"""Background work: one piece after the other, and no program waits for what it will not use."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from omnigraph.index.background import Background, GivenUp, may_give_up


def test_work_of_a_name_is_done_once_while_it_is_waiting() -> None:
    background, may_go_on, done = Background(), threading.Event(), list[str]()
    background.start("first", may_go_on.wait)

    for _ in range(3):
        background.start("second", lambda: done.append("second"))
    may_go_on.set()
    background.wait()
    background.start("second", lambda: done.append("again"))
    background.wait()

    assert done == ["second", "again"]


def test_work_that_fails_does_not_stop_the_next(caplog: pytest.LogCaptureFixture) -> None:
    background, done = Background(), list[str]()

    with caplog.at_level("INFO"):
        background.start("bad", lambda: 1 / 0)
        background.start("good", lambda: done.append("good"))
        background.wait()

    assert done == ["good"]
    assert "bad was not made in the background" in caplog.text


def test_what_is_stopped_gives_up_at_its_next_step_and_takes_no_more() -> None:
    background, has_begun, done = Background(), threading.Event(), list[str]()

    def work() -> None:
        try:
            while True:
                has_begun.set()
                may_give_up()
        except GivenUp:
            done.append("given up")
            raise

    background.start("endless", work)
    background.start("next", lambda: done.append("next"))
    has_begun.wait()
    background.stop()
    background.wait()
    background.start("more", lambda: done.append("more"))
    background.wait()

    assert done == ["given up"]


def test_elsewhere_nothing_is_given_up() -> None:
    background = Background()
    background.stop()

    may_give_up()


@pytest.mark.slow
def test_a_program_ends_though_work_is_left() -> None:
    code = (
        "from omnigraph.index.background import Background, may_give_up\n"
        "def work():\n"
        "    while True: may_give_up()\n"
        "Background().start('endless', work)\n"
        "print('the program is done')"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "the program is done\n", "")
