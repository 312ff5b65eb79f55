"""Engine: which runner a load gets.

An input that is one small range has nothing to distribute: it stays in this process. Everything
else runs on Spark, unless the caller says otherwise.
"""

from __future__ import annotations

import os
from typing import Any

from omnigraph.errors import BadRequestError
from omnigraph.pipeline.runner import InlineRunner, Runner

ENGINES = ("auto", "inline", "spark")
PART_BYTES = 16 * 1024 * 1024
MASTER_VARIABLE = "OMNIGRAPH_SPARK_MASTER"
PART_BYTES_VARIABLE = "OMNIGRAPH_LOAD_PART_BYTES"
CHECK_ROWS_VARIABLE = "OMNIGRAPH_LOAD_CHECK_ROWS"
CONCURRENCY_VARIABLE = "OMNIGRAPH_LOAD_CONCURRENCY"
CHECK_ROWS = 20_000_000
CONCURRENCY = 8


def choose_runner(engine: str, *, is_small: bool, spark: Any = None) -> Runner:
    """The runner for an input.

    Raises:
        BadRequestError: There is no such engine.
    """
    if engine not in ENGINES:
        known = ", ".join(f"'{each}'" for each in ENGINES)
        raise BadRequestError(f"engine is {engine!r}, expected one of {known}")
    stays = is_small and spark is None and MASTER_VARIABLE not in os.environ
    if engine == "inline" or (engine == "auto" and stays):
        return InlineRunner()
    from omnigraph.pipeline.spark_runner import SparkRunner

    return SparkRunner(spark)


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
