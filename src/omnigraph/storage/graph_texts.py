"""Text objects of one graph, by their name below its root."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from omnigraph.dataclass import dataclass
from omnigraph.storage.file_times import Attributes, read_stable_attributes
from omnigraph.storage.location import GraphRoot
from omnigraph.storage.text import TextStore


@dataclass(frozen=True, slots=True)
class GraphTexts:
    """The text store of a graph with the root filled in: callers say `_schema.pg`, not a URI."""

    store: TextStore
    root: GraphRoot

    def read_text(self, name: str) -> str:
        return self.store.read_text(self.root.child(name))

    def read_text_if_exists(self, name: str, *, bytes_max: int | None = None) -> str | None:
        return self.store.read_text_if_exists(self.root.child(name), bytes_max=bytes_max)

    def read_attributes(self, names: Iterable[str]) -> tuple[Attributes, ...] | None:
        """What is the same for as long as the texts are; None where nothing proves that."""
        if not self.root.is_local:
            return None
        return read_stable_attributes(map(self.root.child, names))

    def write_text(self, name: str, text: str, *, after: Collection[str] = ()) -> None:
        self.store.write_text(self.root.child(name), text, after=after)

    def write_text_if_absent(self, name: str, text: str) -> bool:
        return self.store.write_text_if_absent(self.root.child(name), text)

    def exists(self, name: str) -> bool:
        return self.store.exists(self.root.child(name))

    def delete(self, name: str, *, is_lasting: bool = True) -> None:
        self.store.delete(self.root.child(name), is_lasting=is_lasting)

    def rename_text(self, name: str, new_name: str) -> None:
        self.store.rename_text(self.root.child(name), self.root.child(new_name))

    def list_dir(self, name: str) -> list[str]:
        """Base names of the objects directly below."""
        return [
            uri.rstrip("/").rpartition("/")[2] for uri in self.store.list_dir(self.root.child(name))
        ]

    def list_folders(self, name: str) -> list[str]:
        """The names of what has objects below it, directly below."""
        return self.store.list_folders(self.root.child(name))
