"""Write calls: a mutation, and vectors that are missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.graph.results import EmbedResult, MutationResult
    from omnigraph.pipeline.progress import Listener


class WriteCalls(GraphPart):
    """Change rows by a query, or by an embedding provider."""

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit, or change nothing.

        `message` and `metadata` say why; like those of every write they stay with the commit.

        Raises:
            ExpectedVersionMismatch: Another writer changed a table this one depends on.
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
            ConstraintError: The result would break a rule of the schema.
        """
        from omnigraph.graph.mutations import mutate

        result, _ = mutate(
            self._session,
            source,
            name,
            params,
            branch=branch,
            actor=actor,
            if_commit=if_commit,
            message=message,
            metadata=metadata,
        )
        return result

    def embed(
        self,
        *,
        branch: str = MAIN,
        types: Collection[str] | None = None,
        reembed_all: bool = False,
        actor: str | None = None,
        engine: str = "auto",
        progress: Listener | bool | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> EmbedResult:
        """Make the `@embed` vectors that are missing, in several commits if they are many.

        A run that is interrupted keeps what it has committed; the next one goes on from there.
        With `reembed_all` every vector of a type is made anew, in one commit: so a graph changes
        its model.

        Raises:
            EmbeddingModelMismatch: The chosen model is not the one that the graph records.
            EmbeddingFailed: The provider failed.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import run_embed_request
        from omnigraph.pipeline.embed_rows import EmbedRequest

        target = canonical_branch(branch)
        who = self._session.permit(Action.CHANGE, actor=actor, branch=target)
        request = EmbedRequest(
            branch=target,
            source=self._session.embed_source,
            types=types,
            remakes=reembed_all,
            actor=who,
            note=read_note(message, metadata),
            engine=engine,
            spark=self._session.settings.spark,
            progress=progress,
        )
        return run_embed_request(self._session, request)
