"""Forks: native Lance branches of one dataset, under `<dataset>/tree/<branch>`.

A fork copies nothing and continues the version numbers of where it came from. Creating one over
an existing ref, or over files that an unfinished fork left without a ref, fails in Lance with an
misleading error; here both are refused up front and told apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from omnigraph.errors import (
    BranchNotFound,
    ForkExists,
    ForkInUse,
    InvariantViolated,
    OmnigraphError,
    StorageError,
    StorageFull,
    StoragePermissionDenied,
)
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import Opener
from omnigraph.storage.durability import Durability, sync_paths, sync_tree, with_parents
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.lance_errors import is_missing_ref, is_ref_in_use, lance_errors
from omnigraph.storage.location import TableLocation
from omnigraph.storage.text import TextStore

_REFS = "_refs/branches"


@dataclass(frozen=True, slots=True)
class Forks:
    """Creates, lists and deletes the native branches of datasets."""

    opener: Opener
    texts: TextStore
    durability: Durability

    def create(self, source: TableLocation, version: int, branch: str) -> TableLocation:
        """Fork `branch` from an exact version. The caller holds the table's writer queue."""
        fork = TableLocation(source.uri, branch)
        dataset = self.opener.at(source, version)
        # Lance would report a version that is not there, or an internal error.
        self._refuse_taken(fork)
        try:
            with lance_errors("forking a table", source):
                dataset.create_branch(branch, (source.branch, version))
        except (StorageFull, StoragePermissionDenied):
            raise  # the files that are there now are our own
        except OmnigraphError:
            self._refuse_taken(fork)
            raise
        if self.durability == "power" and "://" not in source.uri:
            with lance_errors("flushing a fork", fork):
                sync_tree(fork.physical_uri)
                sync_paths(with_parents([_ref(source.uri, branch)], source.uri))
        record(forks=1)
        return fork

    def _refuse_taken(self, fork: TableLocation) -> None:
        assert fork.branch is not None
        has_ref = self.find(fork.uri, fork.branch) is not None
        if has_ref or self.texts.exists(f"{fork.physical_uri}/_versions"):
            raise ForkExists(fork.uri, fork.branch, has_ref=has_ref)

    def names(self, uri: str) -> set[str]:
        """The names of the live native branches: one listing, however many there are."""
        found = self.texts.list_dir(f"{uri}/{_REFS}")
        refs = (each.rpartition("/")[2] for each in found)
        # A writer that was killed leaves `<branch>.json.tmp.<hex>`, which Lance ignores as well.
        return {unquote(ref.removesuffix(".json")) for ref in refs if ref.endswith(".json")}

    def find(self, uri: str, branch: str) -> BranchInfo | None:
        """One native branch, or None; reads its ref and no other.

        Lance lists branches by reading the ref of each, which is what a hundred siblings would
        cost every look at one of them.
        """
        ref = _ref(uri, branch)
        text = self.texts.read_text_if_exists(ref)
        if text is None:
            return None
        try:
            facts = json.loads(text)
            mapping = facts["identifier"]["version_mapping"]
            identifier = "/".join(f"{at}:{token}" for at, token in mapping)
            return BranchInfo(
                branch,
                facts["parentBranch"],
                facts["parentVersion"],
                identifier,
                facts["createAt"],
            )
        except (ValueError, TypeError, KeyError):
            raise StorageError(f"the ref '{ref}' is damaged: it is not a branch of Lance") from None

    def list(self, uri: str) -> Mapping[str, BranchInfo]:
        """The live native branches of a dataset by name; the main lineage is not one."""
        found = {name: self.find(uri, name) for name in self.names(uri)}
        return {name: info for name, info in found.items() if info is not None}

    def delete(self, uri: str, branch: str) -> None:
        """Delete a fork and its files. The caller holds the table's writer queue."""
        dataset = self.opener.head(TableLocation(uri))
        try:
            with lance_errors("deleting a fork", uri):
                dataset.branches.delete(branch)
        except Exception as error:
            cause = error.__cause__
            if cause is not None and is_missing_ref(cause):
                raise BranchNotFound(branch) from error
            if cause is not None and is_ref_in_use(cause):
                raise ForkInUse(uri, branch) from error
            raise

    def delete_tree(self, uri: str, branch: str) -> None:
        """Remove the files of an unfinished fork: a tree that no ref names."""
        live = self.names(uri)
        if branch in live:
            raise InvariantViolated(
                f"fork '{branch}' of '{uri}' is live — delete the branch, not its files"
            )
        below = [name for name in live if name.startswith(f"{branch}/")]
        if below:
            # `a/b` lies inside the directory of `a`.
            raise ForkInUse(uri, branch)
        self.texts.delete_prefix(f"{uri}/tree/{branch}")


def _ref(uri: str, branch: str) -> str:
    """Where Lance keeps what it knows of a branch."""
    return f"{uri}/{_REFS}/{quote(branch, safe='')}.json"
