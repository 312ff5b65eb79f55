"""Findings: what a verification reports, as text and as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.json_form import JsonForm, to_json

_MEMBERS = (
    "severity", "check", "subject", "branch", "message", "fix", "file", "branches", "commit", "rows"
)  # fmt: skip
"""What the JSON of a finding holds, in order."""


class Severity(StrEnum):
    """Whether a finding has to be acted on."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding(JsonForm):
    """One thing that is not as it should be. `subject` is a table, a branch or a file.

    A finding about a file names it, the branches that show it, the commit that wrote it and how
    many rows it holds, each where it is known.
    """

    check: str
    subject: str
    message: str
    fix: str
    severity: Severity = Severity.ERROR
    branch: str | None = None
    file: str | None = None
    branches: tuple[str, ...] = ()
    commit: str | None = None
    rows: int | None = None

    def __str__(self) -> str:
        where = f" on branch '{self.branch}'" if self.branch is not None else ""
        return f"{self.severity}: {self.subject}{where}: {self.message} — {self.fix}"

    def to_json(self) -> dict[str, Any]:
        return {name: to_json(getattr(self, name)) for name in _MEMBERS}


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification looked at and what it found, errors first.

    `bytes_compared` is how much of the files was read and compared with their checksums.
    """

    findings: tuple[Finding, ...]
    branches_checked: int
    tables_checked: int
    rows_checked: int
    files_checked: int = 0
    bytes_compared: int = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.severity is Severity.WARNING)

    @property
    def is_clean(self) -> bool:
        """Whether there is no error. Warnings leave every answer right."""
        return not self.errors

    def make_sheet(self) -> Sheet:
        found = [(each.severity, each.subject, each.message, each.fix) for each in self.findings]
        facts = {
            "branches": self.branches_checked,
            "tables": self.tables_checked,
            "rows": self.rows_checked,
            "files": self.files_checked or None,
        }
        title = f"verification: {'clean' if self.is_clean else f'{len(self.errors)} errors'}"
        return Sheet(title, facts, [Grid(("", "subject", "found", "what to do"), found)])

    __repr__ = show_text
    _repr_html_ = show_html

    def to_json(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        return {
            "clean": self.is_clean,
            "branches_checked": self.branches_checked,
            "tables_checked": self.tables_checked,
            "rows_checked": self.rows_checked,
            "files_checked": self.files_checked,
            "bytes_compared": self.bytes_compared,
            "findings": to_json(self.findings),
        }
