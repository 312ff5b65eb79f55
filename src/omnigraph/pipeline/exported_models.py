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
from omnigraph.pipeline.input_files import is_object
from omnigraph.pipeline.output_files import writing

_NAME = "embedding_models.json"


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


def read_models(paths: Iterable[str]) -> dict[str, str]:
    """What is said of the vectors of some files.

    Raises:
        BadRequestError: It cannot be read, or two files say different things.
    """
    local = [path for path in paths if not is_object(path)]
    folders = dict.fromkeys(map(os.path.dirname, local))
    found: dict[str, str] = {}
    for beside in [*map(_beside_directory, folders), *map(_beside_file, local)]:
        for label, model in _read(beside).items():
            if found.setdefault(label, model) != model:
                raise BadRequestError(
                    f"'{label}' would hold vectors of model '{found[label]}' and, by {beside}, of "
                    f"'{model}' — leave out the vectors of one of them; nothing was written"
                )
    return found


def _beside_directory(folder: str) -> str:
    return os.path.join(folder, f"_{_NAME}")


def _beside_file(path: str) -> str:
    return os.path.join(os.path.dirname(path), f"_{os.path.basename(path)}.{_NAME}")


def _read(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        value = None
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return value
    raise BadRequestError(
        f"cannot read '{path}': expected the models of an export, as JSON — nothing was written"
    )
