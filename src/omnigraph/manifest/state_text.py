"""States as text: snapshots written down, to be read when their manifest cannot tell any more.

    {…, "entries": [pin, …], "states": [{commit, entries, …}, …], "checksum": …}

Sealed by a checksum of the rest. Each state names its pins by their position in `entries`, which
most of them share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.manifest.checks import checks_from_text, checks_to_text
from omnigraph.manifest.line_reader import Shown
from omnigraph.manifest.model import GraphCommit, Snapshot, TableEntry
from omnigraph.manifest.vector_models import models_from_text, models_to_text

UNREADABLE = (ValueError, TypeError, KeyError, IndexError)
"""What reading a damaged text raises."""
_ENTRY_FIELDS = [each.name for each in fields(TableEntry)]


@dataclass(frozen=True, slots=True)
class KeptStates:
    """Some states by their commit, and what else the text says."""

    states: Mapping[str, Snapshot]
    facts: Mapping[str, Any]


def states_to_text(states: Sequence[Snapshot], facts: Mapping[str, Any] | None = None) -> str:
    """Write states down, beside other facts."""
    positions: dict[TableEntry, int] = {}
    for state in states:
        for entry in state.entries.values():
            positions.setdefault(entry, len(positions))
    value = {
        **(facts or {}),
        "entries": [_entry_to_json(entry) for entry in positions],
        "states": [
            {
                "commit": _commit_to_json(state.head),
                "entries": [positions[entry] for entry in state.entries.values()],
                "schema_hash": state.schema_hash,
                "schema_id": state.schema_id,
                "embedding_models": models_to_text(state.vector_models),
                "checks": checks_to_text(state.checks),
            }
            for state in states
        ],
    }
    return json.dumps(value | {"checksum": _checksum(value)})


@lru_cache(maxsize=64)
def text_to_states(text: str) -> KeptStates:
    """Read what was written down. Raises one of UNREADABLE when it is damaged."""
    value: dict[str, Any] = json.loads(text)
    if value.pop("checksum") != _checksum(value):
        raise ValueError("its checksum does not match")
    entries = [TableEntry(**each) for each in value.pop("entries")]
    found = (_snapshot(each, entries) for each in value.pop("states"))
    return KeptStates({state.head.commit_id: state for state in found}, value)


def find_forks(states: Iterable[Shown]) -> set[tuple[str, str]]:
    """Path and Lance branch of every table fork that a state names."""
    return {
        (entry.table_path, entry.table_branch)
        for state in states
        for entry in state.entries.values()
        if entry.table_branch is not None
    }


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _entry_to_json(entry: TableEntry) -> dict[str, Any]:
    # Its fields are plain values, which `asdict` would copy at ten times the cost.
    return {name: getattr(entry, name) for name in _ENTRY_FIELDS}


def _commit_to_json(commit: GraphCommit) -> dict[str, Any]:
    return {name: each for name, each in asdict(commit).items() if name != "is_kept"}


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
        checks=checks_from_text(value.get("checks", "[]")),
    )
