"""The worked examples in docstrings hold."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "executor.kernels",
    "executor.weights",
    "index.adjacency",
    "index.carry_over",
    "index.columns",
    "index.keys",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name: str) -> None:
    outcome = doctest.testmod(import_module(f"omnigraph.{name}"))

    assert outcome.attempted > 0
    assert outcome.failed == 0
