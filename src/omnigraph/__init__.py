"""Omnigraph: a typed, versioned, branchable property graph on plain Lance tables.

The public names, and nothing else. Each is imported when it is first used, so that `import
omnigraph` stays light: no Arrow, no Lance, no Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from omnigraph.collection import pause_collection
from omnigraph.matrix_threads import wait_asleep
from omnigraph.version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from omnigraph import errors as errors
    from omnigraph import spark as spark
    from omnigraph.catalog import Catalog as Catalog
    from omnigraph.catalog import MigrationPlan as MigrationPlan
    from omnigraph.catalog import build_catalog as build_catalog
    from omnigraph.catalog import plan_migration as plan_migration
    from omnigraph.compiler import CompiledQuery as CompiledQuery
    from omnigraph.compiler import compile_query as compile_query
    from omnigraph.compiler.lint import LintReport as LintReport
    from omnigraph.compiler.lint import lint as lint
    from omnigraph.executor import QueryResult as QueryResult
    from omnigraph.graph import Commit as Commit
    from omnigraph.graph import EmbedResult as EmbedResult
    from omnigraph.graph import Graph as Graph
    from omnigraph.graph import LoadResult as LoadResult
    from omnigraph.graph import MutationResult as MutationResult
    from omnigraph.graph import init as init
    from omnigraph.graph import open as open  # noqa: A004 — the API's own word
    from omnigraph.graph.transfers import clone as clone
    from omnigraph.graph.transfers import restore_backup as restore_backup
    from omnigraph.infer import InferredSchema as InferredSchema
    from omnigraph.infer import infer_schema as infer_schema
    from omnigraph.manifest import Snapshot as Snapshot
    from omnigraph.pipeline.preview import LoadPreview as LoadPreview
    from omnigraph.syntax import parse_query as parse_query
    from omnigraph.syntax import parse_schema as parse_schema
    from omnigraph.transfer.result import TransferResult as TransferResult

_MODULES = ("errors", "spark")
_NAMES = {
    "catalog": ("Catalog", "MigrationPlan", "build_catalog", "plan_migration"),
    "compiler": ("CompiledQuery", "compile_query"),
    "compiler.lint": ("LintReport", "lint"),
    "executor": ("QueryResult",),
    "graph": (
        "Commit",
        "EmbedResult",
        "Graph",
        "LoadResult",
        "MutationResult",
        "init",
        "open",
    ),
    "graph.transfers": ("clone", "restore_backup"),
    "infer": ("InferredSchema", "infer_schema"),
    "manifest": ("Snapshot",),
    "pipeline.preview": ("LoadPreview",),
    "syntax": ("parse_query", "parse_schema"),
    "transfer.result": ("TransferResult",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_MODULES, *_HOMES]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"omnigraph.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    with pause_collection(), wait_asleep():
        value: object = getattr(importlib.import_module(f"omnigraph.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext omnigraph` calls: cells that begin with `%%gq` are queries from then on."""
    from omnigraph.notebook import load

    load(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
