"""The Spark session of the suite."""

from __future__ import annotations

from tests.pipeline.conftest import spark, spark_disk

__all__ = ["spark", "spark_disk"]
