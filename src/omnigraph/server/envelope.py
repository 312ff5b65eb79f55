"""Envelope: every error as a status and a JSON body, decided in one place.

    {"error": "text for people", "code": "conflict", "manifest_conflict": {...}}

`code` is one of eight words. Errors that have a detail instead of a code leave it out: 410 (a gap
in the change feed), 412 (a precondition that did not hold) and 503 (a write that recovery has to
finish or undo).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from omnigraph.errors import (
    ApprovalsMissing,
    ChangeFeedGap,
    ChecksFailed,
    ExpectedVersionMismatch,
    KeyConflict,
    MergeConflicts,
    MergeRequestNotOpen,
    OmnigraphError,
    PreconditionFailed,
    RecoveryRequired,
    ResourceLimitError,
    SourceError,
    SourceMoved,
)
from omnigraph.server.admission import RETRY_AFTER_SECONDS, TooManyRequests
from omnigraph.server.fence import StaleWrite
from omnigraph.server.http_errors import BodyTooLarge, HttpError
from omnigraph.wire import CODES, conflict_to_json, entity_of

JSON = "application/json"


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A body that is encoded at once: no model stands between a result and its bytes."""
    return Response(orjson.dumps(body), status, headers, JSON)


def error_response(error: OmnigraphError) -> Response:
    """The response that says what went wrong."""
    return json_response(error_body(error), error_status(error), _headers(error))


def error_status(error: OmnigraphError) -> int:
    return error.status if isinstance(error, HttpError) else error.http_status


def error_body(error: OmnigraphError) -> dict[str, Any]:
    """The envelope of an error."""
    # A fault in a text is shown where it is, as in a terminal.
    text = error.render() if isinstance(error, SourceError) else str(error)
    body: dict[str, Any] = {"error": text}
    code = CODES.get(error_status(error))
    if code is not None and not isinstance(error, PreconditionFailed):
        body["code"] = code
    return body | _details(error)


def _details(error: OmnigraphError) -> dict[str, Any]:
    match error:
        case ExpectedVersionMismatch():
            return _stale(error)
        case KeyConflict():
            return {
                "key_conflict": {
                    "table_key": error.table_key,
                    "key": error.entity_id,
                    **entity_of(error.table_key),
                    "entity_id": error.entity_id,
                }
            }
        case MergeConflicts():
            return {"merge_conflicts": [conflict_to_json(each) for each in error.conflicts]}
        case ApprovalsMissing():
            return {
                "approvals": {
                    "branch": error.branch,
                    "number": error.number,
                    "required": error.required,
                    "missing": error.missing,
                    "objectors": list(error.objectors),
                    "approvers": list(error.approvers),
                }
            }
        case MergeRequestNotOpen():
            return {"merge_request": {"number": error.number, "state": error.state}}
        case SourceMoved():
            return {"source_moved": {"expected": error.expected, "actual": error.actual}}
        case ChecksFailed():
            return {"checks_failed": [each.to_json() for each in error.failures]}
        case PreconditionFailed():
            failure = {"expected": error.expected}
            if error.actual is not None:
                failure["actual"] = error.actual
            return {"precondition_failure": failure}
        case ResourceLimitError():
            return {
                "resource_limit": {
                    "resource": error.resource,
                    "limit": error.limit,
                    "actual": error.actual,
                }
            }
        case ChangeFeedGap():
            gap = {"cursor": error.cursor} if error.cursor is not None else {}
            first = error.first_unreadable_commit_id
            return {"change_feed_gap": {**gap, "first_unreadable_commit_id": first}}
        case RecoveryRequired(operation_id=str() as operation_id):
            return {"recovery_required": {"operation_id": operation_id}}
        case _:
            return {}


def _stale(error: ExpectedVersionMismatch) -> dict[str, Any]:
    details: dict[str, Any] = {
        "manifest_conflict": {
            "table_key": error.table_key,
            "expected": error.expected,
            "actual": error.actual,
        },
        "published_dataset_version_conflict": {
            **entity_of(error.table_key),
            "expected_published_dataset_version": error.expected,
            "actual_published_dataset_version": error.actual,
        },
    }
    if isinstance(error, StaleWrite):
        details["read_set_conflict"] = {
            "member": f"graph_head:{error.branch}",
            "expected": error.head_expected,
            "actual": error.head_actual,
        }
    return details


def _headers(error: OmnigraphError) -> Mapping[str, str]:
    match error:
        case HttpError():
            return error.headers
        case TooManyRequests():
            return {"Retry-After": str(RETRY_AFTER_SECONDS)}
        case BodyTooLarge():
            return {"Connection": "close"}  # the rest of the body is not waited for
        case _:
            return {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else {}
