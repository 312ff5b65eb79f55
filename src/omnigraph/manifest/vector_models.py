"""Which model made the vectors of each `@embed` property, by the id of the property.

A commit notes the models that it changes, and the publish that makes it visible brings the row
`embedding_models` of the manifest up to date. So the record goes where the vectors go: through
recovery, into new branches, and back in time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from omnigraph.manifest.model import GraphCommit

VectorModels: TypeAlias = Mapping[int, str]

NOTED = "embedding_models"
"""The property of a commit; a model of null says that the model is not known any more."""


def note_models(changed: Mapping[int, str | None]) -> dict[str, Any]:
    """The properties of a commit that changes these models."""
    return {NOTED: {str(key): model for key, model in changed.items()}} if changed else {}


def apply_notes(models: VectorModels, commits: Iterable[GraphCommit]) -> VectorModels:
    """The models after some commits, in their order."""
    for commit in commits:
        for key, model in commit.properties.get(NOTED, {}).items():
            models = {each: name for each, name in models.items() if each != int(key)}
            if model is not None:
                models[int(key)] = model
    return models


def models_to_text(models: VectorModels) -> str:
    return json.dumps({str(key): models[key] for key in sorted(models)})


def models_from_text(text: str) -> VectorModels:
    return {int(key): str(model) for key, model in json.loads(text).items()}
