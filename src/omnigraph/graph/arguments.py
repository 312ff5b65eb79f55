"""Arguments: what a public call is given, held to its annotations before anything happens.

Programs pass None, a number or half a character where text belongs. Every call says so in the same
words, naming the argument, and the code below it can rely on its types. What Python itself refuses,
such as an argument that is not there, stays a TypeError.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from inspect import isfunction
from numbers import Integral
from pathlib import Path
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.types import is_unicode

P = ParamSpec("P")
T = TypeVar("T")
LoadTypes: TypeAlias = Callable[[], dict[str, Any]]

_SHOWN_MAX = 60
_BITS_MAX = 64
_NO_LISTS = (str, bytes, bytearray, Mapping)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What an annotation allows, in words and as a test."""

    words: tuple[str, ...]
    accepts: Callable[[Any], bool]

    def __str__(self) -> str:
        *others, last = self.words
        return f"{', '.join(others)} or {last}" if others else last


def check_calls(load_types: LoadTypes) -> Callable[[type[T]], type[T]]:
    """Let every public method of a class refuse arguments that its annotations do not allow.

    `load_types` imports what annotations name and the module of the class does not.
    """

    def check_all(kind: type[T]) -> type[T]:
        for name in dir(kind):
            call = getattr(kind, name)
            if not name.startswith("_") and isfunction(call):
                setattr(kind, name, check_call(call, load_types))
        return kind

    return check_all


def check_call(call: Callable[P, T], load_types: LoadTypes = dict) -> Callable[P, T]:
    """Let a function refuse arguments that its annotations do not allow.

    Raises:
        BadRequestError: An argument has another type, or is text that is not valid Unicode.
    """
    code = call.__code__
    names = code.co_varnames[: code.co_argcount]
    # Options by a TypedDict: Python itself would take any name for them.
    is_closed = any(str(text).startswith("Unpack[") for text in call.__annotations__.values())
    expected: dict[str, _Expected] = {}

    @wraps(call)
    def check_and_call(*args: P.args, **options: P.kwargs) -> T:
        if not expected:
            # At the first call: programs that start up make few of them.
            expected.update(_read_annotations(call, load_types))
        for name, value in zip(names, args, strict=False):
            _check(name, value, expected.get(name))
        for name, value in options.items():
            if is_closed and name not in expected:
                raise TypeError(f"{call.__name__}() has no argument '{name}'")
            _check(name, value, expected.get(name))
        return call(*args, **options)

    return check_and_call


def _check(name: str, value: object, expected: _Expected | None) -> None:
    if expected is None:
        return
    if not expected.accepts(value):
        raise BadRequestError(f"{name} is {show_value(value)}, expected {expected}")
    texts = value if isinstance(value, list | tuple) else (value,)
    if not all(is_unicode(text) for text in texts if isinstance(text, str)):
        raise BadRequestError(f"{name} is not valid Unicode: it has a lone surrogate")


def show_value(value: object) -> str:
    """A value, or its type where it may be long."""
    is_short = value is None or isinstance(value, bool | float)
    is_short |= isinstance(value, str) and len(value) <= _SHOWN_MAX
    is_short |= isinstance(value, int) and _fits(value)
    return repr(value) if is_short else f"of type {type(value).__name__}"


def _fits(number: int) -> bool:
    return number.bit_length() <= _BITS_MAX


def _read_annotations(call: Callable[..., Any], load_types: LoadTypes) -> dict[str, _Expected]:
    texts = {name: text for name, text in call.__annotations__.items() if name != "return"}
    arguments = types.SimpleNamespace(__annotations__=texts)
    try:
        hints = get_type_hints(arguments, call.__globals__)
    except NameError:
        hints = get_type_hints(arguments, call.__globals__ | load_types())
    for name, hint in list(hints.items()):
        if get_origin(hint) is Unpack:
            del hints[name]
            hints |= get_type_hints(get_args(hint)[0])
    return {name: _expect(hint) for name, hint in hints.items()}


_ANYTHING = _Expected(("anything",), lambda value: True)
_SIMPLE: dict[Any, _Expected] = {
    str: _Expected(("a string",), lambda value: isinstance(value, str)),
    # True is an int for Python, but never a version or a limit.
    int: _Expected(
        ("a whole number of 64 bits",),
        lambda value: (
            not isinstance(value, bool) and isinstance(value, Integral) and _fits(int(value))
        ),
    ),
    bool: _Expected(("True or False",), lambda value: isinstance(value, bool)),
    Path: _Expected(("a path",), lambda value: isinstance(value, Path)),
    types.NoneType: _Expected(("None",), lambda value: value is None),
    Mapping: _Expected(("a mapping",), lambda value: isinstance(value, Mapping)),
    Callable: _Expected(("a callable",), callable),
}


def _expect(hint: Any) -> _Expected:
    """What an annotation allows; anything, where that cannot be told from a value alone."""
    if hint is Any:
        return _ANYTHING
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _expect_one_of([_expect(each) for each in get_args(hint)])
    if origin is Literal:
        allowed = get_args(hint)
        return _Expected(
            tuple(map(repr, allowed)), lambda value: isinstance(value, str) and value in allowed
        )
    if isinstance(origin, type) and issubclass(origin, Collection) and origin is not Mapping:
        return _expect_list(_expect(get_args(hint)[0]))
    if origin is Iterable:
        return _Expected(
            ("an iterable",),
            lambda value: isinstance(value, Iterable) and not isinstance(value, _NO_LISTS),
        )
    found = _SIMPLE.get(origin or hint)
    if found is None and isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return _Expected((f"a {hint.__name__}",), lambda value: isinstance(value, hint))
    return found or _ANYTHING


def _expect_one_of(allowed: list[_Expected]) -> _Expected:
    words = dict.fromkeys(word for each in allowed for word in each.words)
    return _Expected(tuple(words), lambda value: any(each.accepts(value) for each in allowed))


def _expect_list(element: _Expected) -> _Expected:
    def accepts(value: Any) -> bool:
        is_list = isinstance(value, Collection) and not isinstance(value, _NO_LISTS)
        return is_list and all(element.accepts(each) for each in value)

    of = str(element).removeprefix("a ") + "s"
    return _Expected((f"a list of {of}",), accepts)
