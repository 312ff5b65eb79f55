"""Location: where a graph and each of its tables live, in one canonical spelling.

A plain path and its `file://` URI denote the same graph, so both become the same plain absolute
path. An `s3://` URI keeps its form. Only `resolve_root`, `is_same_place` and
`is_below_a_file` look at the disk.
Where Lance keeps the files of versions and forks is written here as well.
"""

from __future__ import annotations

import os
import os.path
from typing import Literal
from urllib.parse import quote, unquote

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError

VERSIONS = "_versions"
REFS = "_refs/branches"
_VERSION_MAX = 2**64 - 1
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK_64 = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class TableLocation:
    """One lineage of one table: the dataset, and the fork of it when `branch` is given."""

    uri: str
    branch: str | None = None

    @property
    def physical_uri(self) -> str:
        """Where the lineage is opened. Never open a fork through the dataset's own URI."""
        return self.uri if self.branch is None else f"{self.uri}/tree/{self.branch}"

    @property
    def prefix(self) -> str:
        """The path of the lineage below its dataset: empty for the main one."""
        return "" if self.branch is None else f"tree/{self.branch}/"

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def is_below_a_file(self) -> bool:
        """Whether something on the way to it is a file, so that there cannot be a table."""
        try:
            os.stat(self.uri)
        except NotADirectoryError:
            return self.is_local
        except OSError:
            return False
        return False

    def __str__(self) -> str:
        return self.physical_uri


@dataclass(frozen=True, slots=True)
class GraphRoot:
    """The canonical root of one graph. Two spellings of one place are equal."""

    uri: str

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    @property
    def local_path(self) -> str:
        """The directory on this machine; only for a local root."""
        assert self.is_local, f"{self.uri} is not a local path"
        return self.uri

    def child(self, relative: str) -> str:
        """The URI of an object below the root."""
        assert relative, "a child needs a name"
        assert not relative.startswith("/"), relative
        assert ".." not in relative.split("/"), relative
        return f"{self.uri.rstrip('/')}/{relative}"

    def table(self, relative: str, branch: str | None = None) -> TableLocation:
        """The location of a table below the root, on the lineage of `branch`."""
        return TableLocation(self.child(relative), branch)

    def __str__(self) -> str:
        return self.uri


def graph_root(uri: str) -> GraphRoot:
    """Canonicalise a path, `file://` or `s3://` URI without touching the store."""
    if not uri or "\0" in uri:
        raise BadRequestError("a graph location is empty or has a NUL — give a path or s3:// URI")
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return GraphRoot(os.path.abspath(uri))
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise BadRequestError(f"'{uri}' names another machine — use file:///absolute/path")
        return GraphRoot(os.path.abspath("/" + unquote(path)))
    if scheme == "s3":
        return GraphRoot(_canonical_s3(uri, rest))
    raise BadRequestError(f"'{uri}' has an unknown scheme — use a path, file:// or s3://")


def resolve_root(uri: str) -> GraphRoot:
    """The root without symbolic links: however a graph is spelled, it has one root.

    Lance compares the paths in its files letter by letter. A graph that were written under two
    spellings would lose, in a cleanup under the one, what forks made under the other need.
    """
    root = graph_root(uri)
    return GraphRoot(os.path.realpath(root.uri)) if root.is_local else root


def is_same_place(uri: str, other: str) -> bool:
    """Whether two canonical URIs denote one place, however the local disk lets them be spelled."""
    if uri == other:
        return True
    try:
        return "://" not in uri + other and os.path.samefile(uri, other)
    except OSError:
        return False


def _canonical_s3(uri: str, rest: str) -> str:
    bucket, *segments = rest.split("/")
    kept = [segment for segment in segments if segment]
    if not bucket or any(segment in (".", "..") for segment in kept):
        raise BadRequestError(f"'{uri}' is not a bucket and prefix — use s3://bucket/prefix")
    return "s3://" + "/".join([bucket, *kept])


def table_path(kind: Literal["node", "edge"], type_name: str) -> str:
    """The path of a type's table below the graph root."""
    return f"{kind}s/{_fnv1a_64(type_name.encode()):016x}"


def version_file(version: int) -> str:
    """The file of a version, below its lineage."""
    return f"{VERSIONS}/{_VERSION_MAX - version:020d}.manifest"


def parse_version(file: str) -> int | None:
    """The version that a file below `_versions` holds; None for any other file."""
    name = file.rpartition("/")[2].removesuffix(".manifest")
    return _VERSION_MAX - int(name) if name.isdigit() and file.endswith(".manifest") else None


def ref_file(branch: str) -> str:
    """The file by which Lance knows a fork, below the dataset."""
    return f"{REFS}/{quote(branch, safe='')}.json"


def _fnv1a_64(data: bytes) -> int:
    state = _FNV_OFFSET
    for byte in data:
        state = ((state ^ byte) * _FNV_PRIME) & _MASK_64
    return state
