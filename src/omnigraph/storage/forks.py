"""Forks: the Lance branches of one dataset, under `<dataset>/tree/<branch>`.

A fork copies nothing and continues the version numbers of where it came from. Creating one over
an existing ref, or over files that an unfinished fork left without a ref, fails in Lance with a
misleading error; here both are refused up front, each with its own error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

from omnigraph.dataclass import dataclass
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
from omnigraph.storage.durability import Durability, sync_tree, with_parents
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import transaction_file
from omnigraph.storage.location import REFS, VERSIONS, TableLocation, ref_file
from omnigraph.storage.recorder import Recorder, wait_for_records
from omnigraph.storage.text import TextStore
from omnigraph.storage.torn import is_torn_ref

_TAGS = "_refs/tags"


@dataclass(frozen=True, slots=True)
class Forks:
    """Creates, lists and deletes the Lance branches of datasets."""

    opener: Opener
    texts: TextStore
    durability: Durability
    recorder: Recorder
    on_delete: Callable[[], None] = lambda: None

    def create(self, source: TableLocation, version: int, branch: str) -> TableLocation:
        """Fork `branch` from an exact version. The caller holds the table's writer queue."""
        fork = TableLocation(source.uri, branch)
        dataset = self.opener.at(source, version)
        # Lance would report a version that is not there, or an internal error.
        self._refuse_taken(fork)
        try:
            with lance_errors("forking a table", source):
                made = dataset.create_branch(branch, (source.branch, version))
        except (StorageFull, StoragePermissionDenied):
            raise  # the files that are there now are our own
        except OmnigraphError:
            self._refuse_taken(fork)
            raise
        if self.durability == "power" and source.is_local:
            with lance_errors("flushing a fork", fork):
                # `a/b` lies below directories that may be new as well; that of `b` is synced.
                above = with_parents([fork.physical_uri], source.uri)[2:]
                ref = with_parents([f"{source.uri}/{ref_file(branch)}"], source.uri)
                # Both have their names already: a cut may leave the ref alone in any order.
                sync_tree(fork.physical_uri, [*above, *ref])
        self.recorder.record_fork(fork, version, transaction_file(made))
        record(forks=1)
        return fork

    def _refuse_taken(self, fork: TableLocation) -> None:
        assert fork.branch is not None
        has_ref = self.texts.exists(f"{fork.uri}/{ref_file(fork.branch)}")
        if has_ref or self.texts.exists(f"{fork.physical_uri}/{VERSIONS}"):
            raise ForkExists(fork.uri, fork.branch, has_ref=has_ref)

    def names(self, uri: str) -> set[str]:
        """The names of the live Lance branches: one listing, however many there are."""
        found = [each.rpartition("/")[2] for each in self.texts.list_dir(f"{uri}/{REFS}")]
        # Lance writes a ref as `<name>.json.tmp.<hex>` first.
        return {unquote(name.removesuffix(".json")) for name in found if name.endswith(".json")}

    def find(self, uri: str, branch: str) -> BranchInfo | None:
        """One fork, or None; reads its ref and no other. A torn ref is none.

        Lance lists branches by reading the ref of each, so a hundred siblings would
        cost every read of one of them.
        """
        ref = f"{uri}/{ref_file(branch)}"
        text = self.texts.read_text_if_exists(ref)
        if text is None or is_torn_ref(text.encode()):
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
        """The live Lance branches of a dataset by name; the main lineage is not one.

        One whose ref is torn is among them, without an identifier, so that it can be deleted.
        """
        found: dict[str, BranchInfo] = {}
        for name in self.names(uri):
            info = self.find(uri, name)
            if info is not None:
                found[name] = info
            elif self.texts.exists(f"{uri}/{ref_file(name)}"):
                found[name] = BranchInfo(name, None, 0, "", 0)
        return found

    def delete(self, uri: str, branch: str) -> None:
        """Delete a fork and its files. The caller holds the table's writer queue.

        The ref goes first, for good, and only then the files: a power cut must not leave a ref
        whose files are gone. Lance does both in one call and syncs neither.

        Raises:
            BranchNotFound: There is no such fork.
            ForkInUse: Another fork came from it, or a tag stands on it.
        """
        if not self.texts.exists(f"{uri}/{ref_file(branch)}"):
            raise BranchNotFound(branch)
        if branch not in self.delete_unused(uri, [branch]):
            raise ForkInUse(uri, branch)

    def delete_unused(self, uri: str, branches: Sequence[str]) -> Sequence[str]:
        """Delete forks, given children first, that no fork and no tag stands on; returns which.

        Reads every ref once, however many forks go. The caller holds the queues of all of them.
        """
        forks = dict(self.list(uri))
        tags = map(self.texts.read_text_if_exists, self.texts.list_dir(f"{uri}/{_TAGS}"))
        tagged = {json.loads(tag).get("branch") for tag in tags if tag}
        deleted = []
        for branch in branches:
            if branch in tagged or _has_children(forks, branch):
                continue
            wait_for_records()  # none may be written where the next fork of this name will be
            self.texts.delete(f"{uri}/{ref_file(branch)}")
            forks.pop(branch, None)
            self._delete_files(uri, branch)
            self.on_delete()
            deleted.append(branch)
        return deleted

    def _delete_files(self, uri: str, branch: str) -> None:
        """Remove the files of a fork, but not those of a fork `branch/…`, which lie among them."""
        top = f"{uri}/tree/{branch}"
        others = [name for name in self.names(uri) if name.startswith(f"{branch}/")]
        if not others:
            self.texts.delete_prefix(top)
            return
        kept = {name.removeprefix(f"{branch}/").partition("/")[0] for name in others}
        for folder in self.texts.list_folders(top):
            if folder not in kept:
                self.texts.delete_prefix(f"{top}/{folder}")

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
        self.on_delete()


def _has_children(forks: Mapping[str, BranchInfo], branch: str) -> bool:
    fork = forks.get(branch)
    if fork is None or not fork.identifier:
        return False  # its ref is torn
    return any(each.identifier.startswith(f"{fork.identifier}/") for each in forks.values())
