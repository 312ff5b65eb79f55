"""What callers ask to be undone, over HTTP and on the command line, and asking a graph for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.json_form import without_empty

if TYPE_CHECKING:
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.graph import Graph, MutationResult


@dataclass(frozen=True, slots=True)
class RevertCall:
    """Commits to take back: by name, or those of an actor or a session, since a time."""

    commits: Sequence[str]
    branch: str
    actor: str | None = None
    session: str | None = None
    since: str | None = None
    resolve: Any = None

    path = "/revert"
    verb = "revert"

    def to_json(self) -> dict[str, Any]:
        """The body of the request."""
        chosen = {"actor": self.actor, "session": self.session, "since": self.since}
        rest = without_empty({**chosen, "resolve": self.resolve})
        return {"commits": list(self.commits), "branch": self.branch, **rest}

    def ask(self, graph: Graph, by: str | None, **options: Any) -> MergeResult | MergePreview:
        """Revert on a graph; `by` is who does it."""
        chosen: dict[str, Any] = {
            "actor": self.actor,
            "session": self.session,
            "since": self.since,
        }
        is_chosen = any(each is not None for each in chosen.values())
        if self.commits and is_chosen:
            raise BadRequestError("name commits, or choose them by actor, session and since")
        options |= {"branch": self.branch, "resolve": self.resolve}
        found: MergeResult | MergePreview
        if is_chosen:
            found = graph.revert_session(**chosen, by=by, **options)
        else:
            found = graph.revert(*self.commits, actor=by, **options)
        return found


@dataclass(frozen=True, slots=True)
class PickCall:
    """Commits to make again on a branch."""

    commits: Sequence[str]
    branch: str
    resolve: Any = None

    path = "/cherry-pick"
    verb = "cherry-pick"

    def to_json(self) -> dict[str, Any]:
        """The body of the request."""
        rest = without_empty({"resolve": self.resolve})
        return {"commits": list(self.commits), "into": self.branch, **rest}

    def ask(self, graph: Graph, by: str | None, **options: Any) -> MergeResult | MergePreview:
        """Cherry-pick on a graph; `by` is who does it."""
        options |= {"into": self.branch, "resolve": self.resolve}
        found: MergeResult | MergePreview = graph.cherry_pick(*self.commits, actor=by, **options)
        return found


@dataclass(frozen=True, slots=True)
class RestoreCall:
    """A state to go back to: all of it, or some types or ids."""

    revision: str
    branch: str
    types: Sequence[str] | None = None
    ids: Sequence[str] | None = None

    path = "/restore"
    verb = "restore"

    def to_json(self) -> dict[str, Any]:
        """The body of the request."""
        rest = without_empty({"types": self.types, "ids": self.ids})
        return {"from": self.revision, "branch": self.branch, **rest}

    def ask(self, graph: Graph, by: str | None, **options: Any) -> MutationResult | MergePreview:
        """Restore on a graph; `by` is who does it."""
        options |= {"types": self.types, "ids": self.ids, "branch": self.branch}
        found: MutationResult | MergePreview = graph.restore(self.revision, actor=by, **options)
        return found


UndoCall = RevertCall | PickCall | RestoreCall
