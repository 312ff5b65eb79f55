"""Dataset files: which files of a dataset some versions of its lineages consist of.

A lineage is taken up to one version: later ones belong to writes that are not published, or came
after. Data, deletion and index files have names that are used once, and appear whole under them, so
all that a lineage has are taken; those that no version names yet do no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.errors import SourceChanged, StorageError
from omnigraph.storage.checksum_records import DIRECTORY, decode_records
from omnigraph.storage.checksums import Checksum
from omnigraph.storage.leftovers import is_temporary
from omnigraph.storage.listing import Files, Listed
from omnigraph.storage.location import REFS, VERSIONS, parse_version, ref_file

Lineages: TypeAlias = Mapping[str | None, int]
"""Lance branch, None for the main lineage → the last version that is taken."""

_INSIDE = re.compile(
    r"(?:tree/(?P<branch>.+?)/)?(?P<kind>_versions|_transactions|_deletions|_indices|data)/.+"
)


def _place(relative: str) -> re.Match[str] | None:
    """The lineage and the kind of a file; None of one that is not whole yet, and of all others."""
    return None if is_temporary(relative) else _INSIDE.fullmatch(relative)


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """One file of a dataset. `checksum` is what its writer recorded, None when it did not."""

    dataset: str
    relative: str
    listed: Listed
    checksum: Checksum | None = None

    @property
    def path(self) -> str:
        """Where it lies below the root of the graph."""
        return f"{self.dataset}/{self.relative}"

    @property
    def is_lasting(self) -> bool:
        """Whether its name is used once: then a file of that name and size is this one."""
        found = _place(self.relative)
        return found is not None and found["kind"] != VERSIONS


def is_recorded(relative: str) -> bool:
    """Whether a file below a dataset is one whose checksum is recorded when it is written."""
    found = _place(relative)
    return found is not None and not relative.endswith(".json")


def list_files(root: Files, dataset: str, lineages: Lineages) -> list[DatasetFile]:
    """The files of these lineages and of those they share files with, the refs last."""
    below = Files(f"{root.uri}/{dataset}", root.storage_options)
    listed = below.list()
    wanted = _with_origins(below, listed, lineages)
    recorded = read_records(below, listed)
    return [
        DatasetFile(dataset, path, listed[path], recorded.get(path))
        for path in sorted(_select(listed, wanted), key=lambda each: (each.startswith(REFS), each))
    ]


def _select(listed: Mapping[str, Listed], lineages: Lineages) -> Iterator[str]:
    refs = {ref_file(each) for each in lineages if each is not None}
    for path in listed:
        found = _place(path)
        if found is None or found["branch"] not in lineages:
            if path in refs:
                yield path
            continue
        version = parse_version(path) if found["kind"] == VERSIONS else 0
        if version is not None and version <= lineages[found["branch"]]:
            yield path


def _with_origins(
    files: Files, listed: Mapping[str, Listed], lineages: Lineages
) -> dict[str | None, int]:
    """Add what the forks among the lineages came from, up to where they left it."""
    wanted = dict(lineages)
    pending = [each for each in lineages if each is not None]
    while pending:
        fork = pending.pop()
        ref = ref_file(fork)
        if ref not in listed:
            raise SourceChanged(f"{files.uri}/{ref}")
        try:
            facts = json.loads(files.read(ref))
            origin, version = facts["parentBranch"], int(facts["parentVersion"])
        except (ValueError, TypeError, KeyError):
            raise StorageError(f"'{files.uri}/{ref}' is damaged: it is not a branch") from None
        if version > wanted.get(origin, 0):
            wanted[origin] = version
            if origin is not None:
                pending.append(origin)
    wanted.setdefault(None, 0)
    return wanted


def read_records(files: Files, listed: Iterable[str] | None = None) -> dict[str, Checksum]:
    """What was recorded of the files of a dataset, on any lineage, when they were written."""
    found: dict[str, Checksum] = {}
    # The main lineage first: a copy may say there what the ref of a fork was, of one made again.
    for path in sorted(files.list() if listed is None else listed):
        if path.endswith(".log") and f"{DIRECTORY}/" in path:
            for record in decode_records(files.read(path)).records:
                found |= record.files
    return found
