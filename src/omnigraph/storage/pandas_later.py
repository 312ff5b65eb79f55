"""Lance without pandas: what Lance needs of Arrow is imported without loading pandas for it.

`pyarrow.dataset` wants to know whether pandas is there and imports it to find out, which costs each
process a quarter of a second. Here it finds no pandas, and only it. When a program loads pandas
later, Arrow is asked to look again, and converts frames as ever.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType
from typing import Any

_ASKS = "pyarrow._dataset"


class _PandasLater:
    """Takes part in two imports: that of the module that asks, and that of pandas."""

    def __init__(self) -> None:
        self._asking: int | None = None
        self._has_asked = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == _ASKS:
            return _wrap_load(PathFinder.find_spec(name, path, target), self._load_without_pandas)
        if name != "pandas":
            return None
        if self._asking == get_ident():
            raise ModuleNotFoundError("pandas is loaded later", name="pandas")
        if not self._has_asked:
            # Arrow may be what imports it, and would wait for itself if it were told to look.
            return None
        return _wrap_load(PathFinder.find_spec(name, path, target), _load_and_tell_arrow)

    def _load_without_pandas(self, load: Callable[[], None]) -> None:
        self._asking = get_ident()
        self._has_asked = True
        try:
            load()
        finally:
            self._asking = None


def _load_and_tell_arrow(load: Callable[[], None]) -> None:
    load()
    # Arrow looks for pandas once; only a call that cannot do without it looks again.
    importlib.import_module("pyarrow.lib")._pandas_api.infer_dtype([])


def _wrap_load(
    spec: ModuleSpec | None, wrap: Callable[[Callable[[], None]], None]
) -> ModuleSpec | None:
    if spec is not None:
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            wrap(lambda: run(module))

        loader.exec_module = exec_module
    return spec


def load_pandas_later() -> None:
    """Let importing Lance not import pandas, unless it is too late for that."""
    if "pandas" not in sys.modules and _ASKS not in sys.modules:
        sys.meta_path.insert(0, _PandasLater())
