"""Auth: whose token is this? Tokens are kept as SHA-256 digests only."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import field
from hashlib import sha256

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError


class Unauthorized(OmnigraphError):
    """The request does not say who makes it."""

    kind = "unauthorized"
    http_status = 401


@dataclass(frozen=True, slots=True)
class Tokens:
    """The actors that may call, each by the digest of a token. False when there are none."""

    _entries: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> Tokens:
        """Hash (actor, token) pairs.

        Raises:
            BadRequestError: An actor or a token is blank or there twice.
        """
        digests: dict[str, bytes] = {}
        for actor, token in ((actor.strip(), token.strip()) for actor, token in pairs):
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
        return cls(tuple(digests.items()))

    def __len__(self) -> int:
        return len(self._entries)

    def actor_of(self, authorization: str | None) -> str:
        """The actor of an `Authorization` header.

        Raises:
            Unauthorized: There is no bearer token, or an unknown one.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("missing bearer token")
        digest = sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found: str | None = None
        # Every entry is compared, also after a match: the time says nothing about which one it is.
        for actor, known in self._entries:
            if hmac.compare_digest(digest, known):
                found = actor
        if found is None:
            raise Unauthorized("invalid bearer token")
        return found


NO_TOKENS = Tokens()
