"""Call: one request on its way through an operation.

    who is it → which graph → (body) → may they → is there room → do it

Engine calls block, so they run in threads: reads and writes in pools of their own, so that no
number of loads and merges makes a read wait. Queries that need no waiting are answered without
(answers.py). Nothing here blocks the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from starlette.requests import Request

from omnigraph.errors import BadRequestError, EmbeddingFailed, OmnigraphError
from omnigraph.policy import Action
from omnigraph.server.admission import Admission
from omnigraph.server.answers import Answers
from omnigraph.server.bodies import read_json
from omnigraph.server.gate import ACTIONS, Gate
from omnigraph.server.graphs import Graphs, OpenGraph
from omnigraph.server.jobs import Body, Job, Permit
from omnigraph.server.json_values import Model, validated
from omnigraph.server.metrics import Metrics
from omnigraph.server.settings import ServerSettings
from omnigraph.server.threads import Threads
from omnigraph.server.write_process import WriteProcess
from omnigraph.syntax import parse_query

if TYPE_CHECKING:
    from omnigraph.server.streaming import ExportSlots

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Serving:
    """What all requests of one server share."""

    settings: ServerSettings
    graphs: Graphs
    gate: Gate
    admission: Admission
    metrics: Metrics
    slots: ExportSlots
    readers: Threads
    answers: Answers
    writers: Threads
    exporters: Threads
    apart: WriteProcess

    def close(self) -> None:
        """Wait for what is under way, then close the graphs."""
        for threads in (self.exporters, self.readers, self.writers):
            threads.close()
        self.apart.close()
        self.graphs.close()


class Call:
    """One request: who makes it, of which graph, and what became of it so far."""

    __slots__ = ("_graph", "_has_asked", "_operation_id", "actor", "request", "serving")

    def __init__(self, serving: Serving, operation_id: str, request: Request) -> None:
        self.serving = serving
        self.request = request
        self._operation_id = operation_id
        self._has_asked = False
        self._graph: OpenGraph | None = None
        self.actor: str | None = None

    def identify(self) -> None:
        """Find out who is calling.

        Raises:
            Unauthorized: Nobody we know.
        """
        tokens = self.serving.settings.tokens
        if tokens:
            self.actor = tokens.actor_of(self.request.headers.get("authorization"))

    def choose_graph(self, graph_id: str) -> None:
        self._graph = self.serving.graphs.find(graph_id)

    @property
    def graph(self) -> OpenGraph:
        assert self._graph is not None, f"{self._operation_id} is not about one graph"
        return self._graph

    @property
    def has_asked(self) -> bool:
        """Whether the gate was asked, as it has to be before anything is read or done."""
        return self._has_asked or ACTIONS[self._operation_id] is None

    def permit(
        self,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        action: Action | None = None,
    ) -> None:
        """Ask the gate, for the action of the operation unless another one is named.

        Raises:
            PolicyError: The actor may not do that.
        """
        asked = action or ACTIONS[self._operation_id]
        assert asked is not None, f"{self._operation_id} has no action to ask for"
        gate = self._graph.gate if self._graph is not None else self.serving.gate
        self._has_asked = True
        gate.require(self.actor, asked, branch, target_branch)

    async def body(self, model: type[Model], *, limit: int | None = None) -> Model:
        """The body, as what the operation takes."""
        limits = self.serving.settings.limits
        value = await read_json(
            self.request, limits, limit or limits.body_bytes_max, may_be_empty=False
        )
        return validated(model, value)

    async def optional_body(self, model: type[Model]) -> Model:
        """The body; nothing and `null` stand for an object without members."""
        limits = self.serving.settings.limits
        value = await read_json(self.request, limits, limits.body_bytes_max, may_be_empty=True)
        return validated(model, {} if value is None else value)

    def admit(self, size: int) -> AbstractContextManager[None]:
        """Take one of the actor's places for as long as the block runs."""
        return self.serving.admission.admit(self.actor, size)

    async def reading(
        self,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run a read in a thread."""
        return await self.serving.readers.run(work, *args, **kwargs)

    async def answering(self, question: int, work: Callable[[], Result]) -> Result:
        """Run a query of the graph; `question` tells it from others, whatever its parameters."""
        return await self.serving.answers.run((self.graph.graph_id, question), work)

    async def writing(
        self,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run a write in a thread. Once it has begun it ends, whatever becomes of the client.

        A write that may have left effects is settled before its failure is told, so that the next
        one finds a whole graph.
        """
        try:
            return await self.serving.writers.run(work, *args, **kwargs)
        except Exception as error:
            is_settled = isinstance(error, OmnigraphError) and error.http_status < 500
            if not is_settled and not isinstance(error, EmbeddingFailed):
                await self.serving.writers.run(self.graph.heal)
            raise

    async def working(
        self, job: Job, body: Body = b"", permit: Permit = lambda _: None
    ) -> dict[str, Any]:
        """Run a write that can be long, in a process of its own where there is one."""
        return await self.writing(self.serving.apart.run, self.graph, job, body, permit)


def query_text(source: str) -> str:
    """The text of a query that came from a client.

    The library also takes the path of a query file; a client must not make the server read one.

    Raises:
        BadRequestError: It cannot be the text of a query.
    """
    if "{" not in source:
        parse_query(source)  # says where the text stops being a query
        raise BadRequestError("the text has no query — expected `query name() { … }`")
    return source


def one_parameter(request: Request, name: str) -> str | None:
    """A parameter of the URL that may be there once.

    Raises:
        BadRequestError: It is there twice.
    """
    values: list[Any] = request.query_params.getlist(name)
    if len(values) > 1:
        raise BadRequestError(f"the parameter `{name}` is given {len(values)} times — give one")
    return str(values[0]) if values else None
