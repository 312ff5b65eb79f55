"""Conflicts over graphs, branches, tags and merge requests: no effect; refresh and retry."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.base import OmnigraphError


class ConflictError(OmnigraphError):
    """Another writer came first. Nothing of this request took effect."""

    kind = "conflict"
    http_status = 409


class PreconditionFailed(ConflictError):
    """The branch head is not the commit the caller expected."""

    kind = "precondition"
    http_status = 412

    def __init__(self, *, expected: str, actual: str | None) -> None:
        super().__init__(
            f"precondition failed: expected head {expected} but it is {actual} — "
            "read again and retry; nothing was written"
        )
        self.expected = expected
        self.actual = actual


class EtagMismatch(ConflictError):
    """A Blob is not the one that the caller has seen."""

    kind = "precondition"
    http_status = 412

    def __init__(self, *, expected: str, actual: str | None) -> None:
        found = "it has no bytes" if actual is None else f"it is {actual}"
        super().__init__(
            f"the bytes have changed: expected the ETag {expected} but {found} — "
            "read them again and retry; nothing was written"
        )
        self.expected = expected
        self.actual = actual


class NotFastForward(ConflictError):
    """The branch at the receiver has commits that the sender does not have."""

    def __init__(self, branch: str, receiver_head: str, sender_head: str) -> None:
        super().__init__(
            f"branch '{branch}' was not moved: the receiver has commit '{receiver_head}', which "
            f"'{sender_head}' does not come from — pull first, which merges both, and push again"
        )
        self.branch, self.receiver_head, self.sender_head = branch, receiver_head, sender_head


class UnrelatedHistories(ConflictError):
    """The two graphs are not copies of one another: they have no commit in common."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(
            f"'{source}' and '{target}' are different graphs: they have no commit in common — "
            "nothing was changed; clone one of them, or export and load its rows"
        )
        self.source, self.target = source, target


class SourceChanged(ConflictError):
    """A file that was to be copied is gone: a cleanup or a deleted branch took it."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"'{uri}' was removed while its graph was copied — what was copied stays; run the same "
            "call again to continue"
        )
        self.uri = uri


class BranchInUse(ConflictError):
    """Other branches come from commits of the branch that would be dropped. Nothing was done."""

    def __init__(self, branch: str, others: Sequence[str]) -> None:
        named = ", ".join(f"'{each}'" for each in others[:10])
        more = f" and {len(others) - 10} more" if len(others) > 10 else ""
        comes = "comes" if len(others) == 1 else "come"
        super().__init__(
            f"branch '{branch}' is in use: {named}{more} {comes} from commits that would be "
            "dropped — nothing was changed; use `revert` to take them back by a new commit, or go "
            "back less far"
        )
        self.branch, self.others = branch, tuple(others)


class MergeRequestNotOpen(ConflictError):
    """The merge request is merged or closed. Nothing was done."""

    kind = "merge_request_not_open"

    def __init__(self, number: int, state: str, commit_id: str | None = None) -> None:
        of = f" by commit '{commit_id}'" if commit_id else ""
        advice = "reopen it first" if state == "closed" else "open another one for what came since"
        super().__init__(f"merge request {number} is {state}{of} — nothing was done; {advice}")
        self.number, self.state, self.commit_id = number, state, commit_id


class SourceMoved(ConflictError):
    """The source of a merge request is not what the caller looked at. Nothing was done."""

    kind = "source_moved"

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        super().__init__(
            f"branch '{branch}' has moved: expected commit '{expected}' but its head is "
            f"'{actual}' — nothing was done; look at what came since, then do it again"
        )
        self.branch, self.expected, self.actual = branch, expected, actual


class GraphExists(ConflictError):
    """There is already a graph, or part of one, at the location."""

    def __init__(self, uri: str, *, is_partial: bool = False) -> None:
        found = f"a graph already exists at '{uri}' — open it, or choose another location"
        if is_partial:
            found = (
                f"part of a graph exists at '{uri}': an init is under way there, or died — "
                "if none is running, remove what is there and run it again"
            )
        super().__init__(found)
        self.uri = uri


class BranchExists(ConflictError):
    """A branch of that name is there already."""

    def __init__(self, branch: str) -> None:
        super().__init__(f"branch '{branch}' already exists — choose another name")
        self.branch = branch


class TagExists(ConflictError):
    """A tag of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"tag '{name}' already exists — choose another name, or delete it first")
        self.name = name
