"""Engine: which runner a load or an export gets.

The work stays in this process unless Spark is faster or the caller says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.pipeline.runner import Runner

ENGINES = ("auto", "inline", "spark")
PART_BYTES = 16 * 1024 * 1024
MASTER_VARIABLE = "OMNIGRAPH_SPARK_MASTER"
PART_BYTES_VARIABLE = "OMNIGRAPH_LOAD_PART_BYTES"
CHECK_ROWS_VARIABLE = "OMNIGRAPH_LOAD_CHECK_ROWS"
CONCURRENCY_VARIABLE = "OMNIGRAPH_LOAD_CONCURRENCY"
CHECK_ROWS = 6_000_000
HELD_ROWS = 500_000
"""Keys of more rows than this are exchanged through a file, also within this process."""
THREADED_ROWS = 100_000
CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class SparkUse:
    """Which Spark a program wants: a session it has, or settings for one that is made at need."""

    session: Any = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_chosen(self) -> bool:
        """Whether the caller chose where to run, so that small inputs go there too."""
        return (
            self.session is not None or "master" in self.settings or MASTER_VARIABLE in os.environ
        )

    def open(self) -> Any:
        """The session.

        Raises:
            SparkError: There is no Java, or Spark did not start.
        """
        if self.session is not None:
            return self.session
        from omnigraph.pipeline.session import session

        return session(self.settings)


def choose_runner(engine: str, *, stays: bool, spark: SparkUse, threads: int = 1) -> Runner:
    """The runner for an input; `stays` says that `auto` keeps it in this process, in `threads`.

    Raises:
        BadRequestError: There is no such engine.
    """
    if engine not in ENGINES:
        known = ", ".join(f"'{each}'" for each in ENGINES)
        raise BadRequestError(f"engine is {engine!r}, expected one of {known}")
    if not uses_spark(engine, spark, stays=stays):
        from omnigraph.pipeline.runner import InlineRunner

        return InlineRunner(threads)
    from omnigraph.pipeline.spark_runner import SparkRunner

    return SparkRunner(spark.open())


def uses_spark(engine: str, spark: SparkUse, *, stays: bool) -> bool:
    """Whether an engine, with what the caller chose beside it, means Spark."""
    return engine == "spark" or (engine == "auto" and (spark.is_chosen or not stays))


def setting(variable: str, default: int) -> int:
    """A positive whole number from the environment.

    Raises:
        BadRequestError: The variable is set to something else.
    """
    text = os.environ.get(variable)
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise BadRequestError(f"{variable} is '{text}', expected a positive whole number")
    return int(text)
