"""Version files: which files one version of a table needs, and which of them are not there.

A fork shares files with its origin: such a file names its base by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance import LanceDataset

from omnigraph.dataclass import dataclass
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import transaction_file
from omnigraph.storage.listing import Files
from omnigraph.storage.location import version_file


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file, or index directory, that a version names. `size` is None when it does not say.

    `rows` and `fragment_id` are those of a data file or a deletion file.
    """

    uri: str
    kind: str
    size: int | None = None
    rows: int | None = None
    fragment_id: int | None = None


def list_needed_files(handle: TableHandle) -> list[VersionFile]:
    """Every file that a read of this version may touch, and that of its transaction."""
    top = handle.location.physical_uri
    files = [VersionFile(f"{top}/{version_file(handle.version)}", "version")]
    transaction = transaction_file(handle._dataset)
    if transaction is not None:
        files.append(VersionFile(f"{top}/_transactions/{transaction}", "transaction"))
    return files + _content_files(handle)


def find_damaged_files(handle: TableHandle, options: Mapping[str, str]) -> dict[str, str]:
    """URI → what is wrong with it, of every file this version needs. Reads no content."""
    found = {file.uri: _find_problem(file, options) for file in _content_files(handle)}
    return {uri: problem for uri, problem in found.items() if problem is not None}


def _content_files(handle: TableHandle) -> list[VersionFile]:
    """Every data file, deletion file and index of the version."""
    with lance_errors("listing the files of a table", handle.location):
        return list(_walk_content(handle._dataset, handle.location.physical_uri))


def _find_problem(file: VersionFile, options: Mapping[str, str]) -> str | None:
    """What is wrong with a file, in words; None when it is there and whole."""
    top, _, name = file.uri.rpartition("/")
    found = Files(top, options).find(name)
    if not found:
        return "is missing"
    size = sum(each.size for each in found.values())
    if file.size is not None and size != file.size:
        files = f" in {len(found)} files" if file.kind == "index" else ""
        return f"has {size} bytes{files} instead of {file.size}"
    return None


def _walk_content(dataset: LanceDataset, own: str) -> Iterator[VersionFile]:
    bases = {base.id: base.path for base in dataset.base_paths().values()}

    def find_top(base_id: int | None) -> str:
        # A version that names a base it does not have is damaged: its files are nowhere.
        return own if base_id is None else bases.get(base_id, f"{own}/base-{base_id}")

    for fragment in dataset.get_fragments():
        number, metadata = fragment.fragment_id, fragment.metadata
        for file in fragment.data_files():
            uri = f"{find_top(file.base_id)}/data/{file.path}"
            yield VersionFile(uri, "data", file.file_size_bytes, metadata.num_rows, number)
        deleted = metadata.deletion_file
        if deleted is not None:
            uri = f"{find_top(deleted.base_id)}/{deleted.path(number)}"
            yield VersionFile(uri, "deletion", None, deleted.num_deleted_rows, number)
    for index in dataset.describe_indices():
        for segment in index.segments:
            uri = f"{find_top(segment.base_id)}/_indices/{segment.uuid}"
            yield VersionFile(uri, "index", getattr(segment, "size_bytes", None) or None)
