"""Errors and conflicts as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import CheckFailure, MergeConflict, OmnigraphError, RemoteError
from omnigraph.wire.names import Json, entity_of

CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "bad_request",
    409: "conflict",
    412: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}
"""The word for each status of an error."""


def error_to_json(error: OmnigraphError) -> Json:
    """An error as `--json` prints it: the text, the code of its kind, and what a server added."""
    if isinstance(error, RemoteError):
        said, code, details = str(error), error.code, error.details
    else:
        said, code, details = error.render(), CODES.get(error.http_status), {}
    return {"error": said, **({} if code is None else {"code": code}), **details}


def conflict_to_json(conflict: MergeConflict) -> Json:
    """One thing a merge could not decide, with its three sides where it has them."""
    return {
        **conflict.to_json(),
        **entity_of(conflict.table_key),
        "entity_id": conflict.row_id,
    }


def parse_conflict(item: Mapping[str, Any]) -> MergeConflict:
    """The conflict that `conflict_to_json` wrote."""
    return MergeConflict(
        kind=str(item["kind"]),
        table_key=str(item["table_key"]),
        row_id=item.get("row_id"),
        message=str(item.get("message", "")),
        base=item.get("base"),
        ours=item.get("ours"),
        theirs=item.get("theirs"),
    )


def check_failures_to_json(failures: Iterable[CheckFailure]) -> Json:
    return {"failures": [failure.to_json() for failure in failures]}
