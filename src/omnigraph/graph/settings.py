"""Settings: what `open` and `init` take as `spark` and `config`, checked once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.embed import Provider
from omnigraph.embed.function import EmbedFunction
from omnigraph.embed.source import GRAPH_SETTINGS
from omnigraph.errors import BadRequestError, did_you_mean
from omnigraph.graph.arguments import show_value
from omnigraph.manifest.freshness import CommitObserver
from omnigraph.pipeline.engine import SparkUse
from omnigraph.upkeep.retention import VARIABLE, Retention, read_retention

ReadAhead: TypeAlias = bool | CommitObserver

_NAMES = ("spark", "cache_bytes", "read_ahead", "retention", "embedding")


@dataclass(frozen=True, slots=True)
class Settings:
    """How one handle works. `cache_bytes` bounds what queries keep in memory.

    With `read_ahead` a write decodes what queries will ask for before it becomes visible, so that
    none of them waits for that: for handles that many threads read from. When another process
    does the reading, it is that process. Unless it is given, only a write of few rows does so, for
    which that takes no longer than the next query. `retention` is the history that self-care
    leaves; all of it without one.
    """

    spark: SparkUse = field(default_factory=SparkUse)
    cache_bytes: int | None = None
    read_ahead: ReadAhead | None = None
    retention: Retention | None = None
    embedding: Mapping[str, str] = field(default_factory=dict)
    embedder: EmbedFunction | None = None
    embedding_model: str = ""


def read_settings(
    spark: Any,
    config: Mapping[str, Any] | None,
    embedder: Any = None,
    embedding_model: str | None = None,
) -> Settings:
    """Check what a program asked for.

    Raises:
        BadRequestError: A setting is unknown, or its value is of another kind.
    """
    given = dict(config or {})
    for name in given:
        if name not in _NAMES:
            known = ", ".join(f"`{each}`" for each in _NAMES)
            hint = did_you_mean(str(name), list(_NAMES)) or f"expected one of {known}"
            raise BadRequestError(f"config has no setting '{name}' — {hint}")
    return Settings(
        SparkUse(spark, _spark_settings(given.get("spark"))),
        _cache_bytes(given.get("cache_bytes")),
        _read_ahead(given.get("read_ahead")),
        _retention(given),
        _embedding(given.get("embedding")),
        _embedder(embedder, embedding_model),
        embedding_model or "",
    )


def _spark_settings(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadRequestError(
            f"config `spark` is {show_value(given)}, expected a map of Spark settings, such as "
            "{'master': 'local[2]'}"
        )
    settings = {str(name): _text(value) for name, value in given.items() if value is not None}
    if "spark.master" in settings:
        settings.setdefault("master", settings.pop("spark.master"))
    return settings


def _text(value: object) -> str:
    """A value as Spark spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cache_bytes(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise BadRequestError(
            f"config `cache_bytes` is {show_value(given)}, expected a positive number"
        )
    return given


def _retention(given: Mapping[str, Any]) -> Retention | None:
    """What the program says, else what the environment says."""
    if given.get("retention") is not None:
        return read_retention(given["retention"], "config `retention`")
    return read_retention(os.environ.get(VARIABLE), VARIABLE)


def _read_ahead(given: Any) -> ReadAhead | None:
    if given is not None and not isinstance(given, bool) and not hasattr(given, "before_publish"):
        raise BadRequestError(f"config `read_ahead` is {show_value(given)}, expected True or False")
    wanted: ReadAhead | None = given
    return wanted


def _embedding(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given.values()):
        raise BadRequestError(
            f"config `embedding` is {show_value(given)}, expected a map such as "
            "{'provider': 'local'}"
        )
    for name in given:
        if name not in GRAPH_SETTINGS:
            known = ", ".join(f"`{each}`" for each in GRAPH_SETTINGS)
            hint = did_you_mean(str(name), list(GRAPH_SETTINGS)) or f"expected one of {known}"
            raise BadRequestError(f"config `embedding` has no setting '{name}' — {hint}")
    provider = given.get("provider")
    if provider is not None and provider not in tuple(Provider):
        raise BadRequestError(
            f"config `embedding` has the provider '{provider}', expected one of "
            f"{', '.join(Provider)}"
        )
    return dict(given)


def _embedder(given: Any, model: str | None) -> EmbedFunction | None:
    if given is None:
        if model is not None:
            raise BadRequestError("`embedding_model` names the model of `embedder`: give both")
        return None
    if not callable(given):
        raise BadRequestError(
            f"`embedder` is {show_value(given)}, expected a function from a list of texts to an "
            "array of vectors"
        )
    if not (model or "").strip():
        raise BadRequestError(
            "`embedder` needs `embedding_model`, the name that is recorded for its vectors, so "
            "that no others are mixed with them"
        )
    function: EmbedFunction = given
    return function
