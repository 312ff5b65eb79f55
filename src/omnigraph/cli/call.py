"""Call: one call of a command, with its flags and the configuration.

`open_graph` gives a command its graph as `GraphCommands`, in a store (`LocalGraph`) or behind a
server (`RemoteGraph`); `open_store` gives it the `Graph` of a store and refuses a server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from omnigraph.cli.flags import Capability, Flags
from omnigraph.cli.graph_commands import GraphCommands, StoreOptions
from omnigraph.cli.output import print_result, read_text_file
from omnigraph.cli.progress import show_spinner
from omnigraph.collection import pause_collection
from omnigraph.config.scope import DirectScope, Scope, ServedScope, Settings, load_settings
from omnigraph.config.scope import resolve_scope as resolve
from omnigraph.dataclass import dataclass
from omnigraph.errors import AddressError, BadRequestError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.policy import Policy

Mode: TypeAlias = Literal["r", "rw"]


@dataclass(frozen=True)
class Call:
    """One call of a command. The configuration is read when it is first needed."""

    verb: str
    capability: Capability
    writes: bool
    flags: Flags
    as_json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """Both config files; their warnings are printed once."""
        settings = load_settings(self.flags.config)
        for warning in settings.operator.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        return settings

    @cached_property
    def scope(self) -> Scope:
        """The graph that the call addresses."""
        scope = resolve(self.flags.address, self.settings)
        if self.capability is Capability.DIRECT:
            return self._to_direct(scope)
        if isinstance(scope, ServedScope) and self.flags.actor is not None:
            raise AddressError(
                f"{self.verb} is a served command here; --as names the actor of a direct "
                "write and does not apply. The server takes the actor from the token."
            )
        return scope

    @property
    def store_scope(self) -> DirectScope:
        """The store that the call addresses; a server is refused."""
        return self._to_direct(self.scope)

    def _to_direct(self, scope: Scope) -> DirectScope:
        if isinstance(scope, ServedScope):
            raise AddressError(
                f"{self.verb} is a direct command; {scope.url} addresses a served graph and "
                "does not apply. Use the graph's path or --store <path or URI>."
            )
        return scope

    @property
    def is_served(self) -> bool:
        return isinstance(self.scope, ServedScope)

    @property
    def actor(self) -> str | None:
        """The actor: `--as`, then the operator's config, then the project's."""
        settings = self.settings
        return self.flags.actor or settings.operator.actor or settings.project.cli.actor

    @property
    def target(self) -> str:
        """The graph as messages name it."""
        match self.scope:
            case DirectScope(uri=uri):
                return uri
            case ServedScope(url=url, graph=graph):
                return url if graph is None else f"{url}/graphs/{graph}"

    def branch(self, given: str | None) -> str:
        """Choose the branch: the one given, or the project's, or main."""
        return given or self.settings.project.cli.branch or "main"

    def with_address(
        self, *, target: str | None = None, server: str | None = None, graph: str | None = None
    ) -> Call:
        """Return the same call at another address, unless flags give one already."""
        if self.flags.is_addressed:
            return self
        flags = replace(self.flags, target=target, server=server, graph=self.flags.graph or graph)
        return replace(self, flags=flags)

    def announce(self) -> None:
        """Print on stderr where the command is about to write."""
        if not self.flags.quiet:
            direct = "direct, local" if self._is_local else "direct, remote"
            reach = "served" if self.is_served else direct
            print(f"omnigraph {self.verb} → {self.target} ({reach})", file=sys.stderr)

    @property
    def _is_local(self) -> bool:
        return isinstance(self.scope, DirectScope) and self.scope.is_local

    def consent(self, what: str) -> None:
        """Ask before data is removed on another machine; `--yes` answers in advance."""
        if self.flags.yes or self._is_local:
            return
        if self.as_json or not sys.stdin.isatty():
            raise BadRequestError(f"'{self.target}' is not on this machine — add --yes to {what}")
        # Not typer.confirm: it also writes to stdout, which is for results only.
        print(f"{what} on {self.target}? [yes/no]", end=" ", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadRequestError("nothing was changed")

    def print_result(self, value: Any, lines: Iterable[str]) -> None:
        """Print a result: `value` with `--json`, otherwise the lines for people."""
        print_result(self.as_json, value, lines)

    def refuse_served(self, **options: object) -> None:
        """Refuse options that only a store takes."""
        given = [name for name, value in options.items() if value]
        if given and self.is_served:
            raise AddressError(
                f"{self.verb}: --{given[0].replace('_', '-')} works on a store, not over a server "
                f"— use --store, or leave it out"
            )

    @property
    def shows_progress(self) -> bool:
        return sys.stderr.isatty() and not self.flags.quiet

    @contextmanager
    def open_graph(
        self,
        mode: Mode,
        options: StoreOptions = StoreOptions(),
        *,
        doing: str | None = None,
        has_policy: bool = False,
    ) -> Iterator[GraphCommands]:
        """Open the graph; a spinner shows what the block is `doing`.

        With `has_policy` a reader gets it too, to say what it asks for.

        A server ignores `options`, so the command calls `refuse_served` first.
        """
        match self.scope:
            case DirectScope(uri=uri):
                with pause_collection():
                    from omnigraph.cli.local import LocalGraph

                actor = self.actor if mode == "rw" else None
                with (
                    self.open_store(mode, has_policy=has_policy) as graph,
                    show_spinner(doing, is_shown=self.shows_progress) as told,
                ):
                    yield LocalGraph(graph, uri, actor, options, self.shows_progress, told)
            case ServedScope(url=url, graph=graph_id) as served:
                from omnigraph.client import connect

                remote = connect(url, served.token(self.settings), graph_id)
                with show_spinner(doing, is_shown=self.shows_progress):
                    yield remote

    @contextmanager
    def open_store(
        self, mode: Mode, *, doing: str | None = None, has_policy: bool = False
    ) -> Iterator[Graph]:
        """Open the graph in its store, with the policy that its writes are checked against.

        Raises:
            AddressError: The graph is behind a server.
        """
        with pause_collection():
            from omnigraph.graph import open as open_graph

        scope = self.store_scope
        config = {"embedding": scope.embedding, "retention": scope.retention}
        if mode == "r":
            policy = _load_policy(scope) if has_policy else None
            opened = open_graph(scope.uri, mode="r", policy=policy, config=config)
        else:
            policy = _load_policy(scope)
            opened = open_graph(
                scope.uri, mode="rw", actor=self.actor, policy=policy, config=config
            )
        with opened as graph, show_spinner(doing, is_shown=self.shows_progress):
            yield graph


def _load_policy(scope: DirectScope) -> Policy | None:
    """Load the policy that omnigraph.yaml names for a graph."""
    if scope.policy_file is None:
        return None
    from omnigraph.policy import load_policy
    from omnigraph.storage.location import graph_root

    text = read_text_file(scope.policy_file)
    resource = scope.name or str(graph_root(scope.uri))
    return load_policy(text, name=scope.policy_file.name, resource=resource)
