"""Embed rows: make the vectors that a graph lacks, or all of them anew.

    fill     one commit per part of the missing vectors, so a run that dies has lost one part, and
             the next one goes on where it ended
    remake   every vector of a type in one commit, so no reader sees vectors of two models, and a
             run that dies has changed nothing

Texts are embedded by the runner, in this process or in Spark workers; the driver writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from omnigraph.catalog import Catalog, NodeType
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.embed import EmbedColumn, EmbedSource, describe_default, explain_missing
from omnigraph.embed.config import PROVIDER
from omnigraph.embed.embedder import model_name
from omnigraph.embed.fill import find_missing
from omnigraph.embed.remember import RememberingEmbedder
from omnigraph.errors import ExpectedVersionMismatch, NotFoundError, did_you_mean
from omnigraph.manifest import GraphCommit, Snapshot
from omnigraph.manifest.vector_models import note_models
from omnigraph.pipeline.embed_part import EmbedPart, is_missing
from omnigraph.pipeline.engine import SparkUse, choose_runner
from omnigraph.pipeline.progress import Listener, Reporter, reporting
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.spread import SpreadEmbedder
from omnigraph.write.commit import WriteRequest
from omnigraph.write.embedding import embed_columns, find_changed_models, look_at_vectors
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.fork import open_pin
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.touched import TouchedTables

SPARK_ROWS = 1_000_000
"""`auto` uses Spark for more rows than this."""

_ATTEMPTS_MAX = 5

Write = Callable[[WriteRequest], GraphCommit | None]


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """What to embed: the types that are named, or all; with `remakes` every vector anew."""

    branch: str
    source: EmbedSource
    types: Collection[str] | None = None
    remakes: bool = False
    actor: str | None = None
    note: CommitNote = NO_NOTE
    engine: str = "auto"
    spark: SparkUse = field(default_factory=SparkUse)
    progress: Listener | bool | None = None


@dataclass(slots=True)
class EmbedOutcome:
    """What was made, by property; `left` counts rows that nothing can embed, `notes` say why."""

    commits: list[str] = field(default_factory=list)
    embedded: int = 0
    left: int = 0
    models: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    engine: str = "inline"


def embed_rows(
    environment: WriteEnvironment, catalog: Catalog, request: EmbedRequest, write: Write
) -> EmbedOutcome:
    """Make the vectors of a branch.

    Raises:
        EmbeddingFailed: The provider failed; the parts that were committed stay.
        EmbeddingModelMismatch: The chosen model is not the one that the graph records.
    """
    wanted = _select_types(catalog, request.types)
    seen = environment.coordinator.fresh(request.branch).snapshot()
    rows = sum(seen.entries[each.table_key].row_count for each in wanted)
    runner = choose_runner(request.engine, stays=rows <= SPARK_ROWS, spark=request.spark)
    outcome = EmbedOutcome(engine=runner.name)
    with reporting(request.progress) as reporter:
        for node in wanted:
            _EmbedType(environment, node, request, write, runner, reporter, outcome).run(seen)
    return outcome


def _select_types(catalog: Catalog, names: Collection[str] | None) -> list[NodeType]:
    known = {node.name: node for node in catalog.nodes.values() if embed_columns(node)}
    for name in names or ():
        if name not in known:
            hint = did_you_mean(name, list(known)) or "name a node type with an @embed property"
            raise NotFoundError(f"'{name}' has no vectors to embed — {hint}")
    return [node for name, node in sorted(known.items()) if names is None or name in names]


@dataclass(slots=True)
class _EmbedType:
    """The vectors of one type on their way."""

    environment: WriteEnvironment
    node: NodeType
    request: EmbedRequest
    write: Write
    runner: Runner
    reporter: Reporter
    outcome: EmbedOutcome
    embedders: dict[str, RememberingEmbedder] = field(default_factory=dict)

    def run(self, seen: Snapshot) -> None:
        columns = self._select_columns(seen)
        fillable = [each for each in columns if each.name in self.embedders]
        self._report_left(seen, [each for each in columns if each not in fillable])
        if not fillable:
            return
        names = [each.name for each in fillable]
        self.reporter.stage("embedding")
        while True:
            part = self._write_part(names)
            if part is None or part.embedded == 0:
                return
            self.outcome.embedded += part.embedded
            self.reporter.update(len(self.outcome.commits), self.outcome.embedded)
            if self.request.remakes:
                return

    def _select_columns(self, snapshot: Snapshot) -> tuple[EmbedColumn, ...]:
        """The vector properties, with an embedder each where there is one."""
        source = self.request.source
        if self.request.remakes:  # no vector stays, so none is mixed
            columns = embed_columns(self.node)
        else:
            columns = look_at_vectors(self.environment.tables, snapshot, self.node, source)
        for column in columns:
            found = source.find_for_documents(column)
            if found is not None and column.name not in self.embedders:
                spread = SpreadEmbedder(self.runner, source, column, found.model)
                self.embedders[column.name] = RememberingEmbedder(spread)
                self.outcome.models[column.label] = model_name(found)
                if not source.is_chosen:
                    self.outcome.notes.append(describe_default(column))
        return columns

    def _report_left(self, snapshot: Snapshot, columns: Sequence[EmbedColumn]) -> None:
        tables, entry = self.environment.tables, snapshot.entries[self.node.table_key]
        for column in columns:
            rows = tables.reads.scan(open_pin(tables, entry), [column.source], is_missing(column))
            left = len(find_missing(rows, column))
            if left:
                self.outcome.left += left
                self.outcome.notes.append(
                    f"{column.label}: {left} rows stay without a vector: "
                    f"{explain_missing(column)} — choose a provider with {PROVIDER}"
                )

    def _write_part(self, names: Sequence[str]) -> EmbedPart | None:
        """Commit one part; whatever other writers do, no row of theirs is undone."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            parts: list[EmbedPart] = []

            def prepare(snapshot: Snapshot, parts: list[EmbedPart] = parts) -> EmbedPart:
                parts.append(self._prepare(snapshot, names))
                return parts[-1]

            try:
                commit = self.write(self._to_request(prepare, parts))
            except ExpectedVersionMismatch:
                if attempt == _ATTEMPTS_MAX:
                    raise
                continue
            if commit is None:
                return None
            for embedder in self.embedders.values():
                embedder.forget()
            self.outcome.commits.append(commit.commit_id)
            return parts[-1]
        raise AssertionError("every attempt returns or raises")

    def _to_request(
        self, prepare: Callable[[Snapshot], EmbedPart], parts: Sequence[EmbedPart]
    ) -> WriteRequest:
        return WriteRequest(
            kind=WriterKind.MUTATION,
            branch=self.request.branch,
            actor=self.request.actor,
            touched=TouchedTables(frozenset({self.node.table_key}), frozenset()),
            prepare=prepare,
            note=self.request.note.to_json(),
            properties=lambda: note_models(parts[-1].changed_models),
        )

    def _prepare(self, snapshot: Snapshot, names: Sequence[str]) -> EmbedPart:
        tables = self.environment.tables
        columns = [each for each in self._select_columns(snapshot) if each.name in names]
        made = {each.name: model_name(self.embedders[each.name]) for each in columns}
        replaced = names if self.request.remakes else ()
        return EmbedPart(
            tables,
            self.node,
            snapshot.entries[self.node.table_key],
            columns,
            self.embedders,
            self.request.remakes,
            find_changed_models(self.node, made, snapshot, replaced=replaced),
        )
