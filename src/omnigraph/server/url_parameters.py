"""Parameters of a URL: each is known, and each that is no list is there once."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from omnigraph.errors import BadRequestError, did_you_mean


def check_parameters(request: Request, known: Collection[str]) -> None:
    """Refuse what the operation does not know: a filter that is misspelt would find everything.

    Raises:
        BadRequestError: There is one.
    """
    for name in request.query_params:
        if name not in known:
            hint = did_you_mean(name, known) or f"expected one of {', '.join(sorted(known))}"
            raise BadRequestError(f"there is no parameter `{name[:80]}` — {hint}")


def one_parameter(request: Request, name: str) -> str | None:
    """A parameter that may be there once.

    Raises:
        BadRequestError: It is there twice.
    """
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise BadRequestError(f"the parameter `{name}` is given {len(values)} times — give one")
    return values[0] if values else None


def require_parameter(request: Request, name: str) -> str:
    """A parameter that has to be there.

    Raises:
        BadRequestError: It is missing, or there twice.
    """
    value = one_parameter(request, name)
    if value is None:
        raise BadRequestError(f"the parameter `{name}` is missing")
    return value


def list_parameter(request: Request, name: str) -> list[str] | None:
    """A parameter that may be repeated; None when it is not there."""
    return request.query_params.getlist(name) or None


def integer_parameter(request: Request, name: str, *, least: int = 1) -> int | None:
    """A whole number of at least `least`.

    Raises:
        BadRequestError: It is something else.
    """
    text = one_parameter(request, name)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or int(text) < least:
        raise BadRequestError(f"`{name}` is '{text[:40]}' — expected a number from {least} on")
    return int(text)
