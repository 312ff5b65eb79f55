"""Session: the settings that reads need, without a change to the session they run in.

A session of its own shares the executors and has settings of its own. Spark knows no sizes of
what tasks read, so it must not guess that a table is small; once it has seen how large it is, it
may send it to every task.
"""

from __future__ import annotations

from typing import Any

ROWS_PER_PARTITION = 1_000_000
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": str(16 * 1024 * 1024),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
}


def query_session(spark: Any, rows: int) -> Any:
    """A session for one read that goes through about so many rows."""
    made = spark.newSession()
    cores = spark.sparkContext.defaultParallelism
    for name, value in _SETTINGS.items():
        made.conf.set(name, value)
    made.conf.set("spark.sql.shuffle.partitions", str(max(cores, -(-rows // ROWS_PER_PARTITION))))
    return made
