"""Objects: files of tables, moved, removed and replaced as a whole, on disk or in an object store.

Data files are moved and removed only while no version of a table names them. Large blobs lie in a
directory named after the data file, and go where it goes.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence

from omnigraph.storage.durability import Durability, sync_paths
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.listing import Files


def move_files(
    files: Sequence[tuple[str, str]], target: str, storage_options: Mapping[str, str]
) -> None:
    """Move data files, given as (directory, name), into the directory `target`.

    A file that is in `target` and not at its source was moved before; that is success.
    """
    with lance_errors("moving the files of a load", target):
        if "://" in target:
            for directory, name in files:
                source_files = Files(directory, storage_options)
                for each in _list_objects(source_files, name):
                    source_files.move_object(each, target)
            return
        os.makedirs(target, exist_ok=True)
        for directory, name in files:
            for entry in (_stem(name), name):
                source = os.path.join(directory, entry)
                if os.path.exists(source):
                    os.rename(source, os.path.join(target, entry))


def remove_files(directory: str, names: Iterable[str], storage_options: Mapping[str, str]) -> None:
    """Remove data files and their large blobs; one that is not there is success."""
    with lance_errors("removing the files of a load", directory):
        files = Files(directory, storage_options)
        for name in names:
            if files.is_local:
                shutil.rmtree(os.path.join(directory, _stem(name)), ignore_errors=True)
                files.remove([name])
            else:
                files.remove(_list_objects(files, name))


def read_object(uri: str, storage_options: Mapping[str, str]) -> bytes | None:
    """The bytes of an object; None when it is not there."""
    top, _, name = uri.rpartition("/")
    with lance_errors("reading a file", uri):
        try:
            return Files(top, storage_options).read(name)
        except FileNotFoundError:
            return None


def replace_object(
    uri: str, data: bytes, storage_options: Mapping[str, str], durability: Durability
) -> None:
    """Replace an object: a reader, also one after a power cut, sees the old or the new whole one.

    Makes no directory, and leaves it to the caller to sync the one that the file is in.
    """
    with lance_errors("writing a file", uri):
        if "://" in uri:
            top, _, name = uri.rpartition("/")
            Files(top, storage_options).write(name, data)
        else:
            _replace_file(uri, data, durability)


def _replace_file(path: str, data: bytes, durability: Durability) -> None:
    temporary = f"{path}#{secrets.randbelow(10**18)}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if durability == "power":
            sync_paths([temporary])
        shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _list_objects(files: Files, name: str) -> list[str]:
    """The large blobs of a data file in an object store, and the file itself."""
    return [*files.list(_stem(name)), *files.find(name)]
