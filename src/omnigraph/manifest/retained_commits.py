"""Retained commits: the states of commits whose branch is gone and that another branch comes from.

A state is read from the manifest of the branch it was made on. Before that branch is deleted, the
pins of its commits that outlive it are written down, and the table forks they name stay, so that
such a commit is read and merged with as before. Cleanup lets go of them.
Commits that came from another store are kept here too where no manifest of this one shows them.

    __commits/{first id}-{last id}.json   the states, see `state_text.py`

One file per deleted branch. Ids are in order of time, so the name of a file tells whether a commit
can be in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.manifest.model import Snapshot
from omnigraph.manifest.state_text import UNREADABLE, states_to_text, text_to_states
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__commits"


class RetainedCommits:
    """The states that outlived their branch."""

    def __init__(self, texts: GraphTexts) -> None:
        self.texts = texts

    def add(self, states: Sequence[Snapshot]) -> None:
        """Keep states beside those that are kept already."""
        if states:
            # Another branch may have kept other commits between the same two.
            name = _name_file(states)
            added = {each.head.commit_id: each for each in states}
            self._write(name, list({**self._states_in(name), **added}.values()))

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
            if retained and _name_file(retained) == name:
                if len(retained) < len(states):
                    self._write(name, retained)
                continue
            self.add(retained)
            self.texts.delete(f"{DIRECTORY}/{name}")

    def __iter__(self) -> Iterator[Snapshot]:
        for name in self._names():
            yield from self._states_in(name).values()

    def _names(self) -> list[str]:
        return sorted(name for name in self.texts.list_dir(DIRECTORY) if name.endswith(".json"))

    def _write(self, name: str, states: Sequence[Snapshot]) -> None:
        self.texts.write_text(f"{DIRECTORY}/{name}", states_to_text(states))

    def _states_in(self, name: str) -> Mapping[str, Snapshot]:
        try:
            text = self.texts.read_text_if_exists(f"{DIRECTORY}/{name}")
            return {} if text is None else text_to_states(text).states
        except UNREADABLE:
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


def _name_file(states: Sequence[Snapshot]) -> str:
    ids = sorted(each.head.commit_id for each in states)
    return f"{ids[0]}-{ids[-1]}.json"
