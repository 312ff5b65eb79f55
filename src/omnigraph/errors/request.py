"""Errors of a request: fix the request or its rows, or send less."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.base import OmnigraphError


class BadRequestError(OmnigraphError):
    """The request cannot be served as it stands. Nothing was written."""

    kind = "bad_request"
    http_status = 400


class ChangeCursorRejected(BadRequestError):
    """A token of the change feed does not fit what it is used for."""

    prefix = "change cursor rejected: "


class ParamsError(BadRequestError):
    """A query parameter is missing, unknown in shape, or out of range."""

    kind = "params"


class ConstraintError(BadRequestError):
    """Rows break a rule of the schema. Nothing was written."""

    kind = "constraint"


class MigrationError(BadRequestError):
    """A schema change that cannot be applied. `code` is OG-XX-NNN where one exists."""

    kind = "migration"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(f"[{code}] {message}" if code else message, code=code)


class EmbeddingNotConfigured(BadRequestError):
    """Text has to be embedded and no provider is configured. Names the setting."""

    kind = "embedding_not_configured"


class EmbeddingModelMismatch(BadRequestError):
    """A text would be embedded by another model than the vectors it is compared with."""

    kind = "embedding_model_mismatch"

    def __init__(self, property_name: str, *, recorded: str, configured: str) -> None:
        super().__init__(
            f"'{property_name}' holds vectors of model '{recorded}', but the configured embedder "
            f"uses '{configured}' — choose that model again (OMNIGRAPH_EMBED_PROVIDER, "
            f"OMNIGRAPH_EMBED_MODEL={recorded}), give a vector, or make every vector anew with "
            "`omnigraph embed --reembed-all`"
        )
        self.property_name = property_name
        self.recorded = recorded
        self.configured = configured


class ConfigError(BadRequestError):
    """A configuration file cannot be used as it is. Names the file and the line."""

    kind = "config"


class AddressError(BadRequestError):
    """A command does not say clearly which graph it is about, or has a flag it does not take."""

    kind = "address"


class PolicyInvalid(BadRequestError):
    """A policy bundle, or a file of tests for one, is wrong. `problems` lists all of it."""

    kind = "policy_invalid"

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        joint = " " if len(problems) == 1 else "\n  "
        super().__init__(joint.join([f"{what} is not valid:", *problems]))
        self.problems = tuple(problems)


class CommitNotReplayable(BadRequestError):
    """What a commit changed cannot be undone, or made again, by changing rows."""

    def __init__(self, commit_id: str, reason: str) -> None:
        super().__init__(f"commit '{commit_id}' {reason}; nothing was written")
        self.commit_id = commit_id


class ResourceLimitError(OmnigraphError):
    """The request is larger than a limit."""

    kind = "resource_limit"
    http_status = 413

    def __init__(self, resource: str, *, limit: int, actual: int, advice: str) -> None:
        super().__init__(f"{resource} is {actual}, the limit is {limit} — {advice}")
        self.resource = resource
        self.limit = limit
        self.actual = actual
