"""`omnigraph profile`: the scopes that a person has named."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.config.operator import Operator, Profile
from omnigraph.config.scope import (
    PROFILE_VARIABLE,
    Address,
    DirectScope,
    Scope,
    ServedScope,
    profile_scope,
    resolve_scope,
)
from omnigraph.errors import BadRequestError, ConfigError

app = typer.Typer(help="Named scopes.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@command("profile list", Capability.LOCAL)
def list_(call: Call, as_json: JsonFlag = False) -> None:
    """Print the profiles of the operator config, and whether each can be used."""
    operator = call.settings.operator
    active = call.settings.environment.get(PROFILE_VARIABLE, "").strip()
    listed = [_described(each, operator, active) for each in operator.profiles.values()]
    if as_json:
        print_json(listed)
        return
    for each in listed:
        mark = "*" if each["active"] else " "
        state = "" if each["valid"] else f"  invalid: {each['error']}"
        graph = f" graph={each['default_graph']}" if each["default_graph"] else ""
        print(f"{mark} {each['name']} {each['binding'] or '-'}{graph}{state}")


@app.command()
@command("profile show", Capability.LOCAL)
def show(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The profile; the active one if none.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what a profile addresses, or what is addressed without one."""
    settings = call.settings
    chosen = name or settings.environment.get(PROFILE_VARIABLE, "").strip() or None
    if chosen is not None:
        profile = settings.operator.profile(chosen)
        kind, target = profile.binding()
        scope = profile_scope(profile, settings.operator)
    else:
        scope = _default_scope(call)
        kind, target = (
            ("store", scope.uri)
            if isinstance(scope, DirectScope)
            else (
                "server",
                settings.operator.defaults.server or scope.url,
            )
        )
    facts = {
        "name": chosen,
        "scope_kind": kind,
        "target": target,
        "endpoint": scope.uri if isinstance(scope, DirectScope) else scope.url,
        "default_graph": scope.graph if isinstance(scope, ServedScope) else None,
        "output_format": settings.operator.defaults.output,
    }
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        print(f"{key}: {'' if value is None else value}".rstrip())


def _default_scope(call: Call) -> Scope:
    try:
        return resolve_scope(Address(), call.settings)
    except BadRequestError as error:
        if isinstance(error, ConfigError):
            raise
        raise BadRequestError(
            "no profile is active and no default is set — name one, or set "
            f"{PROFILE_VARIABLE}; `omnigraph profile list` shows them"
        ) from None


def _described(profile: Profile, operator: Operator, active: str) -> dict[str, Any]:
    kind: str | None = None
    target: str | None = None
    error: str | None = None
    try:
        kind, target = profile.binding()
        profile_scope(profile, operator)
    except BadRequestError as found:
        error = str(found)
    return {
        "name": profile.name,
        "binding": None if kind is None else f"{kind}={target}",
        "scope_kind": kind,
        "target": target,
        "valid": error is None,
        "error": error,
        "default_graph": profile.default_graph,
        "active": profile.name == active,
    }
