"""Bisect: the commit that broke something, found with few questions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from omnigraph.errors import BadRequestError
from omnigraph.manifest import Coordinator, GraphCommit
from omnigraph.manifest.revisions import find_commit, list_line


def bisect_commits(
    coordinator: Coordinator, good: str, bad: str, holds: Callable[[GraphCommit], bool]
) -> GraphCommit:
    """The first commit after `good`, along first parents to `bad`, at which `holds` is false.

    Asks once at each end, and then as often as the number of commits can be halved.

    Raises:
        BadRequestError: `good` is not before `bad`, or one of them is not what it is said to be.
    """
    *after, start = list_between(coordinator, good, bad)
    if not holds(start):
        raise BadRequestError(f"the check does not hold at '{good}' — name a commit where it does")
    if holds(after[0]):
        raise BadRequestError(f"the check holds at '{bad}' — name a commit where it does not")
    broken, first = 0, len(after)  # it holds at `first`, counted from the newest, and not before
    while first - broken > 1:
        middle = (broken + first) // 2
        if holds(after[middle]):
            first = middle
        else:
            broken = middle
    return after[broken]


def list_between(coordinator: Coordinator, good: str, bad: str) -> list[GraphCommit]:
    """The commits from `bad` back to `good`, both included.

    Raises:
        BadRequestError: `good` is not before `bad`.
    """
    start, end = find_commit(coordinator, good), find_commit(coordinator, bad)
    line = list_line(coordinator, end.commit_id)
    after = list(takewhile(lambda each: each.commit_id != start.commit_id, line))
    if not after or after[-1].parent_id != start.commit_id:
        raise BadRequestError(f"'{good}' is not before '{bad}' along first parents")
    return [*after, start]
