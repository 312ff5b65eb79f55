"""Errors of what Omnigraph stands on: the store, Spark, an embedding provider, a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors.base import OmnigraphError


class EmbeddingFailed(OmnigraphError):
    """The provider did not give usable vectors. Nothing was written."""

    kind = "embedding_failed"


class StorageError(OmnigraphError):
    """The store did not do what was asked: disk full, permission, a damaged file."""

    kind = "storage"


class ObjectMissing(StorageError):
    """A text object that has to be there is not."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"'{uri}' does not exist — the graph is incomplete or the path is wrong")
        self.uri = uri


class DamagedFile(StorageError):
    """A file is not what its writer recorded. It was not copied."""

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(
            f"'{uri}' {problem} — it was not copied; restore it from a backup, and see what else "
            "is damaged with `omnigraph verify --content`"
        )
        self.uri = uri


class StorageFull(StorageError):
    """The store has no room left. What was acknowledged before is safe."""


class StoragePermissionDenied(StorageError):
    """The store refused access with the credentials in use."""


class SparkError(StorageError):
    """Spark did not start, or a job of it failed. Nothing was committed."""

    kind = "spark"


class InvariantViolated(StorageError):
    """The store is in a state the protocol rules out. Stop and look before writing again."""


class RecoveryRequired(OmnigraphError):
    """A write may have taken effect in part. Do not repeat it before recovery has decided."""

    kind = "recovery_required"
    http_status = 503

    def __init__(self, message: str, *, operation_id: str | None = None) -> None:
        super().__init__(message)
        self.operation_id = operation_id


class RemoteError(OmnigraphError):
    """A server refused the request, or could not be reached. The text is the server's own.

    `status` is its HTTP status (None when there was no answer), `code` its error code, `details`
    the other members of its answer.
    """

    kind = "remote"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.details = dict(details or {})
