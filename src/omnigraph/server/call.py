"""Call: one request on its way through an operation.

    authenticate → choose the graph → (read the body) → authorize → admit → run

Engine calls block, so they run in threads: reads and writes have separate pools, so that loads and
merges never delay a read. Queries that do not block run on the event loop (query_runner.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from starlette.requests import Request

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, EmbeddingFailed, OmnigraphError, PolicyError
from omnigraph.policy import Action
from omnigraph.server.admission import Admission
from omnigraph.server.bodies import read_json
from omnigraph.server.branch_bound import BranchBound
from omnigraph.server.gate import Gate
from omnigraph.server.graphs import Graphs, OpenGraph
from omnigraph.server.jobs import Body, Job, Permit
from omnigraph.server.json_values import Model, validate
from omnigraph.server.metrics import Metrics
from omnigraph.server.query_runner import QueryRunner
from omnigraph.server.reload import Configuration
from omnigraph.server.settings import ServerSettings
from omnigraph.server.traces import Traces
from omnigraph.server.upkeep_runner import UpkeepRunner
from omnigraph.server.worker_pool import WorkerPool
from omnigraph.server.write_process import WriteProcess
from omnigraph.syntax import parse_query

if TYPE_CHECKING:
    from omnigraph.server.events import EventReaders
    from omnigraph.server.operation import Operation
    from omnigraph.server.streaming import ExportSlots

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(slots=True)
class Serving:
    """What all requests of one server share. A reload replaces the settings and the gates."""

    settings: ServerSettings
    graphs: Graphs
    gate: Gate
    admission: Admission
    metrics: Metrics
    slots: ExportSlots
    events: EventReaders
    readers: WorkerPool
    query_runner: QueryRunner
    writers: WorkerPool
    exporters: WorkerPool
    write_process: WriteProcess
    upkeep: UpkeepRunner
    traces: Traces
    configuration: Configuration

    def close(self) -> None:
        """Wait for the calls in flight, then close the graphs."""
        for pool in (self.exporters, self.readers, self.writers):
            pool.close()
        self.upkeep.close()
        self.write_process.close()
        self.graphs.close()


class Call:
    """One request: its actor, its graph, and whether it was authorized yet."""

    __slots__ = (
        "_graph",
        "_is_permit_checked",
        "actor",
        "bound",
        "operation",
        "request",
        "serving",
    )

    def __init__(self, serving: Serving, operation: Operation, request: Request) -> None:
        self.serving = serving
        self.request = request
        self.operation = operation
        self._is_permit_checked = False
        self._graph: OpenGraph | None = None
        self.actor: str | None = None
        self.bound: BranchBound | None = None

    def identify(self) -> None:
        """Authenticate the caller.

        Raises:
            Unauthorized: There is no token, or an unknown one.
        """
        tokens = self.serving.settings.tokens
        if tokens:
            holder = tokens.holder_of(self.request.headers.get("authorization"))
            self.actor, self.bound = holder.actor, holder.bound

    def choose_graph(self, graph_id: str) -> None:
        self._graph = self.serving.graphs.find(graph_id)

    @property
    def graph(self) -> OpenGraph:
        assert self._graph is not None, f"{self.operation.operation_id} does not address one graph"
        return self._graph

    @property
    def is_permit_checked(self) -> bool:
        """Whether the policy was checked, as it must be before anything is read or written."""
        return self._is_permit_checked or self.operation.action is None

    def permit(
        self,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        action: Action | None = None,
    ) -> None:
        """Check bound and policy, for the action of the operation unless another one is named.

        Raises:
            PolicyError: The actor may not do that, or not with this token.
        """
        wanted = action or self.operation.action
        assert wanted is not None, f"{self.operation.operation_id} has no action"
        gate = self._graph.gate if self._graph is not None else self.serving.gate
        self._is_permit_checked = True
        if self.bound is not None:
            self.bound.require(self.actor, wanted, branch, target_branch)
        gate.require(self.actor, wanted, branch, target_branch)

    def leave_permit_to_parts(self) -> None:
        """Say that the operation sends requests of its own, each of which is checked."""
        self._is_permit_checked = True

    def may(self, action: Action) -> bool:
        """Whether the actor may do something somewhere: on main, or on an unprotected branch.

        With a token that is bound, it has to be a branch that the token may write to.
        """
        gate = self._graph.gate if self._graph is not None else self.serving.gate
        return gate.may(self.actor, action, self.bound)

    def permit_types(
        self, branch: str | None, type_names: Iterable[str], action: Action | None = None
    ) -> None:
        """Check the policy for each type that the request reads.

        Raises:
            PolicyError: The actor may not read one of them.
        """
        for name in sorted(set(type_names)):
            wanted = action or self.operation.action
            assert wanted is not None
            self.graph.gate.require(self.actor, wanted, branch, type_name=name)

    def may_read(self, branch: str, type_name: str | None = None) -> bool:
        """Whether the actor may read a branch, besides what the request is about."""
        try:
            self.graph.gate.require(self.actor, Action.READ, branch, type_name=type_name)
        except PolicyError:
            return False
        return True

    async def body(self, model: type[Model], *, is_optional: bool = False) -> Model:
        """Read the body as a model; for an optional one, nothing and `null` are an empty object."""
        limits = self.serving.settings.limits
        value = await read_json(self.request, limits, may_be_empty=is_optional)
        return validate(model, {} if is_optional and value is None else value)

    def admit(self, size: int) -> AbstractContextManager[None]:
        """Count the request against the limits of the actor while the block runs."""
        return self.serving.admission.admit(self.actor, size)

    async def run_read(
        self,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run a read in a thread."""
        if self.serving.traces.is_on:
            with self.serving.traces.step("read"):
                return await self.serving.readers.run(work, *args, **kwargs)
        return await self.serving.readers.run(work, *args, **kwargs)

    async def run_query(self, query_key: int, work: Callable[[], Result]) -> Result:
        """Run a query of the graph; `query_key` is equal for equal queries of any parameters."""
        with self.serving.traces.step("query"):
            return await self.serving.query_runner.run((self.graph.graph_id, query_key), work)

    async def run_write(
        self,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run a write in a thread. Once begun it runs to its end, also when the client goes away.

        A write that may have left effects is recovered before its error is reported, so that the
        next one finds a whole graph.
        """
        try:
            with self.serving.traces.step("write"):
                return await self.serving.writers.run(work, *args, **kwargs)
        except Exception as error:
            is_clean = isinstance(error, OmnigraphError) and error.http_status < 500
            if not is_clean and not isinstance(error, EmbeddingFailed):
                await self.serving.writers.run(self.graph.recover)
            raise

    async def run_job(
        self,
        job: Job,
        body: Body = b"",
        permit: Permit = lambda _: None,
        when_ended: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Run a write that can be long, in the write process where there is one."""

        def run() -> dict[str, Any]:
            try:
                return self.serving.write_process.run(self.graph, job, body, permit)
            finally:
                when_ended()  # here, and not when the request ends: it may be cancelled before

        return await self.run_write(run)


def query_text(source: str) -> str:
    """The text of a query that came from a client.

    The library also takes the path of a query file; a client must not make the server read one.

    Raises:
        BadRequestError: It cannot be the text of a query.
    """
    if "{" not in source:
        parse_query(source)  # raises with the position where the text is no query
        raise BadRequestError("the text has no query — expected `query name() { … }`")
    return source
