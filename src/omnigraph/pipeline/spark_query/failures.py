"""Failures: what Spark says when a read fails, in our words. Nothing of its own text is shown."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import omnigraph.errors
from omnigraph.errors import OmnigraphError, SparkError
from omnigraph.executor.rows import too_many_matches
from omnigraph.pipeline.failure_reasons import find_reason

log = logging.getLogger("omnigraph.spark")

_OUR_ERROR = re.compile(r"omnigraph\.errors\.(\w+): (.*)")


@contextmanager
def spark_failures() -> Iterator[None]:
    """Raise what fails inside as one of our errors."""
    try:
        yield
    except OmnigraphError:
        raise
    except Exception as error:
        if not _is_from_spark(error):
            raise
        log.debug("a read on Spark failed", exc_info=True)
        raise to_error(str(error)) from None


def _is_from_spark(error: Exception) -> bool:
    # A session that was stopped fails with errors of Python's own.
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(packages & {"pyspark", "py4j"}) or isinstance(error, ConnectionError)


def to_error(text: str) -> OmnigraphError:
    """The error that a failed job is to its caller."""
    if "ARITHMETIC_OVERFLOW" in text:
        return too_many_matches()
    for name, message in _OUR_ERROR.findall(text):
        kind = getattr(omnigraph.errors, name, None)
        if isinstance(kind, type) and issubclass(kind, OmnigraphError):
            error = OmnigraphError.__new__(kind)
            OmnigraphError.__init__(error, message)
            return error
    return SparkError(f"the read failed on Spark: {find_reason(text)}")
