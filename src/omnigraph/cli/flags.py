"""Flags: the options that every command accepts, before or after its name.

Every command knows all of them: a flag that does not apply to it is an error that says why.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.config.scope import NO_CLUSTERS, Address
from omnigraph.dataclass import dataclass
from omnigraph.errors import AddressError


class Capability(StrEnum):
    """Where a command can work."""

    ANY = "any"
    SERVED = "served"
    DIRECT = "direct"
    CONTROL = "control"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared flags as they were given."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    graph: str | None = None
    cluster: str | None = None
    profile: str | None = None
    target: str | None = None
    config: Path | None = None
    actor: str | None = None
    yes: bool = False
    quiet: bool = False
    no_pager: bool = False

    @property
    def address(self) -> Address:
        return Address(**{each.name: getattr(self, each.name) for each in fields(Address)})

    @property
    def is_addressed(self) -> bool:
        """Whether a graph was named by a flag or an argument."""
        return replace(self.address, graph=None) != Address()

    def or_else(self, defaults: Flags) -> Flags:
        """Return these flags, with missing ones taken from `defaults`."""
        names = [each.name for each in fields(Flags)]
        return Flags(**{name: getattr(self, name) or getattr(defaults, name) for name in names})


# name → type, spelling, help text. The order is that of the help.
OPTIONS: dict[str, tuple[Any, str, str]] = {
    "uri": (str | None, "--uri", "The graph: a path or URI."),
    "store": (str | None, "--store", "The graph: a path or URI."),
    "server": (str | None, "--server", "A server: its name or URL."),
    "graph": (str | None, "--graph", "A graph of the server."),
    "profile": (str | None, "--profile", "A profile of the operator config."),
    "target": (str | None, "--target", "A graph of omnigraph.yaml."),
    "config": (Path | None, "--config", "Project file, instead of ./omnigraph.yaml."),
    "cluster": (str | None, "--cluster", "Not supported by this build."),
    "actor": (str | None, "--as", "The actor of the change."),
    "yes": (bool, "--yes", "Do not ask before removing data on another machine."),
    "quiet": (bool, "--quiet", "Do not print the target of a write, or progress."),
    "no_pager": (bool, "--no-pager", "Print a long result without a pager."),
}

_SHOWN = {
    Capability.ANY: {"store", "server", "graph", "profile", "target", "config"},
    Capability.SERVED: {"server", "profile"},
    Capability.DIRECT: {"store", "target", "config"},
    Capability.CONTROL: {"target", "config"},
    Capability.LOCAL: set[str](),
}

_HINTS = {
    Capability.ANY: "Leave it out.",
    Capability.SERVED: "Use --server <name or URL>.",
    Capability.DIRECT: "Use the graph's path or --store <path or URI>.",
    Capability.CONTROL: "Use --target <name>, a graph of omnigraph.yaml.",
    Capability.LOCAL: "It needs no graph.",
}


def option(name: str, *, hidden: bool) -> Any:
    """Build the annotation of a shared flag."""
    kind, spelling, text = OPTIONS[name]
    return Annotated[kind, typer.Option(spelling, help=text, hidden=hidden)]


def is_shown(
    name: str, capability: Capability, *, writes: bool, removes: bool, pages: bool
) -> bool:
    """Whether the help of a command lists a flag; others are accepted only to be refused."""
    if name == "yes":
        return removes
    if name == "no_pager":
        return pages
    return writes if name in ("actor", "quiet") else name in _SHOWN[capability]


def refuse_useless(flags: Flags, verb: str, capability: Capability, *, writes: bool) -> None:
    """Raise an `AddressError` for the first flag that does not apply to the command."""
    can_be_direct = capability in (Capability.ANY, Capability.DIRECT)
    can_be_served = capability in (Capability.ANY, Capability.SERVED)
    kind = str(capability) if capability is not Capability.ANY else "read"
    checks = (
        (flags.server, can_be_served, "--server addresses a served graph"),
        (flags.graph, capability is Capability.ANY, "--graph picks a graph inside a server"),
        (flags.store, can_be_direct, "--store addresses one graph's storage"),
        (flags.actor, writes and can_be_direct, "--as names the actor of a direct write"),
        (flags.profile, can_be_direct or can_be_served, "--profile names a graph or a server"),
    )
    for index, (value, is_useful, meaning) in enumerate(checks):
        if value is not None and not is_useful:
            raise AddressError(
                f"{verb} is a {kind} command; {meaning} and does not apply. {_HINTS[capability]}"
            )
        if index == 0 and flags.cluster is not None:
            raise AddressError(f"{verb}: {NO_CLUSTERS}")
