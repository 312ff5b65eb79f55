"""Auth: whose token is this? Tokens are kept as SHA-256 digests only."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import field
from hashlib import sha256

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.server.branch_bound import BranchBound


class Unauthorized(OmnigraphError):
    """The request does not say who makes it."""

    kind = "unauthorized"
    http_status = 401


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token, who holds it, and the branches it may write to if that is bound."""

    actor: str
    token: str = field(repr=False)
    branches: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who sent a token, and what that token may write to; None leaves it to the policy."""

    actor: str
    bound: BranchBound | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The actors that may call, each by the digest of a token. False when there are none."""

    _entries: tuple[tuple[Holder, bytes], ...] = field(default=(), repr=False)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Tokens:
        """Hash (actor, token) pairs; see `from_entries`."""
        return cls.from_entries(TokenEntry(actor, token) for actor, token in pairs)

    @classmethod
    def from_entries(cls, entries: Iterable[TokenEntry]) -> Tokens:
        """Hash the tokens of entries.

        Raises:
            BadRequestError: An actor or a token is blank or there twice, or branches are wrong.
        """
        digests: dict[str, bytes] = {}
        holders: list[Holder] = []
        for entry in entries:
            actor, token = entry.actor.strip(), entry.token.strip()
            if not actor:
                raise BadRequestError("a bearer token has a blank actor id — name who holds it")
            if not token:
                raise BadRequestError(f"the bearer token of actor '{actor}' is blank")
            if actor in digests:
                raise BadRequestError(f"actor '{actor}' has two bearer tokens — give one")
            digest = sha256(token.encode()).digest()
            if digest in digests.values():
                raise BadRequestError(f"actor '{actor}' has the same bearer token as another actor")
            digests[actor] = digest
            holders.append(Holder(actor, _parse_bound(entry)))
        return cls(tuple(zip(holders, digests.values(), strict=True)))

    def __len__(self) -> int:
        return len(self._entries)

    def holder_of(self, authorization: str | None) -> Holder:
        """The holder of the token in an `Authorization` header.

        Raises:
            Unauthorized: There is no bearer token, or an unknown one.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("missing bearer token")
        digest = sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found: Holder | None = None
        # Every entry is compared, also after a match: the time says nothing about which one it is.
        for holder, known in self._entries:
            if hmac.compare_digest(digest, known):
                found = holder
        if found is None:
            raise Unauthorized("invalid bearer token")
        return found


def _parse_bound(entry: TokenEntry) -> BranchBound | None:
    if entry.branches is None:
        return None
    try:
        return BranchBound.parse(entry.branches)
    except BadRequestError as error:
        raise BadRequestError(f"the token of actor '{entry.actor.strip()}': {error}") from None


NO_TOKENS = Tokens()
