"""Apply checks: make a set of queries the checks of a branch, as one commit, once they hold."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.catalog import Catalog
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import PreconditionFailed, ResourceLimitError
from omnigraph.json_form import JsonForm
from omnigraph.manifest.checks import Check, list_changes, note_checks
from omnigraph.write.checks import compile_check, require_checks
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.intent import Intent, mint_commit
from omnigraph.write.protocol import carry_out
from omnigraph.write.sidecar import WriterKind

CHECKS_MAX = 200
QUERY_BYTES_MAX = 16_384
_ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class ChecksResult(JsonForm):
    """What applying checks did; no commit when they were so already."""

    branch: str
    commit_id: str | None
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def apply_checks(
    environment: WriteEnvironment,
    catalog: Catalog,
    branch: str,
    checks: Sequence[Check],
    *,
    actor: str | None = None,
    note: CommitNote = NO_NOTE,
) -> ChecksResult:
    """Make `checks` the checks of a branch; others that it has go.

    Raises:
        BadRequestError: A query does not fit the schema, or has parameters.
        ChecksFailed: One of them does not hold now. Nothing is changed.
        PreconditionFailed: The branch changed all the time meanwhile.
    """
    wanted = {each.name: each for each in checks}
    _check_sizes(checks)
    for check in checks:
        compile_check(check, catalog)
    for attempt in range(_ATTEMPTS_MAX):
        state = environment.coordinator.fresh(branch)
        changed = list_changes(state.checks, wanted)
        if not changed:
            return ChecksResult(branch, None)
        new = [each for each in changed.values() if each is not None]
        tables, cache = environment.tables, environment.check_cache
        require_checks(new, state.snapshot(), catalog, tables, cache)
        commit = mint_commit(actor, properties={**note_checks(changed), **note.to_json()})
        intent = Intent(
            kind=WriterKind.MUTATION,
            branch=branch,
            branch_id=state.incarnation,
            tables=(),
            expected={},
            commit=commit,
            if_commit=state.head.commit_id,
        )
        try:
            carry_out(environment, intent)
        except PreconditionFailed:
            if attempt + 1 == _ATTEMPTS_MAX:
                raise
            continue
        before = state.checks
        return ChecksResult(
            branch,
            commit.commit_id,
            added=tuple(name for name in changed if name not in before),
            changed=tuple(name for name in changed if name in before and name in wanted),
            removed=tuple(name for name in changed if name not in wanted),
        )
    raise AssertionError("the loop returns or raises")


def _check_sizes(checks: Sequence[Check]) -> None:
    _check_size("number of checks", len(checks), CHECKS_MAX, "join some")
    for check in checks:
        name = f"bytes of check '{check.name}'"
        _check_size(name, len(check.query.encode()), QUERY_BYTES_MAX, "make it shorter")


def _check_size(what: str, actual: int, limit: int, advice: str) -> None:
    if actual > limit:
        raise ResourceLimitError(what, limit=limit, actual=actual, advice=advice)
