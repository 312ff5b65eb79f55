"""Import this in a process that forks others: what each of them would do first is done once.

It imports the engine and builds both grammars. It never uses Lance, which would make forks unsafe.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil

from omnigraph import build_catalog, compile_query, parse_schema
from tests import scratch

scratch.skip_flushes()

for _name in ("graph", "upkeep", "branch", "write"):
    _package = importlib.import_module(f"omnigraph.{_name}")
    for _module in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)
# What is imported when it is first used.
for _name in (
    "omnigraph.pipeline.loader",
    "omnigraph.storage.text_local",
    "pyarrow.acero",
    "numpy.ma",
    "ulid",
):
    importlib.import_module(_name)

_CATALOG = build_catalog(parse_schema("node A { a: String @key }"))
compile_query("query q() { match { $a: A } return { $a } }", _CATALOG)

# A collection in a child would copy the memory that it shares with its parent.
gc.freeze()
