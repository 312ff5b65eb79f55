"""Faults of a request as HTTP: its path, its method, its content type, its length."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import OmnigraphError, ResourceLimitError


class HttpError(OmnigraphError):
    """A fault that has a status of its own."""

    kind = "http"

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


class BodyTooLarge(ResourceLimitError):
    """More was sent than the operation takes. Nothing was done."""

    def __init__(self, resource: str, *, limit: int, actual: int) -> None:
        super().__init__(
            resource, limit=limit, actual=actual, advice="send less at once; nothing was done"
        )
