"""Objects: files of tables, moved, removed and replaced as a whole, on disk or in an object store.

Data files are moved and removed only while no version of a table names them. Large blobs lie in a
directory named after the data file, and go where it goes.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.storage.durability import Durability, sync_paths
from omnigraph.storage.lance_errors import lance_errors

if TYPE_CHECKING:
    from obstore.store import S3Store


def move_files(
    files: Sequence[tuple[str, str]], target: str, storage_options: Mapping[str, str]
) -> None:
    """Move data files, given as (directory, name), into the directory `target`.

    A file that is in `target` and not at its source was moved before; that is success.
    """
    with lance_errors("moving the files of a load", target):
        if "://" in target:
            _move_objects(files, target, storage_options)
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
        for name in names:
            if "://" in directory:
                _remove_objects(directory, name, storage_options)
                continue
            shutil.rmtree(os.path.join(directory, _stem(name)), ignore_errors=True)
            path = os.path.join(directory, name)
            if os.path.exists(path):
                os.remove(path)


def read_object(uri: str, storage_options: Mapping[str, str]) -> bytes | None:
    """The bytes of an object; None when it is not there."""
    with lance_errors("reading a file", uri):
        try:
            if "://" in uri:
                return _get_object(uri, storage_options)
            with open(uri, "rb") as file:
                return file.read()
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
            _put_object(uri, data, storage_options)
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


def _get_object(uri: str, storage_options: Mapping[str, str]) -> bytes:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, key = s3_bucket(uri, storage_options)
    return bytes(obstore.get(store, key).bytes())


def _put_object(uri: str, data: bytes, storage_options: Mapping[str, str]) -> None:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, key = s3_bucket(uri, storage_options)
    obstore.put(store, key, data)


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _move_objects(
    files: Sequence[tuple[str, str]], target: str, storage_options: Mapping[str, str]
) -> None:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, target_key = s3_bucket(target, storage_options)
    for directory, name in files:
        source_key = directory.removeprefix("s3://").partition("/")[2]
        for key in _keys_of(store, f"{source_key}/{_stem(name)}"):
            moved = target_key + key.removeprefix(source_key)
            obstore.copy(store, key, moved)
            obstore.delete(store, key)


def _remove_objects(directory: str, name: str, storage_options: Mapping[str, str]) -> None:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, key = s3_bucket(directory, storage_options)
    for each in _keys_of(store, f"{key}/{_stem(name)}"):
        obstore.delete(store, each)


def _keys_of(store: S3Store, stem: str) -> list[str]:
    """The data file of this stem and everything below the directory of this stem."""
    import obstore

    directory = stem.rpartition("/")[0]
    found = [item["path"] for page in obstore.list(store, prefix=directory) for item in page]
    return sorted(key for key in found if key == f"{stem}.lance" or key.startswith(f"{stem}/"))
