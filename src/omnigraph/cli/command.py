"""The decorator `command`, which adds the shared flags to a function and passes it a `Call`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.flags import Capability, Flags, is_shown, option, refuse_useless
from omnigraph.cli.help_groups import ExampleGroup
from omnigraph.cli.output import JsonFlag, warn_deprecated
from omnigraph.cli.pager import paged
from omnigraph.errors import AddressError

Function = Callable[..., None]

_URI = Annotated[
    str | None, typer.Argument(metavar="[URI]", help="The graph: a path, file:// or s3:// URI.")
]
_NAMES = [each.name for each in fields(Flags)]
_WITHOUT_SHARED_FLAGS = frozenset({"policy", "serve"})


def make_group(help_: str) -> typer.Typer:
    """Make the group of commands of one noun."""
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None, cls=ExampleGroup)


def command(
    verb: str,
    capability: Capability,
    *,
    writes: bool = False,
    removes: bool = False,
    uri: Literal["argument", "option"] | None = None,
    has_json: bool = True,
    pages: bool = False,
) -> Callable[[Function], Function]:
    """Add the shared flags to a command and pass it a `Call` as its first argument.

    `uri` says how the graph's location is given: as the first argument, or with `--uri`;
    `has_json` whether the command takes `--json`, which is `Call.as_json`; `pages` whether what it
    prints may be too long for a screen.
    """

    def decorate(run: Function) -> Function:
        @wraps(run)
        def invoke(**given: Any) -> None:
            context = given.pop("context")
            uri_option = given.pop("uri_option", None)
            values = {name: given.pop(name) for name in _NAMES if name in given}
            if uri_option is not None:
                values["uri"] = uri_option
            flags = Flags(**values)
            global_flags = context.find_root().obj
            if isinstance(global_flags, Flags):
                flags = flags.or_else(global_flags)
            refuse_useless(flags, verb, capability, writes=writes)
            call = Call(verb, capability, writes, flags, given.pop("as_json", False))
            with paged(is_wanted=pages and not call.as_json and not flags.no_pager):
                run(call, **given)

        own = dict(inspect.signature(run, eval_str=True).parameters)
        del own["call"]
        last = [_parameter("as_json", JsonFlag, False)] if has_json else []
        shared = _build_shared(
            lambda name: not is_shown(name, capability, writes=writes, removes=removes, pages=pages)
        )
        _set_signature(invoke, [*_location_parameters(uri), *own.values(), *shared, *last])
        return invoke

    return decorate


def with_shared_flags(run: Function) -> Function:
    """Accept the shared flags before the command too."""

    @wraps(run)
    def invoke(**given: Any) -> None:
        context = given.pop("context")
        context.obj = Flags(**{name: given.pop(name) for name in _NAMES if name in given})
        if context.obj != Flags() and context.invoked_subcommand in _WITHOUT_SHARED_FLAGS:
            raise AddressError(
                f"{context.invoked_subcommand} has flags of its own — put them after the command"
            )
        run(**given)

    own = inspect.signature(run, eval_str=True).parameters
    _set_signature(invoke, [*own.values(), *_build_shared(lambda name: name == "cluster")])
    return invoke


def deprecate(old: str, new: str, run: Function) -> Function:
    """Offer a command under its old name, with a warning that gives the new one."""

    @wraps(run)
    def invoke(**given: Any) -> None:
        warn_deprecated(old, new)
        run(**given)

    invoke.__doc__ = f"The old name of `{new}`."
    return invoke


def _location_parameters(uri: Literal["argument", "option"] | None) -> list[inspect.Parameter]:
    match uri:
        case "argument":
            hidden = _parameter("uri_option", option("uri", hidden=True), None)
            return [_parameter("uri", _URI, None), hidden]
        case "option":
            return [_parameter("uri", option("uri", hidden=False), None)]
        case None:
            return []


def _build_shared(is_hidden: Callable[[str], bool]) -> list[inspect.Parameter]:
    """Build the parameters of every shared flag but the location."""
    return [
        _parameter(each.name, option(each.name, hidden=is_hidden(each.name)), each.default)
        for each in fields(Flags)
        if each.name != "uri"
    ]


def _set_signature(invoke: Function, parameters: list[inspect.Parameter]) -> None:
    """Set the signature from which Typer builds the command."""
    context = _parameter("context", typer.Context, inspect.Parameter.empty)
    invoke.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (context, *parameters)]
    )
    invoke.__annotations__ = {}


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
