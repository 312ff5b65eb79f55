"""Omnigraph: a typed, versioned, branchable property graph on plain Lance tables.

The public names, and nothing else. Each is imported when it is first used, so that `import
omnigraph` stays light: no Arrow, no Lance, no Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from omnigraph.version import __version__

if TYPE_CHECKING:
    from omnigraph import errors as errors
    from omnigraph import spark as spark
    from omnigraph.catalog import Catalog as Catalog
    from omnigraph.catalog import MigrationPlan as MigrationPlan
    from omnigraph.catalog import build_catalog as build_catalog
    from omnigraph.catalog import plan_migration as plan_migration
    from omnigraph.compiler import CompiledQuery as CompiledQuery
    from omnigraph.compiler import LintReport as LintReport
    from omnigraph.compiler import compile_query as compile_query
    from omnigraph.compiler import lint as lint
    from omnigraph.executor import QueryResult as QueryResult
    from omnigraph.graph import Commit as Commit
    from omnigraph.graph import Graph as Graph
    from omnigraph.graph import LoadResult as LoadResult
    from omnigraph.graph import MutationResult as MutationResult
    from omnigraph.graph import init as init
    from omnigraph.graph import open as open  # noqa: A004 — the API's own word
    from omnigraph.manifest import Snapshot as Snapshot
    from omnigraph.syntax import parse_query as parse_query
    from omnigraph.syntax import parse_schema as parse_schema

_HOMES = {
    "Catalog": "omnigraph.catalog",
    "Commit": "omnigraph.graph",
    "CompiledQuery": "omnigraph.compiler",
    "Graph": "omnigraph.graph",
    "LintReport": "omnigraph.compiler",
    "LoadResult": "omnigraph.graph",
    "MigrationPlan": "omnigraph.catalog",
    "MutationResult": "omnigraph.graph",
    "QueryResult": "omnigraph.executor",
    "Snapshot": "omnigraph.manifest",
    "build_catalog": "omnigraph.catalog",
    "compile_query": "omnigraph.compiler",
    "init": "omnigraph.graph",
    "lint": "omnigraph.compiler",
    "open": "omnigraph.graph",
    "parse_query": "omnigraph.syntax",
    "parse_schema": "omnigraph.syntax",
    "plan_migration": "omnigraph.catalog",
}

_MODULES = {"errors": "omnigraph.errors", "spark": "omnigraph.spark"}

__all__ = ["__version__", *_MODULES, *_HOMES]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
