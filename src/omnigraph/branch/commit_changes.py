"""Commit changes: what commits did, as changes to take back or to make again (`replay.py`).

A commit is compared with its first parent, so a merge is all that it brought to its branch. Commits
that follow one another are one change, from before the first of them to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from omnigraph.branch.commit_dag import find_reached_commits, read_dag
from omnigraph.branch.line_segments import SCHEMA_NOTE
from omnigraph.branch.replay import Change
from omnigraph.commit_note import CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    CommitNotReplayable,
    CommitStateGone,
    ConflictError,
    NotFoundError,
    ResourceLimitError,
)
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState, Snapshot
from omnigraph.manifest.revisions import find_commit

COMMITS_MAX = 10_000
REVERTS, PICKED, RESTORED = "reverts", "cherry_picked_from", "restored_from"
_QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """Some commits of a graph. `show` gives a state in the present schema."""

    coordinator: Coordinator
    show: Callable[[Snapshot], Snapshot]
    commits: Sequence[GraphCommit]

    @property
    def source(self) -> str:
        """What they are, for people."""
        return ", ".join(each.commit_id for each in self.commits)

    def invert(self, target: ManifestState) -> list[Change]:
        """What takes them back on a branch, the latest first.

        Raises:
            BadRequestError: One is no part of the branch.
            CommitNotReplayable: One changed more than rows.
            CommitStateGone: A cleanup has removed the state that one left, or that before it.
        """
        self._require_known(target)
        in_order = sorted(self.commits, key=lambda each: (each.created_at, each.commit_id))
        runs = list(_find_runs(in_order))[::-1]
        return [Change(self._read(run[-1]), self._read_before(run[0])) for run in runs]

    def repeat(self, target: ManifestState) -> list[Change]:
        """What makes them again, in the order they are named."""
        runs = list(_find_runs(self.commits))
        changes = [Change(self._read_before(run[0]), self._read(run[-1])) for run in runs]
        states = [state for each in changes for state in (each.before, each.after)]
        refuse_foreign_schema(self.coordinator, target, states)
        return changes

    def _require_known(self, target: ManifestState) -> None:
        dag = read_dag(self.coordinator, [target])
        known = {e.commit_id for e in find_reached_commits(dag, [target.head], self.commits)}
        for each in self.commits:
            if each.commit_id not in known:
                raise BadRequestError(
                    f"commit '{each.commit_id}' of branch '{each.branch}' is no part of branch "
                    f"'{target.branch}' — nothing was written; name a commit that `log` shows"
                )

    def _read(self, commit: GraphCommit) -> Snapshot:
        return self.show(self.coordinator.commit_states.get(commit))

    def _read_before(self, commit: GraphCommit) -> Snapshot:
        assert commit.parent_id is not None
        try:
            return self._read(self.coordinator.commit(commit.parent_id))
        except NotFoundError as gone:
            raise CommitStateGone(
                commit.parent_id, commit.manifest_version - 1, commit.branch
            ) from gone


def refuse_foreign_schema(
    coordinator: Coordinator, target: ManifestState, states: Sequence[Snapshot]
) -> None:
    """Refuse states whose schema is of another branch: the same identity may be another type there.

    Raises:
        ConflictError: One is in another schema, and the branch does not come from it.
    """
    other = [each.head for each in states if each.schema_name != target.schema_name]
    dag = read_dag(coordinator, [target])
    known = {each.commit_id for each in find_reached_commits(dag, [target.head], other)}
    for each in other:
        if each.commit_id not in known:
            raise ConflictError(
                f"commit '{each.commit_id}' of branch '{each.branch}' is in another schema than "
                f"branch '{target.branch}' — nothing was written; bring both into one schema first"
            )


def find_commits(
    coordinator: Coordinator, show: Callable[[Snapshot], Snapshot], revisions: Sequence[str]
) -> CommitChanges:
    """The commits that revisions name, each once.

    Raises:
        CommitNotReplayable: One of them changed the schema, or is the first of all.
    """
    if not revisions:
        raise BadRequestError("no commit is named — name one, such as a commit id or main~1")
    if len(revisions) > COMMITS_MAX:
        raise ResourceLimitError(
            "number of commits", limit=COMMITS_MAX, actual=len(revisions), advice="name fewer"
        )
    found = [find_commit(coordinator, each) for each in revisions]
    commits = {each.commit_id: each for each in found}.values()
    for each in commits:
        _require_rows(each)
    return CommitChanges(coordinator, show, tuple(commits))


def _require_rows(commit: GraphCommit) -> None:
    if commit.parent_id is None:
        raise CommitNotReplayable(commit.commit_id, "is the first one: there is nothing before it")
    if SCHEMA_NOTE in commit.properties:
        raise CommitNotReplayable(
            commit.commit_id,
            "changed the schema — apply the schema that you want with `schema apply`",
        )


def select_commits(
    coordinator: Coordinator,
    branch: str,
    *,
    actor: str | None,
    session: str | None,
    since: int | None,
) -> list[str]:
    """The commits of a branch's own line by an actor, or of a session, made since then."""
    found = []
    for each in coordinator.commits(branch):
        if since is not None and each.created_at < since:
            break
        is_of_actor = actor is None or each.actor == actor
        if is_of_actor and (session is None or each.metadata.get("session") == session):
            found.append(each.commit_id)
    return list(islice(found, COMMITS_MAX + 1))


def _find_runs(commits: Sequence[GraphCommit]) -> Iterator[list[GraphCommit]]:
    """Commits that follow one another directly, together."""
    run: list[GraphCommit] = []
    for each in commits:
        if run and each.parent_id != run[-1].commit_id:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def note_commits(
    note: CommitNote, key: str, verb: str, commits: Sequence[GraphCommit]
) -> CommitNote:
    """A note that says which commits were taken back, or made again.

    Raises:
        BadRequestError: The caller's own metadata say so already.
    """
    if key in note.metadata:
        raise BadRequestError(
            f"metadata '{key}' is written by {verb} itself — nothing was written; leave it out"
        )
    ids = " ".join(each.commit_id for each in commits)
    message = note.message or _describe(verb, commits)
    return CommitNote(message, {**note.metadata, key: ids})


def _describe(verb: str, commits: Sequence[GraphCommit]) -> str:
    said: Any = verb.capitalize()
    if len(commits) > 1:
        return f"{said} {len(commits)} commits"
    [commit] = commits
    first = (commit.message or "").strip().partition("\n")[0]
    return f'{said} "{first[:_QUOTED_CHARACTERS]}"' if first else f"{said} {commit.commit_id}"
