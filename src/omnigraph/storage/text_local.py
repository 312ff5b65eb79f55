"""Local text store: files, replaced by rename and synced before a write returns."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from omnigraph.dataclass import dataclass
from omnigraph.errors import ObjectMissing, OmnigraphError
from omnigraph.nonblocking import may_block
from omnigraph.storage.counters import record
from omnigraph.storage.durability import Durability, sync_paths, sync_soon, with_parents
from omnigraph.storage.lance_errors import translate
from omnigraph.storage.location import graph_root
from omnigraph.storage.text import (
    TextStore,
    decode_text,
    is_temporary,
    refuse_larger,
    refuse_temporary,
)


@dataclass(frozen=True, slots=True)
class LocalTextStore(TextStore):
    """Text objects as files. Takes plain paths and `file://` URIs."""

    durability: Durability = "power"

    def read_text_if_exists(self, uri: str, *, bytes_max: int | None = None) -> str | None:
        path = _path(uri)
        with _file_errors("reading", uri):
            try:
                with open(path, "rb") as file:
                    refuse_larger(uri, os.fstat(file.fileno()).st_size, bytes_max)
                    data = file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
        record(text_reads=1)
        return decode_text(data, uri)

    def write_text(self, uri: str, text: str, *, after: Collection[str] = ()) -> None:
        path = _path(uri)
        with _file_errors("writing", uri), self._temporary(path, text, after) as temporary:
            os.replace(temporary, path)
            self._sync_entry(path)
        record(text_writes=1)

    def write_text_if_absent(self, uri: str, text: str) -> bool:
        path = _path(uri)
        with _file_errors("writing", uri), self._temporary(path, text) as temporary:
            try:
                # A link fails if the name exists, and the file is whole when it appears.
                os.link(temporary, path)
            except FileExistsError:
                return False
            self._sync_entry(path)
        record(text_writes=1)
        return True

    def exists(self, uri: str) -> bool:
        path = _path(uri)
        with _file_errors("looking for", uri):
            try:
                return _has_file(path) if stat.S_ISDIR(os.stat(path).st_mode) else True
            except (FileNotFoundError, NotADirectoryError):
                return False

    def rename_text(self, source: str, target: str) -> None:
        old, new = _path(source), _path(target)
        with _file_errors("renaming", source):
            try:
                os.replace(old, new)
            except FileNotFoundError as error:
                raise ObjectMissing(source) from error
            self._sync_entry(new)
            self._sync_entry(old)
        record(text_writes=1)

    def delete(self, uri: str, *, is_lasting: bool = True) -> None:
        self._remove(uri, os.unlink, is_lasting)

    def list_dir(self, uri: str) -> list[str]:
        found = [entry.name for entry in _list_entries(uri) if entry.is_file()]
        return [f"{uri.rstrip('/')}/{name}" for name in found if not is_temporary(name)]

    def list_folders(self, uri: str) -> list[str]:
        return [entry.name for entry in _list_entries(uri) if entry.is_dir()]

    def delete_prefix(self, uri: str) -> None:
        self._remove(uri, shutil.rmtree)

    def _remove(self, uri: str, remove: Callable[[str], None], is_lasting: bool = True) -> None:
        path = _path(uri)
        with _file_errors("deleting", uri):
            try:
                remove(path)
            except (FileNotFoundError, NotADirectoryError):
                return
            if is_lasting:
                self._sync_entry(path)
            elif self.durability == "power":
                sync_soon(os.path.dirname(path))
        record(text_deletes=1)

    def read_text_versioned(self, uri: str) -> tuple[str, str]:
        text = self.read_text(uri)
        return text, _token(text)

    def write_text_if_match(self, uri: str, text: str, token: str) -> str | None:
        # Compares and then writes: two processes can both match. Hold the writer queue.
        present = self.read_text_if_exists(uri)
        if present is None or _token(present) != token:
            return None
        self.write_text(uri, text)
        return _token(text)

    @contextmanager
    def _temporary(self, path: str, text: str, after: Collection[str] = ()) -> Iterator[str]:
        """Write `text` under a temporary name beside `path`; the name is gone afterwards."""
        self._make_directory(os.path.dirname(path))
        temporary = f"{path}#{secrets.randbelow(10**18)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
            if self.durability == "power":
                # Of an empty file there is nothing but its name, which is synced after this.
                sync_paths([*([temporary] if text else []), *after])
            yield temporary
        finally:
            # After a rename there is nothing left to remove.
            if os.path.lexists(temporary):
                os.unlink(temporary)

    def _make_directory(self, directory: str) -> None:
        top = directory
        while not os.path.isdir(top):
            top = os.path.dirname(top)
        if top == directory:
            return
        os.makedirs(directory, exist_ok=True)
        if self.durability == "power":
            sync_paths(with_parents([directory], top))

    def _sync_entry(self, path: str) -> None:
        if self.durability == "power":
            sync_paths([os.path.dirname(path)])


def _path(uri: str) -> str:
    refuse_temporary(uri)
    return graph_root(uri).local_path


def _list_entries(uri: str) -> list[os.DirEntry[str]]:
    found: list[os.DirEntry[str]] = []
    with (
        _file_errors("listing", uri),
        suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(_path(uri)) as entries,
    ):
        found = list(entries)
    record(text_lists=1)
    return found


def _has_file(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(
            _has_file(entry.path)
            if entry.is_dir(follow_symlinks=False)
            else not is_temporary(entry.name)
            for entry in entries
        )


def _token(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _file_errors(action: str, uri: str) -> Iterator[None]:
    may_block()
    try:
        yield
    except OmnigraphError:
        raise
    except OSError as error:
        raise translate(error, action=action, location=uri) from error
