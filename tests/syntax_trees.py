"""Syntax trees of Python files, for the tests that read the source: each is parsed once.

Those tests are in one group, `GROUP`, so that one worker does it for all of them.
"""

from __future__ import annotations

import ast
import gc
from functools import cache

import pytest

GROUP = pytest.mark.xdist_group("source")


@cache
def parse(source: str) -> ast.Module:
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.freeze()  # trees are kept: without this most of the time goes into collecting garbage
        gc.enable()


@cache
def list_nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree))
