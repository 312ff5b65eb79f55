"""Failure reasons: why a Spark job failed, in our words, by the text of its error."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import SparkError

OUT_OF_MEMORY = "it ran out of memory; give Spark more"
_REASONS = (
    (r"OutOfMemoryError|Java heap space|MemoryError", OUT_OF_MEMORY),
    (
        r"Connection refused|Answer from Java side is empty|sending or receiving",
        "Java ended, most likely for want of memory; give it more (`spark.driver.memory`) or read "
        "less, and call again",
    ),
    (r"maxResultSize", "the result is too large for this process; use `.to_spark()` and write it"),
    (r"No space left on device", "there is no space left on the disk of an executor"),
    (r"Python worker exited|worker.*crashed|EOFException", "a worker process died repeatedly"),
    (r"ExecutorLostFailure|executor.*(lost|exited)", "an executor was lost repeatedly"),
    (
        r"cancelled|canceled|SparkContext was shut down|stopped SparkContext|has been stopped",
        "the job was cancelled or the session was stopped",
    ),
    (
        r"No module named '?(omnigraph|lance|pyarrow)",
        "a worker cannot import omnigraph; install it on every machine of the cluster",
    ),
)
_UNKNOWN = "a task failed repeatedly; set OMNIGRAPH_SPARK_LOG=warn to see its log"


def find_reason(text: str) -> str:
    """Why a job failed. Nothing of Spark's own text is shown."""
    for pattern, reason in _REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    return _UNKNOWN


@contextmanager
def naming_a_full_disk() -> Iterator[None]:
    """Say in our words that there is no room for the files by which rows are handed to Spark.

    Raises:
        SparkError: A disk of this machine is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise SparkError(
            "the read failed on Spark: there is no space left on the disk of this machine where "
            "Spark keeps its files — free some space, or set `spark.local.dir` to another disk"
        ) from error
