"""Garbage: versions of a dataset that are needed no more, and files that no version names.

The caller decides which versions are needed. Lance itself also keeps the latest version, versions
that a fork came from, and files younger than a week that no version names, since a writer may be
about to commit them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.storage.datasets import Opener
from omnigraph.storage.fold_records import folding_records
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import TableLocation
from omnigraph.storage.relocation import mend_forks

_NO_VERSION = timedelta(days=36_500)
"""Older than any version: cleaning up to it removes only files that no version names."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or in a dry run would be."""

    versions: int = 0
    bytes: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.versions + other.versions, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class Garbage:
    """Lists and removes versions of datasets. The caller holds the dataset's writer queue."""

    storage_options: Mapping[str, str]

    def versions(self, location: TableLocation) -> list[int]:
        """Every version that can be read, oldest first."""
        dataset = Opener(self.storage_options).head(location)
        with lance_errors("listing versions", location):
            return sorted(int(each["version"]) for each in dataset.version_refs())

    def creation_times(self, location: TableLocation) -> dict[int, float]:
        """When each version was made, in seconds since the epoch. Reads every version."""
        dataset = Opener(self.storage_options).head(location)
        with lance_errors("listing versions", location):
            found = {int(each["version"]): each["timestamp"] for each in dataset.versions()}
        # Lance gives local time, which is how a datetime without a zone is read.
        return {
            version: made.timestamp()
            for version, made in found.items()
            if isinstance(made, datetime)
        }

    def list_tagged(self, location: TableLocation) -> set[int]:
        """Versions that have a tag of Lance."""
        dataset = Opener(self.storage_options).head(location)
        with lance_errors("listing tags", location):
            return {int(each["version"]) for each in dataset.tags.list().values()}

    def remove(
        self, location: TableLocation, versions: Collection[int], *, is_dry_run: bool = False
    ) -> Removed:
        """Remove these versions, the files that only they name, and forgotten files."""
        if not is_dry_run:
            # Lance would take files of this lineage for forgotten when a fork names them by
            # another path than this one.
            mend_forks(location.uri, self.storage_options)
        dataset = Opener(self.storage_options).head(location)
        policy: dict[str, Any] = (
            {"versions": sorted(versions)} if versions else {"older_than": _NO_VERSION}
        )
        with lance_errors("removing old versions", location):
            if is_dry_run:
                stats = dataset.explain_cleanup_old_versions(**policy).stats
            else:
                # Inline commit: removing versions makes none, so no HEAD moves.
                with folding_records(location, self.storage_options):
                    stats = dataset.cleanup_old_versions(**policy)
        return Removed(int(stats.old_versions), int(stats.bytes_removed))
