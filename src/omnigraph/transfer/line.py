"""Line: what a branch shows once it has received commits, as one request to the publisher.

The tables of the received head are shown under its keys, and those that it does not have are
hidden. Commits of the line that show the same tables in the same schema with other versions say so
themselves, as those of a group do. What the others show is written down, as is that of commits
beside the line: no manifest of this store has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from omnigraph.dataclass import dataclass
from omnigraph.errors import CommitNotFound
from omnigraph.manifest import (
    Facts,
    GraphCommit,
    ManifestState,
    Publish,
    RegisterTable,
    Snapshot,
    TableEntry,
    Tombstone,
)
from omnigraph.manifest.branch_names import RECEIVED, owns_lineage
from omnigraph.manifest.model import Change, Pins
from omnigraph.transfer.histories import History, list_ids
from omnigraph.transfer.table_import import TableImport
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.fork import open_pin
from omnigraph.write.pins import handle_to_pin


@dataclass(frozen=True)
class ReceivedLine:
    """Commits that were received for a branch. `states` are those of the source, by commit;
    `before` is what the source has of the head that the branch has now, if it has it.
    """

    target: WriteEnvironment
    branch: str
    tables: TableImport
    found: History
    states: Mapping[str, Snapshot]
    before: Snapshot | None

    @cached_property
    def _missing(self) -> set[str]:
        return {each.commit_id for each in self.found.missing}

    def keep_side_states(self) -> None:
        """Write down what the commits beside the line show."""
        line = {each.commit_id for each in self.found.line({})} & self._missing
        line |= {self.found.head.commit_id}
        kept = [
            self._write_down(self.found.commits[commit_id], 0)
            for commit_id in self.states
            if commit_id not in line
        ]
        self.target.coordinator.retained.add([each for each in kept if each is not None])

    def build(self, here: ManifestState) -> Publish:
        """The publish on top of a state. What it relies on is written down before it returns."""
        known = dict.fromkeys(list_ids(here))
        line = [each for each in self.found.line(known) if self._state_of(each) is not None]
        head = self.states[self.found.head.commit_id]
        final = self._choose_entries(here, head)
        shown = {key: final.get(key) or here.entries[key] for key in head.entries}
        commits = [self._to_commit(each, here, head, shown) for each in line[:-1]]
        commits += [replace(each, pins={}, is_kept=False) for each in line[-1:]]
        commits = [
            replace(each, branch=self.branch, manifest_version=here.version + 1) for each in commits
        ]
        kept = [self._write_down(each, here.version + 1) for each in commits if each.is_kept]
        self.target.coordinator.retained.add([each for each in kept if each is not None])
        changes = tuple(self._list_changes(here, head, final))
        keys = {each.table_key for each in changes}
        is_other = head.schema_name != here.schema_name
        return Publish(
            here.branch,
            changes,
            {key: here.latest_version(key) for key in sorted(keys)},
            if_commit=here.head.commit_id,
            schema_hash=head.schema_hash if is_other else None,
            schema_id=head.schema_id if is_other else None,
            ancestors=tuple(
                self._to_ancestor(each)
                for each in self.found.commits.values()
                if each not in line and each.commit_id not in known
            ),
            adopted=tuple(commits),
            # Not by their notes: commits whose state is gone over there are not on this line.
            facts=Facts(head.vector_models, head.checks),
        )

    # Tables

    def _choose_entries(self, here: ManifestState, head: Snapshot) -> dict[str, TableEntry]:
        """What the branch shows from now on otherwise than now, by key."""
        before = {} if self.before is None else _by_path(self.before.entries)
        final = {}
        for key, entry in head.entries.items():
            known, shown = before.get(entry.table_path), here.entries.get(key)
            if known is not None and entry.shows_same_rows(known):
                kept = here.entries.get(known.table_key)
                if kept is not None and kept.table_path == entry.table_path:
                    if known.table_key != key:
                        final[key] = replace(kept, table_key=key)
                    continue  # its layout here may be better by now
            chosen = self.tables.find(entry)
            if shown is not None and shown.shows_same_rows(chosen):
                continue
            final[key] = self._number(here, chosen)
        return final

    def _number(self, here: ManifestState, chosen: TableEntry) -> TableEntry:
        """A version under a number that the branch can show.

        It shows the greatest one that it has published of a table, above its tombstones, and has
        no later version on a lineage of its own.
        """
        key = chosen.table_key
        floor = max(here.pinned.get(key, 0), here.hidden.get(key, 0))
        if here.paths.get(key, chosen.table_path) != chosen.table_path:
            floor += 1  # the tombstone that this table may have from an earlier time
        if chosen.version <= floor:
            return self.tables.renumber(chosen, floor + 1)
        if owns_lineage(self.branch, chosen.table_branch) and not any(
            each.shows_same_rows(chosen) for each in here.entries.values()
        ):
            return self.tables.renumber(chosen, chosen.version + 1)
        if self._is_of_another_branch(chosen):
            return self.tables.renumber(chosen, chosen.version)
        return chosen

    def _is_of_another_branch(self, chosen: TableEntry) -> bool:
        """Whether it lies on a fork that goes with another branch, which may be deleted.

        One that stands on it keeps it.
        """
        fork = chosen.table_branch
        if fork is None or fork.startswith(RECEIVED):
            return False
        return not owns_lineage(self.branch, fork)

    def _list_changes(
        self, here: ManifestState, head: Snapshot, final: Mapping[str, TableEntry]
    ) -> Iterable[Change]:
        """A key is given up before it is taken by another table."""
        paths = {key: each.table_path for key, each in head.entries.items()}
        for key, entry in here.entries.items():
            if paths.get(key) != entry.table_path:
                yield Tombstone(key, entry.version)
        for key, entry in final.items():
            shown = here.entries.get(key)
            if shown is None or shown.table_path != entry.table_path:
                yield RegisterTable(key, entry.table_path)
        for key, entry in final.items():
            yield handle_to_pin(key, open_pin(self.target.tables, entry))

    # Commits

    def _to_commit(
        self,
        commit: GraphCommit,
        here: ManifestState,
        head: Snapshot,
        final: Mapping[str, TableEntry],
    ) -> GraphCommit:
        """A commit of the line below its head, with what it shows otherwise."""
        state = self._state_of(commit)
        assert state is not None
        is_plain = _read_facts(state) == _read_facts(head)
        pins: Pins = {
            key: [entry.version, entry.table_branch, entry.row_count, entry.transaction_uuid]
            for key, entry in state.entries.items()
            if key in final
            and entry.table_path == final[key].table_path
            and not (is_plain and entry.shows_same_rows(final[key]))
        }
        return replace(commit, pins=pins, is_kept=not is_plain)

    def _write_down(self, commit: GraphCommit, manifest_version: int) -> Snapshot | None:
        state = self._state_of(commit)
        if state is None:
            return None
        head = replace(commit, manifest_version=manifest_version, pins={}, is_kept=False)
        return replace(state, branch=head.branch, manifest_version=manifest_version, head=head)

    def _to_ancestor(self, commit: GraphCommit) -> GraphCommit:
        """A commit beside the line of the branch: as this store knows it, if it does.

        One that was received has no manifest of this store that shows it.
        """
        coordinator = self.target.coordinator
        with suppress(CommitNotFound):
            if commit.commit_id not in self._missing:
                return coordinator.commit(commit.commit_id)
        kept = coordinator.commit_states.find_kept(commit.commit_id)  # no branch knows it
        return replace(commit, manifest_version=0, is_kept=False) if kept is None else kept.head

    def _state_of(self, commit: GraphCommit) -> Snapshot | None:
        """What a commit shows, with versions of the target; None when that is gone."""
        state = self.states.get(commit.commit_id)
        if state is not None:
            entries = {key: self.tables.find(entry) for key, entry in state.entries.items()}
            return replace(state, entries=entries)
        coordinator = self.target.coordinator
        try:
            return coordinator.commit_states.find(coordinator.commit(commit.commit_id))
        except CommitNotFound:
            return None


def _by_path(entries: Mapping[str, TableEntry]) -> dict[str, TableEntry]:
    return {each.table_path: each for each in entries.values()}


def _read_facts(state: Snapshot) -> tuple[object, ...]:
    """What commits of one publish have in common, unless a state is written down by itself."""
    paths = {key: each.table_path for key, each in state.entries.items()}
    return paths, state.schema_name, dict(state.vector_models), dict(state.checks)
