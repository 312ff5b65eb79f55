"""Data classes with slots, as cheap to import as plain classes.

`dataclasses.dataclass` writes and compiles six functions for each class when its module is
imported: half a millisecond, and we have hundreds of classes of which a program uses a few.
Here comparing, hashing, showing and freezing are functions that all classes share, and `__init__`,
which needs code of its own to be fast, is compiled for a class that has more than a few instances.
`fields`, `replace`, `asdict` and `match` work as for any data class: what they need is made by
`dataclasses` when it is asked for.

    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> dataclasses.replace(Point(1), y=2)
    Point(x=1, y=2)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cached_property
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeAlias, TypeVar, dataclass_transform

_T = TypeVar("_T")
_Fields: TypeAlias = dict[str, tuple[str, Any]]
"""The annotation and the default of each field."""

_OWN = "__own_fields__"
COMPILED_AFTER = 4
"""Instances that are made without a compiled `__init__`: compiling one takes as long as ten."""


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True
) -> Callable[[type[_T]], type[_T]]:
    """Do what `dataclasses.dataclass` does, for classes with slots as late as possible."""
    if not slots:
        return dataclasses.dataclass(frozen=frozen, eq=eq)
    return lambda body: _make_class(body, frozen=frozen, eq=eq)


def _make_class(body: type, *, frozen: bool, eq: bool) -> Any:
    """The class as it was written, with slots for its fields; that takes a new class."""
    written = dict(body.__dict__)
    for name in ("__dict__", "__weakref__"):
        written.pop(name, None)
    own = {
        name: (annotation, written.pop(name, MISSING))
        for name, annotation in written.get("__annotations__", {}).items()
        if not annotation.startswith("ClassVar")
    }
    fields = _inherit_fields(body) | own
    late = _LateMethods(fields, frozen=frozen)
    content: dict[str, Any] = {
        "__repr__": _show,
        "__match_args__": late.match_args,
        "__late__": late,
    }
    if eq:
        # By a name of its own: a subclass with `eq=False` compares the fields of this class.
        content |= {"__eq__": _equal, "__hash__": _hash if frozen else None, "__late_eq__": late}
    if frozen:
        content |= _FROZEN
    content |= {name: value for name, value in written.items() if value is not None}
    inherited = {name for base in body.__mro__ for name in base.__dict__.get("__slots__", ())}
    content |= {"__slots__": tuple(name for name in own if name not in inherited), _OWN: own}
    made: Any = type(body)(body.__name__, body.__bases__, content)
    made.__qualname__ = body.__qualname__
    late.kind = made
    made.__dataclass_fields__ = _LateFields(late)
    if "__init__" not in written:
        made.__init__ = late.make_first_init()
    return made


def _inherit_fields(body: type) -> _Fields:
    fields: _Fields = {}
    for base in reversed(body.__mro__[1:]):
        fields |= base.__dict__.get(_OWN, {})
    return fields


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    read = self.__late_eq__.compared
    return read(self) == read(other)


def _hash(self: Any) -> int:
    return hash(self.__late_eq__.hashed(self))


@recursive_repr()
def _show(self: Any) -> str:
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__late__.shown)
    return f"{self.__class__.__qualname__}({parts})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__late__.fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__late__.fields, state, strict=True):
        object.__setattr__(self, name, value)


_FROZEN: dict[str, Any] = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    # How instances are pickled and copied: nothing can be assigned to them.
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}


class _LateMethods:
    """What a class gets late: names to compare by, a compiled `__init__`, its fields."""

    kind: Any

    def __init__(self, fields: _Fields, *, frozen: bool) -> None:
        self.fields, self._is_frozen = fields, frozen
        self._left = COMPILED_AFTER
        self.match_args = tuple(
            name
            for name, (_, default) in fields.items()
            if not isinstance(default, Field) or (default.init and default.kw_only is not True)
        )

    @cached_property
    def shown(self) -> list[str]:
        return [name for name, each in self._settings.items() if each.repr]

    @cached_property
    def compared(self) -> Callable[[Any], tuple[Any, ...]]:
        return _make_reader([name for name, each in self._settings.items() if each.compare])

    @cached_property
    def hashed(self) -> Callable[[Any], tuple[Any, ...]]:
        settings = self._settings.items()
        return _make_reader(
            [name for name, each in settings if each.compare and each.hash is not False]
        )

    @cached_property
    def _settings(self) -> dict[str, Field[Any]]:
        return {
            name: default if isinstance(default, Field) else dataclasses.field(default=default)
            for name, (_, default) in self.fields.items()
        }

    def make_first_init(self) -> Callable[..., None]:
        """The `__init__` of the first instances, which replaces itself after a few.

        It takes right arguments only: the compiled one says what is wrong with others. Threads
        that replace it at once make the same.
        """
        late = self

        def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
            late._left -= 1
            values = late._read_arguments(args, options) if late._left >= 0 else None
            if values is None:
                late.kind.__init__ = _compile_init(late.kind, late._settings, late.fields)
                late.kind.__init__(self, *args, **options)
                return
            for name, value in values.items():
                # Not through `__setattr__`, which refuses when the class is frozen.
                object.__setattr__(self, name, value)
            if hasattr(late.kind, "__post_init__"):
                self.__post_init__()

        return __init__

    def _read_arguments(
        self, args: tuple[Any, ...], options: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The values of the fields, or nothing for arguments that are wrong."""
        given = dict(zip(self.match_args, args, strict=False))
        if len(given) < len(args) or given.keys() & options.keys():
            return None
        given |= options
        values: dict[str, Any] = {}
        for name, setting in self._settings.items():
            if setting.init and name in given:
                values[name] = given.pop(name)
            elif setting.default_factory is not MISSING:
                values[name] = setting.default_factory()
            elif setting.default is not MISSING:
                values[name] = setting.default
            elif setting.init:
                return None
        return None if given else values

    def make_fields(self) -> None:
        """Let `dataclasses` make a class of these fields, and take over what it says of them."""
        content: dict[str, Any] = {
            name: default for name, (_, default) in self.fields.items() if default is not MISSING
        }
        content |= {
            "__annotations__": {name: text for name, (text, _) in self.fields.items()},
            "__module__": self.kind.__module__,
            "__qualname__": self.kind.__qualname__,
            "__doc__": "Without a text, one would be made of the signature.",
        }
        model: Any = type(self.kind.__name__, (), content)
        # None of its methods is used, and each would be compiled.
        model = dataclasses.dataclass(init=False, eq=False, repr=False)(model)
        model.__dataclass_params__.init = True
        model.__dataclass_params__.frozen = self._is_frozen
        self.kind.__dataclass_params__ = model.__dataclass_params__
        self.kind.__dataclass_fields__ = model.__dataclass_fields__


