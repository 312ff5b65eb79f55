"""Errors of names: name something that exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.errors.base import OmnigraphError, did_you_mean


class NotFoundError(OmnigraphError):
    """The named thing does not exist."""

    kind = "not_found"
    http_status = 404


class GraphNotFound(NotFoundError):
    """There is no graph at the location."""

    def __init__(self, uri: str, *, is_file: bool = False) -> None:
        create = f"create one with `omnigraph init --schema <file.pg> {uri}`"
        file = "that is a file or below one, and a graph is a directory; name the directory"
        super().__init__(f"no graph at '{uri}' — {file if is_file else create}")
        self.uri = uri


class RemoteNotFound(GraphNotFound):
    """A name stands for no other store, and there is no graph at a path of that name."""

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        there = f"the remotes are {', '.join(known)}" if known else "there are no remotes"
        hint = did_you_mean(name, known) or "name one with `omnigraph remote add`, or give a path"
        message = f"remote '{name}' not found, and no graph at that path: {there} — {hint}"
        NotFoundError.__init__(self, message)
        self.uri = name


class BranchNotFound(NotFoundError):
    """There is no such branch."""

    def __init__(self, branch: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(branch, known) or "list the branches to see those there are"
        super().__init__(f"branch '{branch}' not found — {hint}")
        self.branch = branch


class RevisionNotFound(BranchNotFound):
    """A revision names no branch, no tag and no commit."""

    def __init__(self, revision: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(revision, known) or (
            "give a branch, a tag, or a commit by its id or the beginning of one, perhaps with ~3 "
            "or @{2026-11-01} behind it"
        )
        message = f"revision '{revision}' not found: no branch, tag or commit is called so — {hint}"
        NotFoundError.__init__(self, message)
        self.branch = revision


class TagNotFound(NotFoundError):
    """There is no such tag."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(name, known) or "`omnigraph tag list` shows those there are"
        super().__init__(f"tag '{name}' not found — {hint}")
        self.name = name


class MergeRequestNotFound(NotFoundError):
    """There is no merge request of that number."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"merge request {number} not found — `omnigraph request list --state all` shows those "
            "there are"
        )
        self.number = number


class BackupNotFound(NotFoundError):
    """There is no backup at the location, or none of that name."""

    def __init__(self, uri: str, name: str | None) -> None:
        wanted = "no backup" if name is None else f"no backup '{name}'"
        super().__init__(
            f"there is {wanted} at '{uri}' — see what there is with `omnigraph backup list`"
        )
        self.uri, self.name = uri, name


class CommitNotFound(NotFoundError):
    """There is no such graph commit on any branch."""

    def __init__(self, commit_id: str) -> None:
        super().__init__(f"commit '{commit_id}' not found — `omnigraph commit list` shows them")
        self.commit_id = commit_id


class VersionNotFound(NotFoundError):
    """The manifest version does not exist, or was cleaned up."""

    def __init__(self, version: int, branch: str) -> None:
        super().__init__(f"manifest version {version} not found on branch '{branch}'")
        self.version = version
        self.branch = branch


class EntityNotFound(NotFoundError):
    """There is no such node or edge on the branch."""

    def __init__(
        self,
        table_key: str,
        entity_id: str,
        branch: str,
        notes: Iterable[str] = (),
        *,
        deleted_by: str | None = None,
    ) -> None:
        what = f"{table_key} '{entity_id}'"
        if deleted_by is not None:
            text = (
                f"{what} is not on branch '{branch}': commit '{deleted_by}' deleted it — its "
                "history shows what it was"
            )
        else:
            gaps = "; ".join(notes)
            text = (
                f"{what} is not on branch '{branch}', nor in its stored history: {gaps}"
                if gaps
                else f"{what} was never on branch '{branch}' — name one that is there, by its id"
            )
        super().__init__(text)
        self.table_key = table_key
        self.entity_id = entity_id
        self.branch = branch
        self.deleted_by = deleted_by


class ChangeFeedGap(NotFoundError):
    """The feed of changes has a gap: a cleanup removed a state that a reader has not seen yet."""

    http_status = 410

    def __init__(self, commit_id: str, *, cursor: str | None = None) -> None:
        super().__init__(
            f"the changes around commit '{commit_id}' are gone: a cleanup removed its state — "
            "take a new baseline, and go on from its cursor"
        )
        self.first_unreadable_commit_id = commit_id
        self.cursor = cursor


class CommitStateGone(VersionNotFound):
    """The commit is part of the history, but the state it left cannot be read any more."""

    def __init__(self, commit_id: str, version: int, branch: str) -> None:
        NotFoundError.__init__(
            self,
            f"commit '{commit_id}' is known, but its state is gone: a cleanup removed it, or it "
            f"went with branch '{branch}' — read a newer commit",
        )
        self.commit_id = commit_id
        self.version = version
        self.branch = branch


class TableNotFound(NotFoundError):
    """There is no table dataset at the location."""

    def __init__(self, location: str) -> None:
        super().__init__(f"no table at '{location}' — the graph there is incomplete or was removed")
        self.location = location


class TableVersionNotFound(NotFoundError):
    """A table exists, but not at this version: it was never written, or was cleaned up."""

    def __init__(self, location: str, version: int) -> None:
        super().__init__(
            f"version {version} of the table at '{location}' is not there — "
            "it was cleaned up or never written; read a newer snapshot"
        )
        self.location = location
        self.version = version
