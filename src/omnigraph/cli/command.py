"""Command: the decorator that gives a function the shared flags and hands it a `Call`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.flags import Capability, Flags, is_shown, option, refuse_useless
from omnigraph.cli.output import warn_deprecated
from omnigraph.errors import AddressError

Function = Callable[..., None]

_URI = Annotated[
    str | None, typer.Argument(metavar="[URI]", help="The graph: a path, file:// or s3:// URI.")
]
_NAMES = [each.name for each in fields(Flags)]
_OF_THEIR_OWN = frozenset({"policy", "serve"})


def command(
    verb: str,
    capability: Capability,
    *,
    writes: bool = False,
    removes: bool = False,
    uri: Literal["argument", "option"] | None = None,
) -> Callable[[Function], Function]:
    """Give a command the shared flags; its first parameter gets the `Call`.

    `uri` says how the graph's own location is given: as the first argument, or with `--uri`.
    """

    def decorate(run: Function) -> Function:
        @wraps(run)
        def called(**given: Any) -> None:
            context = given.pop("context")
            typed = given.pop("uri_option", None)
            address = {name: given.pop(name) for name in _NAMES if name in given}
            if typed is not None:
                address["uri"] = typed
            earlier = context.find_root().obj
            flags = Flags(**address)
            if isinstance(earlier, Flags):
                flags = flags.over(earlier)
            refuse_useless(flags, verb, capability, writes=writes)
            run(Call(verb, capability, writes, flags), **given)

        own = dict(inspect.signature(run, eval_str=True).parameters)
        del own["call"]
        last = [own.pop("as_json")] if "as_json" in own else []
        shared = _shared(capability, writes=writes, removes=removes)
        parameters = [_CONTEXT, *_located(uri), *own.values(), *shared, *last]
        _describe(called, parameters)
        return called

    return decorate


def with_shared_flags(run: Function) -> Function:
    """Let the shared flags stand before the command too."""

    @wraps(run)
    def called(**given: Any) -> None:
        context = given.pop("context")
        context.obj = Flags(**{name: given.pop(name) for name in _NAMES if name in given})
        if context.obj != Flags() and context.invoked_subcommand in _OF_THEIR_OWN:
            raise AddressError(
                f"{context.invoked_subcommand} has flags of its own — put them after the command"
            )
        run(**given)

    own = inspect.signature(run, eval_str=True).parameters
    shared = [
        _parameter(name, option(name, hidden=name == "cluster"), _default(name))
        for name in _NAMES
        if name != "uri"
    ]
    _describe(called, [_CONTEXT, *own.values(), *shared])
    return called


def deprecated(old: str, new: str, run: Function) -> Function:
    """The same command under its old name, with a word about the new one."""

    @wraps(run)
    def called(**given: Any) -> None:
        warn_deprecated(old, new)
        run(**given)

    called.__doc__ = f"The old name of `{new}`."
    return called


def _located(uri: Literal["argument", "option"] | None) -> list[inspect.Parameter]:
    """How the graph's own location is given."""
    match uri:
        case "argument":
            typed = _parameter("uri_option", option("uri", hidden=True), None)
            return [_parameter("uri", _URI, None), typed]
        case "option":
            return [_parameter("uri", option("uri", hidden=False), None)]
        case None:
            return []


def _shared(capability: Capability, *, writes: bool, removes: bool) -> list[inspect.Parameter]:
    """The other shared flags of a command."""
    return [
        _parameter(
            name,
            option(name, hidden=not is_shown(name, capability, writes=writes, removes=removes)),
            _default(name),
        )
        for name in _NAMES
        if name != "uri"
    ]


def _describe(called: Function, parameters: list[inspect.Parameter]) -> None:
    """Say what a function takes, to those who ask for its signature."""
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    called.__annotations__ = {}


def _default(name: str) -> Any:
    return False if name in ("yes", "quiet") else None


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


_CONTEXT = _parameter("context", typer.Context, inspect.Parameter.empty)
