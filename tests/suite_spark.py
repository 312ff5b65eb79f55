"""The Spark of the suite: one session, with a disk of its own that a test can fill.

The fixtures are defined once, for all directories: a second definition would mount a second disk,
while Spark keeps its files on that of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.small_disk import mounted

SPARK_DAEMON = "tests.spark.daemon"
SPARK_DISK_SIZE = 1 << 30


@pytest.fixture(scope="session")
def spark_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where Spark keeps its files: a disk of its own, where the machine lets us mount one."""
    folder = tmp_path_factory.mktemp("spark")
    with mounted(folder, SPARK_DISK_SIZE):
        yield folder


@pytest.fixture(scope="session")
def spark(spark_disk: Path) -> Iterator[Any]:
    """One Spark for the whole suite; its Python workers have their imports from the start."""
    import omnigraph as og

    settings = {
        "master": "local[2,4]",
        "spark.local.dir": str(spark_disk),
        "spark.python.daemon.module": SPARK_DAEMON,
    }
    made = og.spark.session(settings)
    yield made
    made.stop()
