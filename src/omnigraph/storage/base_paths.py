"""Base paths: where a fork finds the files it shares with its origins.

Lance writes them into every version of a fork as absolute paths. After a move they lead nowhere,
and in a copy they lead to the original; the correct ones are in the dataset that the fork belongs
to. `relocate_bases` opens a version with the correct paths, whatever its file contains;
`storage/relocation.py` mends the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lance import LanceDataset

from omnigraph.storage.lance_manifest import manifest_bytes, replace_base_paths
from omnigraph.storage.location import TableLocation


class RelocatedDataset(LanceDataset):
    """A version whose base paths differ from those in its file, as do those of its siblings."""


def stale_bases(uri: str, bases: Iterable[tuple[str | None, str]]) -> dict[str, str]:
    """Stored path → right path, of the bases (branch, path) that are not where the dataset is.

    The dataset keeps its own name wherever the graph goes. A path that does not end in it was not
    written for this dataset, and stays.
    """
    parent, _, name = uri.rpartition("/")
    stale = {}
    for branch, path in bases:
        below = f"/{name}" if branch is None else f"/{name}/tree/{branch}"
        if path != parent + below and path.endswith(below):
            stale[path] = parent + below
    return stale


def relocate_bases(
    dataset: LanceDataset, location: TableLocation, options: Mapping[str, Any]
) -> LanceDataset:
    """The same version of a fork with its base paths where the dataset is now."""
    bases = dataset.base_paths().values()
    stale = stale_bases(location.uri, ((base.name, base.path) for base in bases))
    if not stale:
        return dataset
    return RelocatedDataset(
        location.physical_uri,
        version=dataset.version,
        serialized_manifest=replace_base_paths(manifest_bytes(dataset), stale),
        **options,
    )
