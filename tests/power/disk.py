"""Disk: what a file system holds after some calls, and what of it is sure to survive a crash.

    data of a file          sure up to its last sync
    an entry of a directory sure once the directory was synced after it

An entry that is not sure may be there or not, each for itself, whatever came before or after it.
Only a rename is one thing: its old name is gone only when the new one is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.power.calls import Call


@dataclass(slots=True, eq=False)
class File:
    """One inode: its bytes now, and those that a crash cannot take."""

    data: bytearray = field(default_factory=bytearray)
    sure: bytes = b""
    is_sure: bool = False


@dataclass(slots=True, eq=False)
class Change:
    """A name that was given (`node`) or taken away (None) and is not sure yet."""

    name: str
    node: Node | None
    needs: Change | None = None
    is_sure: bool = False


@dataclass(slots=True, eq=False)
class Directory:
    """One directory: its entries now, those that are sure, and the way from these to the others."""

    entries: dict[str, Node] = field(default_factory=dict)
    sure: dict[str, Node] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)


Node: TypeAlias = File | Directory
Content: TypeAlias = Callable[[File], bytes]
Keep: TypeAlias = Callable[[Change], bool]
Tree: TypeAlias = dict[str, bytes | None]
"""Path → bytes of a file, or None for a directory; parents come before what is in them."""


class Disk:
    """Replays calls. Everything below its top is on it; the top itself is there from the start."""

    def __init__(self) -> None:
        self.top = Directory()
        self.marks: list[str] = []
        self._files: dict[int, File] = {}

    def apply(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self._apply(call)

    def _apply(self, call: Call) -> None:
        match call.kind:
            case "mark":
                self.marks.append(call.path)
            case "create":
                self._create(call)
            case "write":
                _write(self._files[call.inode], call.offset, call.data)
            case "truncate":
                _truncate(self._files[call.inode], call.offset or 0)
            case "sync":
                self._sync(call)
            case "mkdir":
                self._set(call.path, Directory())
            case "rmdir" | "unlink":
                self._remove(call.path)
            case "link":
                self._set(call.target, self._find(call.path))
            case "rename":
                moved = self._find(call.path)
                given = self._set(call.target, moved)
                self._remove(call.path, needs=given)

    def _create(self, call: Call) -> None:
        directory, name = self._parent(call.path)
        if name not in directory.entries:
            # The number may have belonged to a file that is gone.
            self._files[call.inode] = File()
            self._set(call.path, self._files[call.inode])

    def _sync(self, call: Call) -> None:
        if call.path == "/":
            for node in _all(self.top):
                _make_sure(node)
        elif call.path:
            _make_sure(self._find(call.path))
        else:
            _make_sure(self._files[call.inode])

    def _set(self, path: str, node: Node) -> Change:
        directory, name = self._parent(path)
        change = Change(name, node)
        directory.entries[name] = node
        directory.pending.append(change)
        return change

    def _remove(self, path: str, needs: Change | None = None) -> None:
        directory, name = self._parent(path)
        del directory.entries[name]
        directory.pending.append(Change(name, None, needs))

    def _parent(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        directory = self._find(above or ".")
        assert isinstance(directory, Directory), path
        return directory, name

    def _find(self, path: str) -> Node:
        node: Node = self.top
        for name in [] if path == "." else path.split("/"):
            assert isinstance(node, Directory), path
            node = node.entries[name]
        return node

    def name_of(self, inode: int) -> str:
        """One of the present paths of a file; empty when it has none."""
        wanted = self._files[inode]
        waiting: list[tuple[str, Node]] = [("", self.top)]
        while waiting:
            path, node = waiting.pop()
            if node is wanted:
                return path
            if isinstance(node, Directory):
                waiting += [(f"{path}/{name}".lstrip("/"), n) for name, n in node.entries.items()]
        return ""

    # What may be found

    def tree(self) -> Tree:
        """Everything as a process sees it now."""
        return self.after_crash(lambda _: True, lambda file: bytes(file.data))

    def after_crash(self, keep: Keep, content: Content) -> Tree:
        """The tree when the changes that are not sure survive as `keep` says."""
        found: Tree = {}
        kept: dict[int, bool] = {}

        def is_kept(change: Change) -> bool:
            if change.is_sure:
                return True
            if id(change) not in kept:
                has_other = change.needs is None or is_kept(change.needs)
                kept[id(change)] = has_other and keep(change)
            return kept[id(change)]

        def walk(directory: Directory, path: str) -> None:
            entries = dict(directory.sure)
            for change in directory.pending:
                if not is_kept(change):
                    continue
                if change.node is None:
                    entries.pop(change.name, None)
                else:
                    entries[change.name] = change.node
            for name, node in sorted(entries.items()):
                if isinstance(node, File):
                    found[path + name] = content(node)
                else:
                    found[path + name] = None
                    walk(node, f"{path}{name}/")

        walk(self.top, "")
        return found

    def unsure(self) -> tuple[list[Change], list[File]]:
        """The changes of entries, and the files whose data, a crash may take."""
        changes: list[Change] = []
        files: list[File] = []
        for node in _all(self.top):
            if isinstance(node, Directory):
                changes += node.pending
            elif bytes(node.data) != node.sure:
                files.append(node)
        return changes, files


def _all(top: Directory) -> Iterator[Node]:
    """Every node that can be there after a crash, each once."""
    seen: set[int] = set()
    waiting: list[Node] = [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, Directory):
            waiting += [*node.sure.values(), *(c.node for c in node.pending if c.node is not None)]


def _make_sure(node: Node) -> None:
    if isinstance(node, File):
        node.sure, node.is_sure = bytes(node.data), True
        return
    for change in node.pending:
        change.is_sure = True
        if change.needs is not None:
            change.needs.is_sure = True
    node.sure, node.pending = dict(node.entries), []


def _write(file: File, offset: int | None, data: bytes) -> None:
    start = len(file.data) if offset is None else offset
    file.data.extend(b"\0" * (start - len(file.data)))
    file.data[start : start + len(data)] = data
    file.is_sure = False


def _truncate(file: File, size: int) -> None:
    del file.data[size:]
    file.data.extend(b"\0" * (size - len(file.data)))
    file.is_sure = False
