"""Blobs: the call of a graph that writes the bytes of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from omnigraph.commit_note import read_note
from omnigraph.errors import BadRequestError
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.graph.results import MutationResult
    from omnigraph.graph.session import Session


class BlobCalls:
    """How `Graph` writes Blobs; a part of that class. `read_blob` reads them."""

    _session: Session

    def write_blob(
        self,
        kind: str,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        property: str,  # noqa: A002 — the API names it so
        source: bytes | Path | IO[bytes],
        *,
        branch: str = MAIN,
        if_match: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MutationResult:
        """Make bytes, a file or what a stream holds the Blob of a node or edge, as one commit.

        Memory does not follow the size. With `if_match`, only while the Blob has that `etag`.

        Raises:
            BadRequestError: There is no such kind, type or property, or the property is no Blob.
            EntityNotFound: There is no such node or edge.
            EtagMismatch: The Blob has another ETag, or none. Nothing was written.
        """
        from omnigraph.graph.blob_writer import BlobCell, write_blob

        if not isinstance(source, bytes | Path) and not hasattr(source, "read"):
            found = source.__class__.__name__
            raise BadRequestError(f"source is of type {found}, expected bytes, a path or a stream")
        who = self._session.permit(Action.CHANGE, actor=actor, branch=branch)
        cell = BlobCell(kind, type, id, property, if_match)
        note = read_note(message, metadata)
        return write_blob(self._session, cell, source, canonical_branch(branch), who, note)
