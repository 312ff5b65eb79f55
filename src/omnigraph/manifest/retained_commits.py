"""Retained commits: the states of commits whose branch is gone and that another branch comes from.

A state is read from the manifest of the branch it was made on. Before that branch is deleted, the
pins of its commits that outlive it are written down, and the table forks they name stay, so that
such a commit is read and merged with as before. Cleanup lets go of them.

    __commits/{first id}-{last id}.json   {"entries": [pin, …], "states": [{commit, entries}, …]}

One file per deleted branch, sealed by a checksum of the rest. Ids are in order of time, so the name
of a file tells whether a commit can be in it; each state names its pins by their position in
`entries`, which most of them share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.manifest.model import GraphCommit, Snapshot, TableEntry
from omnigraph.manifest.vector_models import models_from_text, models_to_text
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__commits"


class RetainedCommits:
    """The states that outlived their branch."""

    def __init__(self, texts: GraphTexts) -> None:
        self.texts = texts

    def write(self, states: Sequence[Snapshot]) -> str | None:
        """Keep what the commits of one branch have left; returns the file, None without any."""
        if not states:
            return None
        ids = sorted(each.head.commit_id for each in states)
        name = f"{ids[0]}-{ids[-1]}.json"
        self.texts.write_text(f"{DIRECTORY}/{name}", _to_json(states))
        return name

    def read(self, commit_id: str) -> Snapshot | None:
        """The state of a commit, None when it is not retained.

        Raises:
            StorageError: The file is damaged.
        """
        for name in self._names():
            first, _, last = name.removesuffix(".json").partition("-")
            if first <= commit_id <= last:
                found = self._states_in(name).get(commit_id)
                if found is not None:
                    return found
        return None

    def retain(self, commit_ids: Collection[str]) -> None:
        """Let go of all states but these."""
        for name in self._names():
            states = self._states_in(name)
            retained = [state for each, state in states.items() if each in commit_ids]
            if len(retained) < len(states) and self.write(retained) != name:
                self.texts.delete(f"{DIRECTORY}/{name}")

    def forks(self) -> set[tuple[str, str]]:
        """Path and Lance branch of every table fork that a retained state names."""
        return find_forks(self)

    def __iter__(self) -> Iterator[Snapshot]:
        for name in self._names():
            yield from self._states_in(name).values()

    def _names(self) -> list[str]:
        return sorted(name for name in self.texts.list_dir(DIRECTORY) if name.endswith(".json"))

    def _states_in(self, name: str) -> dict[str, Snapshot]:
        try:
            text = self.texts.read_text_if_exists(f"{DIRECTORY}/{name}")
            return {} if text is None else _from_json(text)
        except (ValueError, TypeError, KeyError, IndexError):
            raise StorageError(
                f"'{DIRECTORY}/{name}' cannot be read — restore it from a backup; without it, "
                "commits of a deleted branch cannot be read or merged with"
            ) from None

    def find_damaged(self) -> dict[str, str]:
        """File → what is wrong with it."""
        found = {}
        for name in self._names():
            try:
                self._states_in(name)
            except OmnigraphError as error:
                found[f"{DIRECTORY}/{name}"] = f"is damaged: {error.message}"
        return found


def find_forks(states: Iterable[Snapshot]) -> set[tuple[str, str]]:
    """Path and Lance branch of every table fork that a state names."""
    return {
        (entry.table_path, entry.table_branch)
        for state in states
        for entry in state.entries.values()
        if entry.table_branch is not None
    }


def _to_json(states: Sequence[Snapshot]) -> str:
    positions: dict[TableEntry, int] = {}
    for state in states:
        for entry in state.entries.values():
            positions.setdefault(entry, len(positions))
    value = {
        "entries": [asdict(entry) for entry in positions],
        "states": [
            {
                "commit": asdict(state.head),
                "entries": [positions[entry] for entry in state.entries.values()],
                "schema_hash": state.schema_hash,
                "schema_id": state.schema_id,
                "embedding_models": models_to_text(state.vector_models),
            }
            for state in states
        ],
    }
    return json.dumps(value | {"checksum": _checksum(value)})


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


@lru_cache(maxsize=64)
def _from_json(text: str) -> dict[str, Snapshot]:
    value: dict[str, Any] = json.loads(text)
    if value.pop("checksum") != _checksum(value):
        raise ValueError("its checksum does not match")
    entries = [TableEntry(**each) for each in value["entries"]]
    found = (_snapshot(each, entries) for each in value["states"])
    return {state.head.commit_id: state for state in found}


def _snapshot(value: dict[str, Any], entries: Sequence[TableEntry]) -> Snapshot:
    head = GraphCommit(**value["commit"])
    pins = [entries[position] for position in value["entries"]]
    return Snapshot(
        branch=head.branch,
        manifest_version=head.manifest_version,
        entries={entry.table_key: entry for entry in pins},
        head=head,
        schema_hash=value["schema_hash"],
        schema_id=value["schema_id"],
        vector_models=models_from_text(value.get("embedding_models", "{}")),
    )
