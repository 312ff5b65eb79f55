"""Revisions: the words for a state of a graph, wherever a commit or a source of a branch is named.

    main, review/ada     the head of a branch
    v1, tag:v1           what a tag names; the second form when a branch has the same name
    01J8…                a commit, by its id or the beginning of one that no other commit has
    main~3, v1~          so many commits before, along first parents; one without a number
    main@{2026-11-01}    the branch as the newest commit made by then left it
    main@{12}            the branch at a manifest version

Steps are read from left to right, so `main@{2026-11-01}~2` is two commits before that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow.compute as pc

from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    CommitNotFound,
    NotFoundError,
    RevisionNotFound,
    TagNotFound,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.coordinator import ULID_TEXT, Coordinator
from omnigraph.manifest.model import GraphCommit, Snapshot
from omnigraph.manifest.tags import check_tag_name
from omnigraph.types import parse_datetime

TAG_PREFIX = "tag:"
STEPS_MAX = 1_000_000

_FORM = re.compile(r"(?P<base>[^~@{}]+)(?P<steps>(?:~\d*|@\{[^{}]*\})*)")
_STEP = re.compile(r"~(?P<count>\d*)|@\{(?P<moment>[^{}]*)\}")
_ID_START = re.compile(r"[0-9A-HJKMNP-TV-Z]{4,26}")
_SHOWN_MAX = 5
_VERSION_DIGITS_MAX = 20


def resolve(
    coordinator: Coordinator,
    *,
    branch: str,
    commit: str | None = None,
    version: int | None = None,
    at: datetime | str | None = None,
) -> Snapshot:
    """The snapshot of a read: of the branch now, unless one of the others says which.

    `commit` is any revision.

    Raises:
        BadRequestError: More than one of them is given.
        NotFoundError: There is no such branch, commit or version, or nothing as old as `at`.
    """
    if sum(given is not None for given in (commit, version, at)) > 1:
        raise BadRequestError("give one of commit, version and at — each names a snapshot")
    if commit is not None:
        return _find_by_commit(coordinator, commit)
    name = canonical_branch(branch)
    if version is not None:
        return coordinator.at_version(name, version).snapshot()
    if at is not None:
        return find_at_time(coordinator, name, at)
    return coordinator.fresh(name).snapshot()


def is_plain(text: str) -> bool:
    """Whether a text can only be the name of a branch or tag, or a commit."""
    return not any(sign in text for sign in "~@{}:")


def find_revision(coordinator: Coordinator, revision: str) -> Snapshot:
    """The state that a revision names.

    Raises:
        BadRequestError: It is no revision.
        NotFoundError: It names nothing that is there.
    """
    form = _FORM.fullmatch(revision.strip())
    if form is None:
        raise BadRequestError(
            f"'{revision[:80]}' is not a revision — give a branch, a tag or a commit, perhaps "
            "with ~3 or @{2026-11-01} behind it"
        )
    if ULID_TEXT.fullmatch(form[0]):
        return coordinator.commit_states.get(coordinator.commit(form[0]))
    base, steps = form["base"], list(_STEP.finditer(form["steps"]))
    if steps and steps[0]["moment"] is not None:
        snapshot = find_at(coordinator, base, steps.pop(0)["moment"].strip())
    else:
        snapshot = _find_base(coordinator, base)
    for step in steps:
        if step["moment"] is not None:
            raise BadRequestError(f"'{revision[:80]}': a time stands directly behind a branch")
        snapshot = _step_back(coordinator, snapshot, step["count"], revision)
    return snapshot


def find_commit(coordinator: Coordinator, revision: str) -> GraphCommit:
    """The commit that a revision names, whether or not its state can be read."""
    if ULID_TEXT.fullmatch(revision):
        return coordinator.commit(revision)
    return _find_by_commit(coordinator, revision).head


def _find_by_commit(coordinator: Coordinator, revision: str) -> Snapshot:
    """The state of a revision that was asked for as a commit."""
    try:
        return find_revision(coordinator, revision)
    except BranchNotFound:
        if is_plain(revision):
            raise CommitNotFound(revision) from None
        raise


def list_line(coordinator: Coordinator, revision: str) -> Iterator[GraphCommit]:
    """The commits of a branch, newest first; of another revision, the first parents it has left."""
    if is_plain(revision):
        name = canonical_branch(revision)
        if coordinator.has_branch(name):
            yield from coordinator.commits(name)
            return
    is_id = ULID_TEXT.fullmatch(revision)
    commit = coordinator.commit(revision) if is_id else find_revision(coordinator, revision).head
    while True:
        yield commit
        if commit.parent_id is None:
            return
        try:
            commit = coordinator.commit(commit.parent_id)
        except CommitNotFound:
            return  # it went with its branch


def find_at(coordinator: Coordinator, branch: str, moment: str) -> Snapshot:
    """A branch at a manifest version, in digits, or at a time."""
    name = canonical_branch(branch)
    if moment.isdecimal():
        if len(moment) > _VERSION_DIGITS_MAX:
            raise NotFoundError(f"branch '{name}' has no version of {len(moment)} digits")
        return coordinator.at_version(name, int(moment)).snapshot()
    return find_at_time(coordinator, name, moment)


def _find_base(coordinator: Coordinator, name: str) -> Snapshot:
    if name.startswith(TAG_PREFIX):
        return find_tag(coordinator, name.removeprefix(TAG_PREFIX))
    branch = canonical_branch(name)
    try:
        return coordinator.fresh(branch).snapshot()
    except BranchNotFound:
        tagged = coordinator.tags.find(branch)
        if tagged is not None:
            return tagged[1]
        commit = _find_by_start(coordinator, branch.upper())
        if commit is None:
            known = [*coordinator.branches(), *coordinator.tags.names()]
            raise RevisionNotFound(name, known) from None
    return coordinator.commit_states.get(commit)


def find_tag(coordinator: Coordinator, name: str) -> Snapshot:
    """The state that a tag names. Raises TagNotFound."""
    found = coordinator.tags.find(check_tag_name(name))
    if found is None:
        raise TagNotFound(name, coordinator.tags.names())
    return found[1]


def _find_by_start(coordinator: Coordinator, start: str) -> GraphCommit | None:
    """The commit whose id begins so; None when there is none, or the text can begin no id."""
    if not _ID_START.fullmatch(start):
        return None
    if ULID_TEXT.fullmatch(start):
        return coordinator.commit(start)
    found: set[str] = set()
    for branch in coordinator.branches():
        state = coordinator.fresh(branch)
        for rows in (state.commit_rows, state.ancestor_rows):
            ids = rows["object_id"]
            found |= set(ids.filter(pc.starts_with(ids, start)).to_pylist())
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:_SHOWN_MAX])
        raise BadRequestError(
            f"{len(found)} commits begin with '{start}' — give more of the id: {shown}"
        )
    return coordinator.commit(found.pop()) if found else None


def _step_back(coordinator: Coordinator, snapshot: Snapshot, count: str, revision: str) -> Snapshot:
    wanted = int(count or 1)
    if wanted > STEPS_MAX:
        raise NotFoundError(f"'{revision[:80]}' goes back further than any history")
    commit = snapshot.head
    for done in range(wanted):
        if commit.parent_id is None:
            raise NotFoundError(
                f"'{revision[:80]}' goes back {wanted} commits, and there are only {done} before "
                f"'{snapshot.head.commit_id}'"
            )
        commit = coordinator.commit(commit.parent_id)
    return snapshot if wanted == 0 else coordinator.commit_states.get(commit)


def find_at_time(coordinator: Coordinator, branch: str, at: datetime | str) -> Snapshot:
    """The branch as the newest commit that was made by then left it."""
    instant = to_microseconds(at)
    for commit in coordinator.commits(branch):
        if commit.created_at <= instant:
            return coordinator.commit_states.get(commit)
    raise NotFoundError(f"branch '{branch}' has no commit as old as that — its first one is newer")


def to_microseconds(at: datetime | str) -> int:
    """A time as commits count it."""
    if isinstance(at, datetime):
        aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1_000_000)
    # A text names a millisecond; everything made within it counts as made by then.
    return parse_datetime(at) * 1_000 + 999
