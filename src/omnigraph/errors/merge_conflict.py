"""Conflicts that need a decision: rows that two branches changed, checks that would fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors.conflict import ConflictError
from omnigraph.json_form import JsonForm


@dataclass(frozen=True, slots=True)
class MergeConflict(JsonForm):
    """One thing a merge cannot decide. `kind` is snake case, as on the wire.

    `base`, `ours` (the target) and `theirs` (the source) hold the properties that differ, None
    where the row is not there. A rule that only the merged graph breaks has no three sides.
    """

    kind: str
    table_key: str
    row_id: str | None
    message: str
    base: Mapping[str, Any] | None = None
    ours: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        row = "" if self.row_id is None else f" '{self.row_id}'"
        return f"{self.table_key}{row} {self.kind}"

    def to_json(self) -> dict[str, Any]:
        """The wire form, with the sides where there are any."""
        value: dict[str, Any] = {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
        }
        sides = {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        if any(side is not None for side in sides.values()):
            value |= {name: None if side is None else dict(side) for name, side in sides.items()}
        return value


class MergeConflicts(ConflictError):
    """Two branches cannot be joined as they are. The target is unchanged."""

    def __init__(
        self, conflicts: Sequence[MergeConflict], *, into: str, verb: str = "merge"
    ) -> None:
        shown = "; ".join(str(each) for each in conflicts[:3])
        more = f"; and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        super().__init__(f"{verb} conflicts: {shown}{more}")
        self.conflicts = tuple(conflicts)
        self.into = into
        self.verb = verb
        self.add_note(self._advice)

    @property
    def _advice(self) -> str:
        again = f"say how to resolve, and {self.verb} again."
        return f"{self.into} is unchanged. Change one side, or {again}"

    def render(self) -> str:
        return f"{self}\n{self._advice}"


@dataclass(frozen=True, slots=True)
class CheckFailure(JsonForm):
    """A check that does not hold: how many rows it returned, the first of them, what it expects."""

    name: str
    row_count: int
    rows: tuple[Mapping[str, Any], ...]
    expected: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        wanted = f"{len(self.expected)}" if self.expected else "no"
        such = f", such as {dict(self.rows[0])}" if self.rows else ""
        return f"'{self.name}' returns {self.row_count} rows instead of {wanted} rows{such}"


class ChecksFailed(ConflictError):
    """A write would leave a state in which a check of the branch does not hold."""

    def __init__(self, failures: Sequence[CheckFailure], branch: str) -> None:
        shown = "; ".join(str(each) for each in failures[:3])
        more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
        super().__init__(
            f"checks of branch '{branch}' do not hold: {shown}{more} — change the rows, or the "
            "checks with `omnigraph checks apply`"
        )
        self.failures = tuple(failures)
        self.branch = branch

    def without_rows(self) -> ChecksFailed:
        """The same for a caller who may not read everything that a check reads."""
        bare = [CheckFailure(each.name, each.row_count, ()) for each in self.failures]
        hidden = ChecksFailed(bare, self.branch)
        hidden.add_outcome("nothing was written")
        return hidden
