"""Tokens of the change feed: opaque texts that say where a reader is, and of what.

A cursor names the commit up to which everything was read; a page token also names where in the
walk a page ended. Both are bound to the branch, to this incarnation of it, and to the filter, so a
token of something else is rejected rather than read as if it fitted. They hold no secret: a caller
who makes one up gets what the policy lets them read, or a rejection.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from omnigraph.branch.diff import ChangeFilter
from omnigraph.dataclass import dataclass
from omnigraph.errors import ChangeCursorRejected

TokenKind: TypeAlias = Literal["cursor", "page"]
TOKEN_CHARACTERS_MAX = 8_192


@dataclass(frozen=True, slots=True)
class Scope:
    """What a feed is of."""

    branch: str
    branch_id: str | None
    wanted: ChangeFilter

    def to_json(self) -> dict[str, Any]:
        filters = self.wanted.kinds, self.wanted.types, self.wanted.ops
        return {
            "branch": self.branch,
            "incarnation": self.branch_id,
            "wanted": [None if each is None else sorted(set(each)) for each in filters],
        }


def write_token(kind: TokenKind, scope: Scope, place: Mapping[str, str]) -> str:
    """A token that `read_token` takes for the same scope."""
    value = {"kind": kind, **scope.to_json(), "place": dict(place)}
    data = json.dumps(value, separators=(",", ":")).encode()
    checked = zlib.crc32(data).to_bytes(4, "big") + data
    return base64.urlsafe_b64encode(checked).rstrip(b"=").decode()


def read_token(text: str, kind: TokenKind, scope: Scope) -> Mapping[str, str | None]:
    """The place that a token names.

    Raises:
        ChangeCursorRejected: It is none, is damaged, or is of another feed.
    """
    value = _decode(text)
    if value.get("kind") != kind:
        raise ChangeCursorRejected(f"it is no {kind} token of a change feed")
    for name, expected in scope.to_json().items():
        if value.get(name) != expected:
            raise ChangeCursorRejected(_MISMATCHES[name].format(branch=scope.branch))
    place = value.get("place")
    if not isinstance(place, dict) or not all(
        each is None or isinstance(each, str) for each in place.values()
    ):
        raise ChangeCursorRejected("it is damaged")
    return place


_MISMATCHES = {
    "branch": "it is of another branch than '{branch}'",
    "incarnation": "branch '{branch}' was deleted and made again since — start anew",
    "wanted": "it was made with other filters — repeat those, or start anew",
}


def _decode(text: str) -> dict[str, Any]:
    if len(text) > TOKEN_CHARACTERS_MAX:
        raise ChangeCursorRejected("it is too long to be one")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        checksum, data = data[:4], data[4:]
        if checksum != zlib.crc32(data).to_bytes(4, "big"):
            raise ValueError
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError
    except (ValueError, binascii.Error):
        raise ChangeCursorRejected("it is damaged, or no token of a change feed") from None
    return value
