"""Undo: the calls of a graph that take changes back, or make them again elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, overload

from omnigraph.compiler import require_read
from omnigraph.errors import BadRequestError
from omnigraph.graph.bound_params import bind_all
from omnigraph.graph.calls.part import GraphPart
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.reads import run_read
from omnigraph.graph.results import MutationResult
from omnigraph.manifest import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.branch_names import canonical_branch

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.merge import MergePreview, MergeResult


class UndoCalls(GraphPart):
    """What `Graph` can do about mistakes; a part of that class."""

    @overload
    def revert(
        self,
        *commits: str,
        branch: str = ...,
        actor: str | None = ...,
        preview: Literal[False] = ...,
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergeResult: ...

    @overload
    def revert(
        self,
        *commits: str,
        branch: str = ...,
        actor: str | None = ...,
        preview: Literal[True],
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergePreview: ...

    def revert(
        self,
        *commits: str,
        branch: str = MAIN,
        actor: str | None = None,
        preview: bool = False,
        resolve: Resolution | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MergeResult | MergePreview:
        """Take back what commits did to a branch, as one commit or not at all.

        Each is a revision. A row that was changed again since, or that others built on, is a
        conflict: `resolve` with `"ours"` keeps it as it is, `"theirs"` makes it what it was before
        the commit; see `merge`. Of a merge, what it brought to its branch is taken back.

        Raises:
            MergeConflicts: The branch went on from there. It is unchanged.
            CommitStateGone: A cleanup has removed what says how it was before.
            CommitNotReplayable: A commit changed the schema, or is the first one.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.undo_requests import permit_undo, plan_revert, run_replay

        session, name = self._session, canonical_branch(branch)
        who = permit_undo(session, name, actor, preview=preview)
        wanted = plan_revert(session, commits, name, who, read_note(message, metadata))
        return run_replay(session, wanted, resolve, preview=preview)

    def revert_session(
        self,
        *,
        actor: str | None = None,
        since: datetime | str | None = None,
        session: str | None = None,
        branch: str = MAIN,
        by: str | None = None,
        preview: bool = False,
        resolve: Resolution | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MergeResult | MergePreview:
        """Take back all commits that an actor made on a branch, since a time; see `revert`.

        Or those of a `session`, by the metadata of that name. `by` is the actor who takes back.
        """
        from omnigraph.branch.commit_changes import select_commits
        from omnigraph.graph.undo_requests import permit_undo
        from omnigraph.manifest.revisions import to_microseconds

        if actor is None and session is None:
            raise BadRequestError("say whose commits to revert: give actor, or session")
        permit_undo(self._session, canonical_branch(branch), by, preview=preview)
        found = select_commits(
            self._session.coordinator,
            canonical_branch(branch),
            actor=actor,
            session=session,
            since=None if since is None else to_microseconds(since),
        )
        if not found:
            whose = f"of session '{session}'" if actor is None else f"by '{actor}'"
            raise BadRequestError(f"branch '{branch}' has no such commits {whose} — look at `log`")
        options: dict[str, Any] = {"message": message, "metadata": metadata, "preview": preview}
        result: MergeResult | MergePreview = self.revert(
            *found, branch=branch, actor=by, resolve=resolve, **options
        )
        return result

    @overload
    def cherry_pick(
        self,
        *commits: str,
        into: str,
        actor: str | None = ...,
        preview: Literal[False] = ...,
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergeResult: ...

    @overload
    def cherry_pick(
        self,
        *commits: str,
        into: str,
        actor: str | None = ...,
        preview: Literal[True],
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergePreview: ...

    def cherry_pick(
        self,
        *commits: str,
        into: str,
        actor: str | None = None,
        preview: bool = False,
        resolve: Resolution | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MergeResult | MergePreview:
        """Make the changes of commits again on another branch, in this order, as one commit.

        A row that is different there is a conflict, as in `merge`: `"theirs"` is the commit's.

        Raises:
            MergeConflicts: The branch has other rows. It is unchanged.
            CommitStateGone: A cleanup has removed what says what the commit did.
            CommitNotReplayable: A commit changed the schema, or is the first one.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.undo_requests import permit_undo, plan_cherry_pick, run_replay

        session, name = self._session, canonical_branch(into)
        who = permit_undo(session, name, actor, preview=preview)
        wanted = plan_cherry_pick(session, commits, name, who, read_note(message, metadata))
        return run_replay(session, wanted, resolve, preview=preview)

    def bisect(
        self, check: str | Path | Callable[[Snapshot], bool], *, good: str, bad: str
    ) -> GraphCommit:
        """Find the commit that broke a check, between two revisions, along first parents.

        The check is a query that returns no rows while all is well, or a function of a snapshot.
        It is asked twice more than the number of commits in between can be halved.

        Raises:
            BadRequestError: `good` is not before `bad`, or the check says otherwise of them.
            CommitStateGone: A cleanup has removed a state that has to be asked.
        """
        from omnigraph.branch.bisect import bisect_commits

        session = self._session
        session.read_contract()

        def holds(commit: GraphCommit) -> bool:
            if callable(check):
                return bool(check(session.coordinator.commit_states.get(commit)))
            catalog, snapshot, ir = session.read_as(
                (MAIN, commit.commit_id, None, None),
                "commit",
                lambda catalog, _: require_read(compile_source(check, catalog, None)),
            )
            bound = bind_all(ir.params, None)
            return not len(run_read(session, ir, bound, catalog, snapshot, "local", perf_counter()))

        return bisect_commits(session.coordinator, good, bad, holds)

    @overload
    def restore(
        self,
        rev: str,
        *,
        types: Collection[str] | None = ...,
        ids: Collection[str] | None = ...,
        branch: str = ...,
        actor: str | None = ...,
        preview: Literal[False] = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MutationResult: ...

    @overload
    def restore(
        self,
        rev: str,
        *,
        types: Collection[str] | None = ...,
        ids: Collection[str] | None = ...,
        branch: str = ...,
        actor: str | None = ...,
        preview: Literal[True],
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergePreview: ...

    def restore(
        self,
        rev: str,
        *,
        types: Collection[str] | None = None,
        ids: Collection[str] | None = None,
        branch: str = MAIN,
        actor: str | None = None,
        preview: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MutationResult | MergePreview:
        """Make a branch what a revision shows, as one commit: all of it, or some types or ids.

        What was added since is removed. No commit is made when nothing differs.

        Raises:
            MergeConflicts: The result would break a rule of the schema. The branch is unchanged.
            NotFoundError: There is no such type, or neither state has one of the ids.
            CommitStateGone: A cleanup has removed the state.
        """
        from omnigraph.branch.merge import MergePreview
        from omnigraph.commit_note import read_note
        from omnigraph.graph.undo_requests import permit_undo, plan_restore, run_replay

        session, name = self._session, canonical_branch(branch)
        who = permit_undo(session, name, actor, preview=preview)
        note = read_note(message, metadata)
        wanted = plan_restore(session, rev, name, types, ids, who, note)
        done = run_replay(session, wanted, None, preview=preview)
        if isinstance(done, MergePreview):
            return done
        state = session.coordinator.last_seen(name)
        counts = {"node": 0, "edge": 0}
        for key, each in done.tables.items():
            counts[key.partition(":")[0]] += each.inserted + each.updated + each.deleted
        return MutationResult(done.commit_id, state.version, counts["node"], counts["edge"])
