"""Exported models: which model made the vectors of an export, in a small file beside the data.

The formats have no place for it. A name that starts with `_` is no data, so a load passes over the
file; but it records what made the vectors, and never mixes them with others.

    out/_embedding_models.json              of a directory
    _all.jsonl.embedding_models.json        of the file all.jsonl
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError
from omnigraph.manifest.vector_models import VectorModels
from omnigraph.pipeline.input_files import Options, is_object, open_raw, plain_name
from omnigraph.pipeline.output_files import writing

_NAME = "embedding_models.json"
_RECORD_ENDINGS = (".jsonl", ".ndjson", ".json")
_ABSENT = ("FileNotFoundError", "NotFoundError", "PermissionDeniedError")


def name_models(catalog: Catalog, models: VectorModels, keys: Iterable[str]) -> dict[str, str]:
    """The recorded models of some tables, by `Type.property`."""
    return {
        f"{entity.name}.{each.name}": models[each.property_id]
        for entity in map(catalog.entity, keys)
        for each in entity.properties.values()
        if each.property_id in models
    }


def write_models(path: str, models: Mapping[str, str]) -> None:
    """Write the models of an export beside its data; without any, remove those of an earlier one.

    Raises:
        StorageError: The file cannot be written.
    """
    beside = _beside_directory(path) if os.path.isdir(path) else _beside_file(path)
    with writing(beside):
        if models:
            with open(beside, "w", encoding="utf-8") as file:
                json.dump(models, file, indent=1, sort_keys=True)
            return
        with suppress(FileNotFoundError):
            os.remove(beside)


def read_models(paths: Iterable[str], options: Options) -> dict[str, str]:
    """What is said of the vectors of some files. `options` are for an object store.

    Raises:
        BadRequestError: It cannot be read, or two files say different things.
    """
    found: dict[str, str] = {}
    for beside, text in find_models(paths, options).items():
        for label, model in _parse(beside, text).items():
            if found.setdefault(label, model) != model:
                raise BadRequestError(
                    f"'{label}' would hold vectors of model '{found[label]}' and, by {beside}, of "
                    f"'{model}' — leave out the vectors of one of them; nothing was written"
                )
    return found


def find_models(paths: Iterable[str], options: Options) -> dict[str, bytes]:
    """The files beside some data that say which models made its vectors, with their content."""
    given = list(paths)
    folders = dict.fromkeys(map(os.path.dirname, given))
    # Only records are exported to one file: no other is asked for, since each is a request.
    alone = [path for path in given if plain_name(path).lower().endswith(_RECORD_ENDINGS)]
    names = [*map(_beside_directory, folders), *map(_beside_file, alone)]
    found = ((name, _read(name, options)) for name in names)
    return {name: text for name, text in found if text is not None}


def _beside_directory(folder: str) -> str:
    return os.path.join(folder, f"_{_NAME}")


def _beside_file(path: str) -> str:
    return os.path.join(os.path.dirname(path), f"_{os.path.basename(path)}.{_NAME}")


def _read(path: str, options: Options) -> bytes | None:
    """A file; None when there is none. A store that lists nothing denies what is not there."""
    if not is_object(path) and not os.path.lexists(path):
        return None
    try:
        with open_raw(path, options) as file:
            return file.read()
    except BadRequestError as error:
        if is_object(path) and type(error.__cause__).__name__ in _ABSENT:
            return None
        raise


def _parse(path: str, text: bytes) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return value
    raise BadRequestError(
        f"cannot read '{path}': expected the models of an export, as JSON — nothing was written"
    )
