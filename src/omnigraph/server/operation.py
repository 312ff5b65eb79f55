"""Operation: what the table of operations says of one thing a client can ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pydantic import BaseModel
from starlette.responses import Response

from omnigraph.dataclass import dataclass
from omnigraph.policy import Action
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON

Handler: TypeAlias = Callable[[Call], Awaitable[Response]]
Model: TypeAlias = type[BaseModel]

READ_ERRORS = (400, 401, 403, 404, 408, 413, 415, 500, 503)
WRITE_ERRORS = (*READ_ERRORS, 409, 429)
FEED_ERRORS = (*READ_ERRORS, 410)
BLOB_ERRORS = (*READ_ERRORS, 412, 416)
CONDITIONAL_ERRORS = (*WRITE_ERRORS, 412)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of a path, a parameter of the URL or a header."""

    name: str
    place: str
    description: str
    is_required: bool = False
    values: tuple[str, ...] = ()

    def to_openapi(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.values:
            schema["enum"] = list(self.values)
        return {
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "required": self.is_required,
            "schema": schema,
        }


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a client can ask for. Without an action, it reveals nothing about a graph."""

    operation_id: str
    method: str
    path: str
    handler: Handler
    action: Action | None
    outputs: tuple[type[BaseModel], ...] = ()
    takes: type[BaseModel] | None = None
    is_body_required: bool = True
    takes_media: str = JSON
    gives_media: str = JSON
    other_media: tuple[str, ...] = ()
    """What it gives instead when it is asked to."""
    parameters: tuple[Parameter, ...] = ()
    success: int = 200
    other_successes: tuple[int, ...] = ()
    errors: tuple[int, ...] = READ_ERRORS
    is_of_server: bool = False
    is_deprecated: bool = False
    is_described: bool = True
    """Whether OpenAPI tells of it: MCP describes itself."""

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").split("\n")[0]
