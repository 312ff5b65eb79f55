"""Graphs: open every graph once, keep it, close it at the end.

A graph that cannot be opened ends a server of one graph. A server of several logs it and serves the
others, unless all of them are required.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace

from omnigraph.catalog import Catalog
from omnigraph.config.registry import Registry, StoredQuery, load_registry
from omnigraph.config.store_query import store_query
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, NotFoundError, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.graph.commit_observers import ReaderObserver
from omnigraph.graph.graph import get_session
from omnigraph.graph.settings import ReadAhead
from omnigraph.manifest import MAIN, TableEntry
from omnigraph.policy import Action, Policy, load_policy
from omnigraph.server.branch_bound import BranchBound
from omnigraph.server.gate import Gate
from omnigraph.server.settings import ServedGraph, ServerSettings, check_graph_id
from omnigraph.storage.location import graph_root

OPENED_AT_ONCE_MAX = 4

log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Access:
    """What of a graph can be replaced while it is served: its policy and its stored queries."""

    served: ServedGraph
    policy: Policy | None
    registry: Registry


@dataclass(slots=True)
class OpenGraph:
    """A graph that is being served. `registry` follows its schema, all but `graph` a reload."""

    graph_id: str
    graph: Graph
    gate: Gate
    served: ServedGraph
    registry: Registry
    exports: int = field(default=0)
    """How many exports of it are under way."""
    fragments_counted: Mapping[TableEntry, int] = field(default_factory=dict, repr=False)
    """What each table of main had at the last look, by the version that it showed."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _storing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def uri(self) -> str:
        return self.graph.uri

    def may_invoke(self, query: StoredQuery, actor: str | None, bound: BranchBound | None) -> bool:
        """Whether the actor may run a stored query on some branch, and read all that it shows."""
        types = query.types_read if self.gate.limits_types else ()
        actions = (Action.INVOKE_QUERY, Action.CHANGE) if query.mutation else (Action.INVOKE_QUERY,)
        return all(self.gate.may(actor, each, bound) for each in actions) and all(
            self.gate.may_read(actor, MAIN, name) for name in (None, *types)
        )

    @property
    def readers(self) -> ReaderObserver:
        """Those who read it here, for the process that writes it."""
        return ReaderObserver(get_session(self.graph))

    @property
    def is_local(self) -> bool:
        """Whether it lies on a disk of this machine, where several processes may write to it."""
        return graph_root(self.served.uri).is_local

    def recover(self) -> None:
        """Finish or undo what a failed write left, by one more open: it may undo on any store.

        It waits for live writers. What cannot be recovered now is left for the next time.
        """
        try:
            open_graph(self.served.uri).close()
        except Exception as error:  # the error of the write is the one to report
            log.error("graph '%s' could not be recovered", self.graph_id, exc_info=error)

    def check_queries(self) -> None:
        """Check the stored queries again, after the schema changed."""
        while True:
            served = self.served
            registry = load_registry(served.queries, self.graph.catalog)
            with self._lock:
                if served is self.served:  # otherwise a reload came between: check those
                    self.registry = registry
                    return

    def store_query(self, name: str, text: str, *, replaces: bool) -> StoredQuery:
        """Store a text under the name of a query of it, and serve it from now on.

        Raises:
            BadRequestError: The text is wrong, or this server stores no queries.
            ConflictError: The name is taken.
        """
        with self._storing:
            served = self.served
            if served.query_directory is None:
                raise BadRequestError(
                    "this graph has no directory for stored queries — name one with "
                    "`queries: ./queries` in omnigraph.yaml; nothing was stored"
                )
            entries = store_query(
                served.query_directory,
                served.queries,
                self.graph.catalog,
                name,
                text,
                replaces=replaces,
            )
            with self._lock:
                self.served = replace(self.served, queries=entries)
            self.check_queries()
            return self.registry.queries[name]

    def check_queries_if_changed(self, known: Catalog) -> None:
        """Check them unless the schema of main is the known one: a merge may have changed it."""
        if self.graph.catalog is not known:
            self.check_queries()

    def adopt(self, access: Access) -> None:
        """Replace the policy, here and in the graph itself, and the stored queries."""
        with self._lock:
            self.served = access.served
            self.gate = Gate(self.gate.is_open, access.policy)
            self.registry = access.registry
            get_session(self.graph).policy = access.policy


class Graphs:
    """The graphs of a server, by id."""

    def __init__(self, opened: Mapping[str, OpenGraph]) -> None:
        self._opened = opened

    def __iter__(self) -> Iterator[OpenGraph]:
        return (self._opened[graph_id] for graph_id in sorted(self._opened))

    def find(self, graph_id: str) -> OpenGraph:
        """The graph of an id.

        Raises:
            BadRequestError: No graph can have that id.
            NotFoundError: None has, or it could not be opened.
        """
        found = self._opened.get(graph_id)
        if found is None:
            check_graph_id(graph_id)
            raise NotFoundError(f"graph '{graph_id}' not found")
        return found

    def close(self) -> None:
        for each in self:
            each.graph.close()


def open_graphs(settings: ServerSettings) -> Graphs:
    """Open every graph of the settings, a few at a time.

    Raises:
        OmnigraphError: A graph that is needed cannot be served.
    """
    opened: dict[str, OpenGraph] = {}
    failed: dict[str, OmnigraphError] = {}
    with ThreadPoolExecutor(OPENED_AT_ONCE_MAX) as pool:
        pending = {
            served.graph_id: pool.submit(open_served, served, is_open=settings.is_open)
            for served in settings.graphs
        }
        for graph_id, future in pending.items():
            try:
                opened[graph_id] = future.result()
            except OmnigraphError as error:
                failed[graph_id] = error
                log.error("graph '%s' cannot be served: %s", graph_id, error.render())
    if failed and (settings.is_single or settings.require_all_graphs or not opened):
        for each in opened.values():
            each.graph.close()
        raise next(iter(failed.values()))
    return Graphs(opened)


def open_served(served: ServedGraph, *, is_open: bool, read_ahead: ReadAhead = True) -> OpenGraph:
    """Open one graph, with its policy and its stored queries."""
    policy = compile_policy(served)
    config = {
        "read_ahead": read_ahead,
        "retention": served.retention,
        "embedding": served.embedding,
    }
    graph = open_graph(served.uri, policy=policy, config=config)
    try:
        registry = check_registry(served, graph)
    except BaseException:
        graph.close()
        raise
    return OpenGraph(served.graph_id, graph, Gate(is_open, policy), served, registry)


def compile_policy(served: ServedGraph) -> Policy | None:
    """The policy of a graph, if it has one.

    Raises:
        PolicyInvalid: Its bundle is wrong.
    """
    if served.policy_text is None:
        return None
    resource = served.policy_resource or served.graph_id
    return load_policy(served.policy_text, name=served.policy_name, resource=resource)


def check_registry(served: ServedGraph, graph: Graph) -> Registry:
    """The stored queries of a graph.

    Raises:
        BadRequestError: One does not fit the schema.
    """
    registry = load_registry(served.queries, graph.catalog)
    for warning in registry.warnings:
        log.warning("graph '%s': %s", served.graph_id, warning)
    refuse_broken(registry, f"graph '{served.graph_id}'")
    return registry


def refuse_broken(registry: Registry, what: str) -> None:
    """Refuse stored queries that do not fit their schema.

    Raises:
        BadRequestError: There are some; all are named.
    """
    if not registry.is_sound:
        listed = "\n".join(f"{each.query}: {each.message}" for each in registry.breakages)
        raise BadRequestError(f"stored queries of {what} do not fit its schema:\n{listed}")