class _LateFields:
    """What `dataclasses` looks up first: the fields of a class, made then."""

    __slots__ = ("_late",)

    def __init__(self, late: _LateMethods) -> None:
        self._late = late

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        self._late.make_fields()
        found: dict[str, Field[Any]] = self._late.kind.__dataclass_fields__
        return found


def _make_reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the named attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _compile_init(
    kind: type, settings: dict[str, Field[Any]], fields: _Fields
) -> Callable[..., None]:
    """Compile the `__init__` that `dataclasses` would: parameters, defaults, factories."""
    names: dict[str, Any] = {}
    plain, keyword, body = list[str](), list[str](), list[str]()
    for name, setting in settings.items():
        # Not through `__setattr__`, which refuses when the class is frozen.
        names[f"_set_{name}"] = getattr(kind, name).__set__
        value = name
        if setting.default_factory is not MISSING:
            names[f"_make_{name}"] = setting.default_factory
            value = f"_make_{name}()"
            if setting.init:
                value += f" if {name} is _MISSING else {name}"
        elif not setting.init:
            if setting.default is MISSING:
                continue
            value = f"_default_{name}"
        names[f"_default_{name}"] = setting.default
        if setting.init:
            has_default = setting.default is not MISSING
            has_factory = setting.default_factory is not MISSING
            given = f"=_default_{name}" if has_default else "=_MISSING" if has_factory else ""
            (keyword if setting.kw_only is True else plain).append(name + given)
        body.append(f"_set_{name}(self, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *plain, *(["*", *keyword] if keyword else [])])
    names["_MISSING"] = MISSING
    source = f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"])
    exec(source, names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__annotations__ = {name: text for name, (text, _) in fields.items()} | {"return": None}
    return made
