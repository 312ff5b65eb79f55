"""Failures: what Spark says when a read fails, in our words. Nothing of its own text is shown."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import omnigraph.errors
from omnigraph.errors import OmnigraphError, ResourceLimitError, SparkError
from omnigraph.executor.rows import too_many_matches
from omnigraph.pipeline.failure_reasons import OUT_OF_MEMORY, find_reason

log = logging.getLogger("omnigraph.spark")

_RESULT_SIZE = re.compile(r"\(([\d.]+) ([KMGT]?i?B)\) is bigger than \S+ \(([\d.]+) ([KMGT]?i?B)\)")
_UNITS = "BKMGT"
_LIMIT = re.compile(r"(.*) is (\d+), the limit is (\d+) — (.*)")
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
    too_large = _RESULT_SIZE.search(text)
    if too_large:
        size, most = (_to_bytes(*too_large.group(n, n + 1)) for n in (1, 3))
        return ResourceLimitError(
            "the number of bytes of the result",
            limit=most,
            actual=size,
            advice="use `.to_spark()` and write the rows from there, or add a limit; "
            "`spark.driver.maxResultSize` sets the limit",
        )
    for name, message in _OUR_ERROR.findall(text):
        limits = _LIMIT.fullmatch(message) if name == "ResourceLimitError" else None
        if limits is not None:
            resource, actual, limit, advice = limits.groups()
            return ResourceLimitError(resource, limit=int(limit), actual=int(actual), advice=advice)
        kind = getattr(omnigraph.errors, name, None)
        if isinstance(kind, type) and issubclass(kind, OmnigraphError):
            error = OmnigraphError.__new__(kind)
            OmnigraphError.__init__(error, message)
            return error
    reason = find_reason(text)
    if reason == OUT_OF_MEMORY:
        reason += ", or read less: fewer properties, above all long texts, or fewer rows"
    return SparkError(f"the read failed on Spark: {reason}")


def _to_bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** _UNITS.index(unit[0]))
