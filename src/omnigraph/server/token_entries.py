"""Token entries: the JSON object of a token file, actor by actor.

{"act-ada": "token", "act-lin": {"token": "token", "branches": ["agent/lin/*"]}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from omnigraph.errors import BadRequestError
from omnigraph.server.auth import TokenEntry

_MEMBERS = {"token", "branches"}


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object, also those that are there twice."""


def parse_entries(text: str, origin: str) -> Iterator[TokenEntry]:
    """The entries of a text from `origin`: a variable, or the file that one names.

    Raises:
        BadRequestError: It is no such object. The text is full of secrets: the error says only
            what it should have been.
    """
    try:
        found = json.loads(text, object_pairs_hook=_Object)
    except ValueError:
        found = None
    if not isinstance(found, _Object):
        raise BadRequestError(f'{origin} should be a JSON object {{"actor": "token"}}')
    for actor, value in found:
        yield _parse_entry(actor, value, origin)


def _parse_entry(actor: str, value: Any, origin: str) -> TokenEntry:
    if isinstance(value, str):
        return TokenEntry(actor, value)
    members = dict(value) if isinstance(value, _Object) and len(value) <= len(_MEMBERS) else {}
    token, branches = members.get("token"), members.get("branches")
    if (
        members.keys() != _MEMBERS
        or not isinstance(token, str)
        or not isinstance(branches, list)
        or not all(isinstance(each, str) for each in branches)
    ):
        raise BadRequestError(
            f"{origin}: actor '{actor[:80]}' should have a token, or "
            '{"token": "…", "branches": ["agent/name/*"]}'
        )
    return TokenEntry(actor, token, tuple(branches))
