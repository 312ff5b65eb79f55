"""What forks the Python workers of the suite's Spark: each of them would import all of this first.

Spark's own daemon imports nothing, for what programs import may start threads. What is imported
here starts none before it is used, as in `tests.warm`.
"""

from __future__ import annotations

import gc
import importlib
import warnings

# Lance warns of every fork. It is right about processes that have used it; this one has not.
warnings.filterwarnings("ignore", message="lance is not fork-safe")

for _name in (
    "pandas",
    "pyarrow.acero",
    "pyarrow.compute",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "omnigraph.pipeline.loader",
    "omnigraph.pipeline.spark_runner",
    "omnigraph.pipeline.spark_query.run",
    "omnigraph.pipeline.spark_blocks",
    "omnigraph.graph",
):
    importlib.import_module(_name)

if __name__ == "__main__":
    from pyspark.daemon import manager

    # A collection in a worker would copy the memory that it shares with this process.
    gc.freeze()
    manager()
