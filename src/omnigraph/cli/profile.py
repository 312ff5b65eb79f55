"""`omnigraph profile`: the named scopes of the operator config."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
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

app = make_group("List and show profiles.")


@app.command("list")
@command("profile list", Capability.LOCAL)
def list_(call: Call) -> None:
    """List the profiles of the operator config, and whether each is valid."""
    operator = call.settings.operator
    active = call.settings.environment.get(PROFILE_VARIABLE, "").strip()
    profiles = [_to_json(each, operator, active) for each in operator.profiles.values()]
    call.print_result(profiles, map(_describe, profiles))


def _describe(profile: Json) -> str:
    mark = "*" if profile["active"] else " "
    state = "" if profile["valid"] else f"  invalid: {profile['error']}"
    graph = f" graph={profile['default_graph']}" if profile["default_graph"] else ""
    return f"{mark} {profile['name']} {profile['binding'] or '-'}{graph}{state}"


@app.command()
@command("profile show", Capability.LOCAL)
def show(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The profile; the active one by default.")
    ] = None,
) -> None:
    """Print the scope of a profile, or the default scope if none is active."""
    settings = call.settings
    chosen = name or settings.environment.get(PROFILE_VARIABLE, "").strip() or None
    if chosen is not None:
        profile = settings.operator.profile(chosen)
        kind, target = profile.binding()
        scope = profile_scope(profile, settings.operator)
    else:
        scope = _default_scope(call)
        if isinstance(scope, DirectScope):
            kind, target = "store", scope.uri
        else:
            kind, target = "server", settings.operator.defaults.server or scope.url
    facts = {
        "name": chosen,
        "scope_kind": kind,
        "target": target,
        "endpoint": scope.uri if isinstance(scope, DirectScope) else scope.url,
        "default_graph": scope.graph if isinstance(scope, ServedScope) else None,
        "output_format": settings.operator.defaults.output,
    }
    lines = (f"{key}: {'' if value is None else value}".rstrip() for key, value in facts.items())
    call.print_result(facts, lines)


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


def _to_json(profile: Profile, operator: Operator, active: str) -> Json:
    kind = target = error = None
    try:
        kind, target = profile.binding()
        profile_scope(profile, operator)
    except BadRequestError as invalid:
        error = str(invalid)
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
