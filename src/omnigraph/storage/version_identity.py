"""Version identity: whether a version is the one that a transaction made, told from its file alone.

Numbers of versions come back: on a lineage that was removed and made again, or below later versions
of one that was received from other stores. The transaction does not.
"""

from __future__ import annotations

from omnigraph.storage.lance_manifest import find_transaction_uuid, manifest_in
from omnigraph.storage.listing import Files
from omnigraph.storage.location import TableLocation, version_file


def read_version(files: Files, location: TableLocation, version: int) -> bytes | None:
    """A version as it is written down below the dataset, None when there is none."""
    try:
        return files.read(f"{location.prefix}{version_file(version)}")
    except FileNotFoundError:
        return None


def is_version_of(
    files: Files, location: TableLocation, version: int, transaction: str | None
) -> bool:
    """Whether a version is there, and made by this transaction where both are known."""
    data = read_version(files, location, version)
    if data is None:
        return False
    found = find_transaction_uuid(manifest_in(data))
    return found is None or transaction is None or found == transaction
