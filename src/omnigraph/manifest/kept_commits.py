"""Kept commits: the states of commits whose branch is gone, while a merge may compare with them.

A state is read from the manifest of the branch it was made on. When that branch is deleted, the
pins of those commits that can become the base of a merge are written to `__commits/<id>.json`
first, and the table forks they name stay. Cleanup removes both once no merge can need them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.manifest.model import GraphCommit, Snapshot, TableEntry
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__commits"


class KeptCommits:
    """The states that outlived their branch."""

    def __init__(self, texts: GraphTexts) -> None:
        self._texts = texts

    def write(self, snapshot: Snapshot) -> None:
        """Keep the state that a commit left. Writing it again changes nothing."""
        value = {
            "commit": asdict(snapshot.head),
            "entries": [asdict(entry) for entry in snapshot.entries.values()],
            "schema_hash": snapshot.schema_hash,
        }
        self._texts.write_text(_path(snapshot.head.commit_id), json.dumps(value, indent=2))

    def read(self, commit_id: str) -> Snapshot | None:
        """The state of a commit, None when it is not kept.

        Raises:
            StorageError: The file is damaged.
        """
        text = self._texts.read_text_if_exists(_path(commit_id))
        if text is None:
            return None
        try:
            return _snapshot(json.loads(text))
        except (ValueError, TypeError, KeyError):
            raise StorageError(
                f"'{_path(commit_id)}' cannot be read — restore it from a backup; without it, "
                f"commit {commit_id} cannot be read or merged with"
            ) from None

    def ids(self) -> list[str]:
        """The commits whose states are kept, oldest first."""
        found = self._texts.list_dir(DIRECTORY)
        return sorted(name.removesuffix(".json") for name in found if name.endswith(".json"))

    def delete(self, commit_id: str) -> None:
        """Let the state of a commit go."""
        self._texts.delete(_path(commit_id))

    def forks(self) -> set[tuple[str, str]]:
        """Path and Lance branch of every table fork that a kept state names."""
        states = (self.read(each) for each in self.ids())
        return {
            (entry.table_path, entry.table_branch)
            for state in states
            if state is not None
            for entry in state.entries.values()
            if entry.table_branch is not None
        }


def _path(commit_id: str) -> str:
    return f"{DIRECTORY}/{commit_id}.json"


def _snapshot(value: dict[str, Any]) -> Snapshot:
    head = GraphCommit(**value["commit"])
    entries = [TableEntry(**each) for each in value["entries"]]
    return Snapshot(
        branch=head.branch,
        manifest_version=head.manifest_version,
        entries={entry.table_key: entry for entry in entries},
        head=head,
        schema_hash=value["schema_hash"],
    )
