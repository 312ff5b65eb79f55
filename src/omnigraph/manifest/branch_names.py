"""Branch names: one canonical spelling, checked before the store is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from omnigraph.errors import BadRequestError, ConflictError
from omnigraph.manifest.model import MAIN

SCHEMA_APPLY_LOCK = "__schema_apply_lock__"

RECEIVED = "__from/"
"""Forks of tables that hold versions made in another store. No branch owns one."""
PREPARED = "__incoming/"
"""Where a branch that is received is prepared, before it gets its name."""

_SEGMENT = re.compile(r"[\w.-]+")
_LENGTH_MAX = 200
NAME_FORM = (
    "letters, digits, '.', '-' and '_', in parts separated by '/': at most "
    f"{_LENGTH_MAX} bytes, without '..' and '.lock' at the end"
)
_LATER_FORK = re.compile(r"__\d+/(.+)")


def canonical_branch(name: str) -> str:
    """Return the name to use, or refuse it.

    Segments of letters, digits, `.`, `-` and `_`, separated by single `/`.
    """
    if not isinstance(name, str):
        raise BadRequestError(f"branch is {name!r:.60}, expected a string")
    trimmed = name.strip()
    segments = trimmed.split("/")
    if (
        len(trimmed.encode(errors="replace")) > _LENGTH_MAX
        or any(not _SEGMENT.fullmatch(segment) for segment in segments)
        or any(set(segment) == {"."} or ".." in segment for segment in segments)
        or trimmed.endswith(".lock")
    ):
        raise BadRequestError(f"'{name[:80]}' is not a branch name — use {NAME_FORM}")
    if trimmed == SCHEMA_APPLY_LOCK:
        raise BadRequestError(f"'{trimmed}' is a name of the engine — choose another")
    return trimmed


def lance_branch(branch: str) -> str | None:
    """The Lance branch that holds a graph branch's manifest and first forks; None for main."""
    return None if branch == MAIN else branch


def fork_names(branch: str) -> Iterator[str]:
    """Lance branches that a graph branch may own in a table, in the order they are tried.

    The first bears its name. A fork of an earlier branch of that name may still be needed, as the
    base of a merge or of another fork; then the next one is taken.
    """
    if branch != MAIN:  # Lance keeps that name for itself
        yield branch
    for number in count(2):
        yield f"__{number}/{branch}"


def branch_of_fork(fork: str) -> str:
    """The graph branch that a Lance branch of a table is for."""
    later = _LATER_FORK.fullmatch(fork)
    return fork if later is None else later[1]


def owns_lineage(branch: str, table_branch: str | None) -> bool:
    """Whether a branch writes a table on this lineage, instead of forking it first."""
    if table_branch is None:
        return branch == MAIN
    return branch_of_fork(table_branch) == branch


def is_internal(branch: str) -> bool:
    """Whether a name is one the engine keeps for itself. `__run__…` once was, and is no more."""
    return branch.startswith("__") and not branch.startswith("__run__")


def check_new_branch(name: str, existing: Iterable[str]) -> str:
    """Return the canonical name of a branch to create, or refuse it.

    A name that is a path above or below a live one is refused: their files would lie inside one
    another, and deleting the shorter one would take the longer one along.
    """
    branch = canonical_branch(name)
    if branch == MAIN:
        raise BadRequestError("'main' is always there — choose another name")
    if is_internal(branch):
        raise BadRequestError(f"'{branch}' is a name of the engine — choose another")
    for other in existing:
        if branch.startswith(f"{other}/") or other.startswith(f"{branch}/"):
            raise ConflictError(
                f"'{branch}' overlaps the branch '{other}' — a name may not be a path above or "
                "below another one"
            )
    return branch
