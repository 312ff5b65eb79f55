"""The parts of the HTTP reference that the code knows best, as Markdown tables."""

from __future__ import annotations

from omnigraph.server.openapi import STATUS_TEXTS
from omnigraph.server.operation import Operation
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.settings import LIMIT_VARIABLES, Limits
from omnigraph.wire import CODES


def operation_table() -> str:
    """Every operation: how it is called, what it is called, what it takes, who may."""
    rows = ["| call | operation id | body | action | |", "|---|---|---|---|---|"]
    return "\n".join([*rows, *map(_operation_row, OPERATIONS)])


def _operation_row(operation: Operation) -> str:
    path = operation.path.replace(":path}", "}")
    action = operation.action
    taken = operation.takes
    body = f"`{taken.__name__}`" if taken else ("NDJSON" if operation.method == "POST" else "–")
    notes = operation.summary.rstrip(".")
    if operation.is_deprecated:
        notes += " (deprecated)"
    return (
        f"| `{operation.method} {path}` | `{operation.operation_id}` | {body} "
        f"| {'–' if action is None else f'`{action}`'} | {notes} |"
    )


def error_table() -> str:
    """Every status that is not a success, with its code."""
    rows = ["| status | `code` | when |", "|---|---|---|"]
    for status, text in sorted(STATUS_TEXTS.items()):
        code = CODES.get(status)
        rows.append(f"| {status} | {'–' if code is None else f'`{code}`'} | {text} |")
    return "\n".join(rows)


def limit_table() -> str:
    """Every limit that the environment sets, with what it is otherwise."""
    rows = ["| variable | default |", "|---|---|"]
    for variable, name in LIMIT_VARIABLES.items():
        default: int | float = getattr(Limits(), name)
        rows.append(f"| `{variable}` | {int(default):,} |")
    return "\n".join(rows)
