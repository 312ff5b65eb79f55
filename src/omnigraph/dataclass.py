"""Data classes with slots, as cheap to import as plain classes.

`dataclasses.dataclass` writes and compiles six functions for each class when its module is
imported: half a millisecond, and we have hundreds of classes of which a program uses a few.
Here comparing, hashing, showing and freezing are functions of the field names, and `__init__`,
which needs code of its own, is compiled with the first instance. `fields`, `replace`, `asdict` and
`match` work as for any data class: what they need is made by `dataclasses` when it is asked for.

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
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeAlias, TypeVar, dataclass_transform

_T = TypeVar("_T")
_Fields: TypeAlias = dict[str, tuple[str, Any]]
"""The annotation and the default of each field."""

_OWN = "__own_fields__"
_PLAIN: Field[Any] = dataclasses.field()


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
    content = _make_methods(fields, frozen=frozen, eq=eq)
    content |= {name: value for name, value in written.items() if value is not None}
    inherited = {name for base in body.__mro__ for name in base.__dict__.get("__slots__", ())}
    content |= {"__slots__": tuple(name for name in own if name not in inherited), _OWN: own}
    made: Any = type(body)(body.__name__, body.__bases__, content)
    made.__qualname__ = body.__qualname__
    late = _LateMethods(made, fields, frozen=frozen, has_init="__init__" in written)
    made.__dataclass_fields__ = late
    if "__init__" not in written:
        made.__init__ = late.make_first_init()
    return made


def _inherit_fields(body: type) -> _Fields:
    fields: _Fields = {}
    for base in reversed(body.__mro__[1:]):
        fields |= base.__dict__.get(_OWN, {})
    return fields


def _make_methods(fields: _Fields, *, frozen: bool, eq: bool) -> dict[str, Any]:
    """What a class gets unless it has written it itself; nothing of it is compiled."""
    settings = {
        name: default if isinstance(default, Field) else _PLAIN
        for name, (_, default) in fields.items()
    }
    made: dict[str, Any] = {
        "__repr__": _make_repr([name for name, each in settings.items() if each.repr]),
        "__match_args__": tuple(
            name for name, each in settings.items() if each.init and each.kw_only is not True
        ),
    }
    if eq:
        compared = [name for name, each in settings.items() if each.compare]
        hashed = [name for name in compared if settings[name].hash is not False]
        made["__eq__"] = _make_eq(_make_reader(compared))
        made["__hash__"] = _make_hash(_make_reader(hashed)) if frozen else None
    if frozen:
        made |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        made |= _make_copying(tuple(fields))
    return made


def _make_reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the named attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _make_eq(read: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return read(self) == read(other)

    return __eq__


def _make_hash(read: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(read(self))

    return __hash__


def _make_repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({parts})"

    return __repr__


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _make_copying(names: tuple[str, ...]) -> dict[str, Any]:
    """How frozen instances are pickled and copied: nothing can be assigned to them."""

    def __getstate__(self: object) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: object, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}


class _LateMethods:
    """What a class gets late: `__init__` at the first instance, its fields when asked for."""

    def __init__(self, kind: type, fields: _Fields, *, frozen: bool, has_init: bool) -> None:
        self._kind, self._fields = kind, fields
        self._is_frozen, self._has_init = frozen, has_init

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        self._make_fields()
        found: dict[str, Field[Any]] = self._kind.__dataclass_fields__  # type: ignore[attr-defined]
        return found

    def make_first_init(self) -> Callable[..., None]:
        """The `__init__` that replaces itself. Threads that do so at once make the same."""
        late = self

        def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
            late._kind.__init__ = _compile_init(late._kind, late._fields)  # type: ignore[misc]
            late._kind.__init__(self, *args, **options)  # type: ignore[misc]

        return __init__

    def _make_fields(self) -> None:
        """Let `dataclasses` make a class of these fields, and take over what it says of them."""
        content: dict[str, Any] = {
            name: default for name, (_, default) in self._fields.items() if default is not MISSING
        }
        content |= {
            "__annotations__": {name: text for name, (text, _) in self._fields.items()},
            "__module__": self._kind.__module__,
            "__qualname__": self._kind.__qualname__,
            "__doc__": "",
        }
        model: Any = type(self._kind.__name__, (), content)
        model = dataclasses.dataclass(frozen=self._is_frozen, eq=False, repr=False)(model)
        kind: Any = self._kind
        kind.__dataclass_params__ = model.__dataclass_params__
        kind.__dataclass_fields__ = model.__dataclass_fields__


def _compile_init(kind: type, fields: _Fields) -> Callable[..., None]:
    """Compile the `__init__` that `dataclasses` would: parameters, defaults, factories."""
    names: dict[str, Any] = {}
    plain, keyword, body = list[str](), list[str](), list[str]()
    for name, (_, default) in fields.items():
        setting = default if isinstance(default, Field) else dataclasses.field(default=default)
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
