"""The functions of Arrow, each made when it is first used.

`pyarrow.compute`, which Lance imports, makes 250 functions with a signature and a page of
documentation each: more work than a query of one row. A program uses a dozen of them. Here the
module makes a function when it is looked up, by the means that it would have used, so that a
program sees the same module: the same names in `dir`, the same functions, the same errors.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_MODULE = "pyarrow.compute"
_KNOWN_RELEASE = "26."
"""How the module makes its functions is its own affair: that of another release is left alone."""
_USED_BY_THE_MODULE = ("utf8_zero_fill",)
_SPELLINGS = {"and": "and_", "or": "or_"}
_NAMES = {spelling: name for name, spelling in _SPELLINGS.items()}


class _FunctionsLater:
    """Takes part in the import of the module."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            loader: Any = spec.loader
            run = loader.exec_module
            loader.exec_module = lambda module: _load(module, run)
        return spec


class _FewFunctions:
    """The registry of functions, as one that has only those that the module itself uses."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def list_functions(self) -> list[str]:
        return list(_USED_BY_THE_MODULE)

    def get_function(self, name: str) -> Any:
        return self._registry.get_function(name)


def _load(module: Any, run: Callable[[ModuleType], None]) -> None:
    compute: Any = importlib.import_module("pyarrow._compute")
    find_registry = compute.function_registry
    registry = find_registry()
    if not importlib.import_module("pyarrow").__version__.startswith(_KNOWN_RELEASE):
        run(module)
        return
    compute.function_registry = lambda: _FewFunctions(registry)
    try:
        run(module)
    finally:
        compute.function_registry = find_registry
    module.function_registry = find_registry
    later = _LaterFunctions(module, registry)
    module.__getattr__, module.__dir__ = later.get, later.list_names


class _LaterFunctions:
    """The functions that a module has not made yet; later ones of the registry are not its own."""

    def __init__(self, module: Any, registry: Any) -> None:
        self._module, self._registry = module, registry
        self._names = frozenset(registry.list_functions())

    def get(self, name: str) -> Any:
        """Make the function of this name. Threads that do so at once make the same."""
        own_name = _NAMES.get(name, name)
        function = self._find(own_name)
        if function is None:
            raise AttributeError(f"module '{_MODULE}' has no attribute '{name}'")
        spelling = _SPELLINGS.get(own_name, own_name)
        made = self._module._wrap_function(spelling, function)
        setattr(self._module, own_name, made)
        setattr(self._module, spelling, made)
        return made

    def list_names(self) -> list[str]:
        found = {name for name in self._names if self._find(name) is not None}
        return sorted({*vars(self._module), *found, *(_SPELLINGS[name] for name in _SPELLINGS)})

    def _find(self, name: str) -> Any:
        """The function, unless it works on groups only, or on nothing."""
        if name not in self._names:
            return None
        function = self._registry.get_function(name)
        is_of_nothing = function.kind == "scalar_aggregate" and function.arity == 0
        return None if function.kind == "hash_aggregate" or is_of_nothing else function


def make_arrow_functions_later() -> None:
    """Let importing Lance not make the functions of Arrow, unless it is too late for that."""
    if _MODULE not in sys.modules:
        sys.meta_path.insert(0, _FunctionsLater())
