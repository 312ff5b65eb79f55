"""Answers: at once on the event loop, else in a thread; one thread for all who ask the same."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from omnigraph.nonblocking import may_block
from omnigraph.server import answers
from omnigraph.server.answers import Answers
from omnigraph.server.threads import Threads


@pytest.fixture
def readers() -> Iterator[Threads]:
    made = Threads(8, "test")
    yield made
    made.close()


class Question:
    """Takes time until somebody took it."""

    def __init__(self, *, is_ready: bool = True, seconds: float = 0.0) -> None:
        self.is_ready = is_ready
        self.seconds = seconds
        self.threads: list[str] = []

    def ask(self) -> str:
        if not self.is_ready:
            may_block()
            time.sleep(self.seconds)
            self.is_ready = True
        self.threads.append(threading.current_thread().name)
        return "answer"


def in_loop(readers: Threads, work: Callable[[Answers], object]) -> None:
    async def run() -> None:
        await work(Answers(readers))  # type: ignore[misc]

    asyncio.run(run())


def test_what_can_be_is_answered_on_the_loop(readers: Threads) -> None:
    question = Question()

    async def ask(answers: Answers) -> None:
        assert await answers.run("q", question.ask) == "answer"

    in_loop(readers, ask)
    assert question.threads == [threading.current_thread().name]


def test_what_takes_time_is_answered_in_a_thread(readers: Threads) -> None:
    question = Question(is_ready=False)

    async def ask(answers: Answers) -> None:
        assert await answers.run("q", question.ask) == "answer"

    in_loop(readers, ask)
    assert [name[:4] for name in question.threads] == ["test"]


def test_of_those_who_ask_the_same_one_takes_a_thread(readers: Threads) -> None:
    question = Question()

    async def ask(answers: Answers) -> None:
        await answers.run("q", question.ask)
        question.is_ready, question.seconds = False, 0.05
        question.threads.clear()
        assert await asyncio.gather(*(answers.run("q", question.ask) for _ in range(8)))

    in_loop(readers, ask)
    assert len(question.threads) == 8
    assert sum(name.startswith("test") for name in question.threads) == 1


def test_questions_that_never_were_quick_do_not_wait_for_each_other(readers: Threads) -> None:
    together = threading.Barrier(8, timeout=30)

    def ask_slowly() -> int:
        may_block()
        return together.wait()

    async def ask(answers: Answers) -> None:
        found = await asyncio.gather(*(answers.run("q", ask_slowly) for _ in range(8)))
        assert sorted(found) == list(range(8))

    in_loop(readers, ask)


def test_who_waited_in_vain_goes_on_alone(readers: Threads) -> None:
    """The one before failed, or what it got is gone again."""
    question = Question()
    fails = [True]

    def ask_in_vain() -> str:
        may_block()
        if fails.pop():
            fails.extend([False] * 8)
            time.sleep(0.05)
            raise ValueError("no")
        return "answer"

    async def ask(answers: Answers) -> None:
        await answers.run("q", question.ask)
        asked = (answers.run("q", ask_in_vain) for _ in range(8))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [str(each) for each in found] == ["no", *["answer"] * 7]
        assert await answers.run("q", ask_in_vain) == "answer"

    in_loop(readers, ask)


def test_only_so_many_questions_are_remembered(
    readers: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "QUICK_MAX", 3)
    question = Question()

    async def ask(asked: Answers) -> None:
        for number in (0, 1, 2, 0, 3):
            await asked.run(number, question.ask)
        assert list(asked._quick) == [2, 0, 3]

    in_loop(readers, ask)
