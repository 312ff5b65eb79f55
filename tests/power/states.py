"""States: what a crash may leave at any moment of a recording, picked by a seed.

shape       names that are not sure     data that is not sure
lost        all lost                    lost
empty       all there                   lost
cut         all there                   cut off somewhere
zero        all there                   zeros
holes       all there                   some blocks are zeros
names       each there or not           there
data        all there                   of each: there, lost, cut or zeros
any         each there or not           of each: there, lost, cut or zeros
one lost    all there but one           there, or that of one file is lost
one kept    all lost but one            there
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.power.calls import Call
from tests.power.disk import Change, Content, Directory, Disk, File, Keep, Tree
from tests.power.recording import GRAPH, Recording

SHAPES = ("lost", "empty", "cut", "zero", "holes", "names", "data", "any", "one lost", "one kept")
BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CrashState:
    """A tree that a crash may leave, and what of the life of the graph must be in it."""

    step: str
    call: int
    shape: str
    tree: Tree
    acknowledged: int
    """How many pictures are sure: the graph shows the last of them, or the next one."""

    def __str__(self) -> str:
        return f"{self.step}, after call {self.call}, {self.shape}"

    def build(self, recording: Recording) -> Path:
        """Lay the tree down where it was recorded: forks know the place of their origin."""
        shutil.rmtree(recording.folder)
        recording.folder.mkdir()
        for path, data in self.tree.items():
            if data is None:
                (recording.folder / path).mkdir()
            else:
                (recording.folder / path).write_bytes(data)
        return recording.folder / GRAPH


def crash_states(
    recording: Recording, per_step: int, seed: int, shapes: Sequence[str] = SHAPES
) -> Iterator[CrashState]:
    """Different states, spread over the steps of a recording as evenly as they can be."""
    chosen = _choose(recording, per_step * 2, shapes, random.Random(seed))
    disk = Disk()
    seen: set[bytes] = set()
    left = dict.fromkeys(recording.steps, per_step)
    for number, call in enumerate(recording.calls):
        disk.apply([call])
        for shape, own_seed in chosen.get(number, ()):
            step = disk.marks[-1].rpartition("/")[0]
            if left[step] == 0:
                continue
            tree = _tree(disk, shape, random.Random(own_seed))
            digest = _digest(tree)
            if digest not in seen:
                seen.add(digest)
                left[step] -= 1
                sure = sum(mark.endswith("/ack") for mark in disk.marks)
                yield CrashState(step, number, shape, tree, sure)


def _choose(
    recording: Recording, per_step: int, shapes: Sequence[str], chance: random.Random
) -> dict[int, list[tuple[str, int]]]:
    """Call number → shapes, each with a seed of its own."""
    points: dict[str, list[int]] = {}
    likely: dict[str, list[int]] = {}
    step = ""
    for number, call in enumerate(recording.calls):
        if call.kind == "mark":
            step = call.path.rpartition("/")[0]
        points.setdefault(step, []).append(number)
        if _gives_a_name(call, recording.calls[number + 1 : number + 2]):
            likely.setdefault(step, []).append(number)
    chosen: dict[int, list[tuple[str, int]]] = {}
    for name in recording.steps:
        for turn in range(per_step):
            is_many = per_step > len(shapes)
            shape = shapes[turn % len(shapes)] if is_many else chance.choice(shapes)
            places = points if turn % 4 == 0 else likely
            found = chosen.setdefault(chance.choice(places.get(name, points[name])), [])
            found.append((shape, chance.randrange(1 << 30)))
    return chosen


def _gives_a_name(call: Call, following: Sequence[Call]) -> bool:
    """Whether a cut after this call is likely to hurt: a name has come or gone, a sync is due."""
    is_due = call.kind != "sync" and any(each.kind in ("sync", "mark") for each in following)
    return call.kind in ("link", "rename", "unlink") or is_due


def _tree(disk: Disk, shape: str, chance: random.Random) -> Tree:
    changes, files = disk.unsure()
    keep: Keep = _all_names
    content: Content = _all_data
    match shape:
        case "lost":
            keep, content = _no_name, _lost
        case "empty":
            content = _lost
        case "cut":
            content = _remember(lambda file: _cut(file, chance))
        case "zero":
            content = _zeros
        case "holes":
            content = _remember(lambda file: _holes(file, chance))
        case "names":
            keep = _each(chance)
        case "data":
            content = _remember(lambda file: _any(file, chance))
        case "any":
            keep, content = _each(chance), _remember(lambda file: _any(file, chance))
        case "one lost":
            lost = chance.choice([*changes, *files]) if changes or files else None
            keep = lambda change: change is not lost  # noqa: E731
            content = lambda file: _lost(file) if file is lost else bytes(file.data)  # noqa: E731
        case "one kept":
            kept = chance.choice(changes) if changes else None
            keep = lambda change: change is kept or _leads_to(change, kept)  # noqa: E731
    return disk.after_crash(keep, content)


def _each(chance: random.Random) -> Keep:
    share = chance.choice((0.2, 0.5, 0.8))
    return lambda _: chance.random() < share


def _remember(content: Content) -> Content:
    """One file has one content, whatever its names."""
    known: dict[int, bytes] = {}
    return lambda file: known.setdefault(id(file), content(file))


def _all_names(_: Change) -> bool:
    return True


def _no_name(_: Change) -> bool:
    return False


def _leads_to(change: Change, kept: Change | None) -> bool:
    """Whether a change makes a directory that something kept may be in."""
    return isinstance(change.node, Directory) and change is not kept


def _all_data(file: File) -> bytes:
    return bytes(file.data)


def _lost(file: File) -> bytes:
    return file.sure


def _cut(file: File, chance: random.Random) -> bytes:
    if file.is_sure or not file.data:
        return bytes(file.data)
    return bytes(file.data[: chance.randrange(len(file.data))])


def _zeros(file: File) -> bytes:
    if file.is_sure:
        return bytes(file.data)
    return file.sure + b"\0" * (len(file.data) - len(file.sure))


def _holes(file: File, chance: random.Random) -> bytes:
    data = bytearray(file.data)
    for start in [] if file.is_sure else range(0, len(data), BLOCK_BYTES):
        if chance.random() < 0.5:
            end = min(start + BLOCK_BYTES, len(data))
            data[start:end] = file.sure[start:end].ljust(end - start, b"\0")
    return bytes(data)


def _any(file: File, chance: random.Random) -> bytes:
    how = chance.choice((_all_data, _lost, _zeros, lambda each: _cut(each, chance)))
    return how(file)


def _digest(tree: Tree) -> bytes:
    found = hashlib.blake2b()
    for path, data in tree.items():
        found.update(f"{path}\0{-1 if data is None else len(data)}\0".encode())
        found.update(data or b"")
    return found.digest()
