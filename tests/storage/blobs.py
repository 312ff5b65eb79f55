"""Blobs as tests compare them: whole."""

from __future__ import annotations

from omnigraph.storage.blobs import StoredBlob


def read_whole(blob: StoredBlob | None) -> bytes | None:
    return None if blob is None else blob.readall()
