"""Problems: what is wrong with a file, collected so that one run says all of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.errors import PolicyInvalid

_PROBLEMS_MAX = 100


@dataclass(slots=True)
class Problems:
    """What was found so far in one file. `what` names the file in the error."""

    what: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note a problem; `line` counts from 1."""
        self.found.append((line, text))

    def raise_if_any(self) -> None:
        """Raise one error that lists every problem, if there is one."""
        if self.found:
            raise self.error()

    def error(self) -> PolicyInvalid:
        """All that was found, in the order of the file."""
        listed = [f"line {line}: {text}" for line, text in sorted(self.found)]
        more = len(listed) - _PROBLEMS_MAX
        shown = listed[:_PROBLEMS_MAX] + ([f"and {more} more"] if more > 0 else [])
        return PolicyInvalid(self.what, shown)
