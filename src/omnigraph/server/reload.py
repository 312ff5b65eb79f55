"""Reload: read tokens, policies and stored queries again, while the server runs.

    SIGHUP, or a file that changed and is no longer being written
      → read the settings, compile policies and queries    in a thread; an error changes nothing
      → replace all of them                                on the event loop, in one step
      → tell the write process                             before its next run

A request that is under way keeps the actor it was given; what it has yet to ask the policy, it asks
the new one. Streams of events end, and their clients connect again with the token they have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.policy import load_policy
from omnigraph.server.gate import Gate
from omnigraph.server.graphs import Access, OpenGraph, check_registry, compile_policy
from omnigraph.server.settings import ServedGraph, ServerSettings

if TYPE_CHECKING:
    from omnigraph.server.call import Serving

CURRENT = "current"
REFUSED = "refused"
RESTART_NEEDED = "restart_needed"

log = logging.getLogger("omnigraph.server")


class Source(Protocol):
    """Where settings come from, and whether they are to be read again."""

    def read(self) -> ServerSettings: ...

    def has_changed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Configuration:
    """Whether a server runs with what its files say, and since when. It reveals no content."""

    state: str
    loaded_at: datetime

    def to_json(self) -> dict[str, str]:
        return {"state": self.state, "loaded_at": self.loaded_at.isoformat(timespec="seconds")}


def configuration_at_start() -> Configuration:
    """The configuration of a server that has just read its files."""
    return Configuration(CURRENT, datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a reload replaces, compiled. `left` names what only a restart changes."""

    settings: ServerSettings
    gate: Gate
    accesses: Mapping[str, Access]
    catalogs: Mapping[str, Catalog]
    left: tuple[str, ...]


class Reloader:
    """Reloads when a file changes or on request. All but `request` run on one event loop."""

    def __init__(self, serving: Serving, source: Source) -> None:
        self._serving = serving
        self._source = source
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def request(self) -> None:
        """Reload soon, whether a file changed or not. Any thread and any signal handler may."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)

    async def run(self) -> None:
        """Watch the files until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            if await self._wait() or await asyncio.to_thread(self._source.has_changed):
                await self.reload()

    async def _wait(self) -> bool:
        """Wait for a request, but no longer than files may go unwatched; whether there was one."""
        try:
            async with asyncio.timeout(self._serving.settings.limits.reload_seconds):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def reload(self) -> None:
        """Read everything again and use it, or log why not and go on as before."""
        serving = self._serving
        try:
            prepared = await asyncio.to_thread(prepare, serving, self._source)
        except Exception as error:
            known = isinstance(error, OmnigraphError)
            log.error(
                "the configuration was not reloaded, the one of before stays: %s",
                error.render() if isinstance(error, OmnigraphError) else type(error).__name__,
                exc_info=None if known else error,
            )
            serving.configuration = replace(serving.configuration, state=REFUSED)
            serving.metrics.count_reload(is_applied=False)
            return
        apply(serving, prepared)
        await asyncio.to_thread(finish, serving, prepared)
        serving.metrics.count_reload(is_applied=True)
        log.info("the configuration was reloaded: tokens, policies and stored queries")
        if prepared.left:
            log.warning("changed, but in effect only after a restart: %s", ", ".join(prepared.left))


def prepare(serving: Serving, source: Source) -> Prepared:
    """Read and compile everything; nothing is changed.

    Raises:
        OmnigraphError: A file cannot be used, or would change what only a restart can.
    """
    old, new = serving.settings, source.read()
    new.check()
    if new.is_open != old.is_open:
        raise BadRequestError("whether callers need a token changes only with a restart")
    text, name = new.server_policy_text, new.server_policy_name
    policy = None if text is None else load_policy(text, name=name, resource=None)
    found = {each.graph_id: each for each in new.graphs}
    graphs = tuple(_to_adopt(each, found.get(each.graph_id)) for each in old.graphs)
    opened = {each.graph_id: each for each in serving.graphs}
    checked = [(each, opened[each.graph_id]) for each in graphs if each.graph_id in opened]
    return Prepared(
        settings=replace(
            old,
            tokens=new.tokens,
            graphs=graphs,
            server_policy_text=text,
            server_policy_name=name,
        ),
        gate=Gate(old.is_open, policy),
        catalogs={each.graph_id: graph.graph.catalog for each, graph in checked},
        accesses={each.graph_id: _access(each, graph) for each, graph in checked},
        left=tuple(_list_left(old, new)),
    )


def _to_adopt(old: ServedGraph, new: ServedGraph | None) -> ServedGraph:
    """A graph as it is served, with the policy and the queries that the files now give it."""
    if new is None or new.uri != old.uri:
        return old
    return replace(
        old,
        policy_text=new.policy_text,
        policy_name=new.policy_name,
        queries=new.queries,
        query_directory=new.query_directory,
    )


def _access(served: ServedGraph, opened: OpenGraph) -> Access:
    return Access(served, compile_policy(served), check_registry(served, opened.graph))


def _list_left(old: ServerSettings, new: ServerSettings) -> Iterator[str]:
    before = {each.graph_id: each for each in old.graphs}
    after = {each.graph_id: each for each in new.graphs}
    for graph_id in sorted(before.keys() | after.keys()):
        if graph_id not in after:
            yield f"graph '{graph_id}', which is no longer named"
        elif graph_id not in before:
            yield f"graph '{graph_id}', which is new"
        else:
            pair = before[graph_id], after[graph_id]
            yield from (
                f"{name} of graph '{graph_id}'"
                for name in ("uri", "retention", "embedding")
                if getattr(pair[0], name) != getattr(pair[1], name)
            )
    if new.bind != old.bind:
        yield "server.bind"


def apply(serving: Serving, prepared: Prepared) -> None:
    """Replace everything at once. Runs on the event loop, so no request comes in between."""
    old, serving.settings = serving.settings, prepared.settings
    serving.gate = prepared.gate
    for opened in serving.graphs:
        opened.adopt(prepared.accesses[opened.graph_id])
    state = RESTART_NEEDED if prepared.left else CURRENT
    serving.configuration = replace(configuration_at_start(), state=state)
    if _decides_otherwise(old, prepared.settings):
        serving.events.end_streams()


def _decides_otherwise(old: ServerSettings, new: ServerSettings) -> bool:
    """Whether a caller may get another answer: another token, or another policy of a graph."""
    texts = [[graph.policy_text for graph in each.graphs] for each in (old, new)]
    return old.tokens != new.tokens or texts[0] != texts[1]


def finish(serving: Serving, prepared: Prepared) -> None:
    """Tell the write process, and check queries whose schema changed while they were compiled."""
    serving.write_process.adopt(prepared.settings.graphs)
    for opened in serving.graphs:
        if opened.graph.catalog is not prepared.catalogs[opened.graph_id]:
            opened.check_queries()
