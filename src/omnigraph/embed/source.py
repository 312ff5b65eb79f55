"""Source: who makes the vectors of a property, given what is chosen and what is recorded of it.

    chosen                        vectors to store                     a text to compare with
    a function of the program     that function                        the same
    a provider, by its settings   that provider                        the same
    a key and no provider         as if nothing was chosen             the provider of the key
    nothing                       `local`, where it fits               none
    (recorded: the local model)   `local`, unless another is chosen    `local`

`local` fits a property whose dimension it can make, and whose other vectors it made. A key alone
is no choice for what is stored: many programs set one, and stored text must not leave the machine
because of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.embed.config import (
    API_KEY,
    API_KEY_ENV,
    BASE_URL,
    LOCAL_DIMENSIONS,
    LOCAL_MODEL,
    MODEL,
    NOT_CONFIGURED,
    PROVIDER,
    EmbedConfig,
    Provider,
    describe_local,
)
from omnigraph.embed.embedder import Embedder, check_model
from omnigraph.embed.function import EmbedFunction, FunctionEmbedder
from omnigraph.embed.providers import (
    embedder_from_environment,
    embedder_of_documents,
    make_embedder,
)
from omnigraph.errors import BadRequestError, EmbeddingNotConfigured

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""The environment variables that configure a provider."""

GRAPH_SETTINGS = {
    "provider": PROVIDER,
    "model": MODEL,
    "base_url": BASE_URL,
    "api_key_env": API_KEY_ENV,
}
"""What one graph may set for itself, and the variable that each stands for."""

_PREFIXES = ("OMNIGRAPH_EMBED", "OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True, slots=True)
class EmbedColumn:
    """One `@embed` property: the text that feeds it, its width, the model that is recorded.

    `is_foreign` says that it holds vectors and that what made them is not known.
    """

    name: str
    source: str
    dimension: int
    nullable: bool
    model: str | None = None
    is_foreign: bool = False
    type_name: str = ""

    @property
    def label(self) -> str:
        """The property as errors name it."""
        return f"{self.type_name}.{self.name}" if self.type_name else self.name

    @property
    def fits_local(self) -> bool:
        """Whether the local model can make its vectors, and made those that it has."""
        return (
            self.dimension in LOCAL_DIMENSIONS
            and self.model in (None, LOCAL_MODEL)
            and not self.is_foreign
        )


@dataclass(frozen=True, slots=True)
class EmbedSource:
    """What a graph embeds with. Small and picklable: it travels to Spark workers."""

    settings: Settings = ()
    function: EmbedFunction | None = None
    function_model: str = ""

    def find_for_documents(self, column: EmbedColumn) -> Embedder | None:
        """The embedder of the vectors to store; None when nothing is chosen and `local` cannot."""
        chosen = self._find_chosen()
        if chosen is not None:
            check_model(column.label, column.model, chosen)
            return chosen
        return local_embedder() if column.fits_local else None

    def find_for_query(self, column: EmbedColumn) -> Embedder:
        """The embedder of a text that is compared with the vectors of a property.

        Raises:
            EmbeddingNotConfigured, EmbeddingModelMismatch: As they say.
        """
        if column.model == LOCAL_MODEL and column.fits_local:
            return local_embedder()
        chosen = self._find_chosen() or _find_for_queries(self.settings)
        if chosen is None:
            raise EmbeddingNotConfigured(NOT_CONFIGURED)
        check_model(column.label, column.model, chosen)
        return chosen

    @property
    def is_default(self) -> bool:
        """Whether nothing at all is set, so that only `local` can be asked."""
        return self.function is None and not self.settings

    @property
    def is_chosen(self) -> bool:
        """Whether a provider is chosen for what is stored."""
        return self._find_chosen() is not None

    def _find_chosen(self) -> Embedder | None:
        if self.function is not None:
            return FunctionEmbedder(self.function, self.function_model)
        return _find_for_documents(self.settings)


def read_settings(
    environment: Mapping[str, str], of_graph: Mapping[str, str] | None = None
) -> Settings:
    """The variables that a worker needs to embed as this process would.

    `of_graph` are the settings of one graph, by the names of `GRAPH_SETTINGS`: they go before
    those of the environment. A provider comes with its own model and address.
    """
    wanted = {name: environment[name] for name in environment if name.startswith(_PREFIXES)}
    chosen = of_graph or {}
    if "provider" in chosen:
        wanted = {name: text for name, text in wanted.items() if name not in (MODEL, BASE_URL)}
    wanted |= {GRAPH_SETTINGS[name]: text for name, text in chosen.items()}
    if "api_key_env" in chosen:
        wanted[API_KEY] = environment.get(chosen["api_key_env"], "")
    return tuple(sorted(wanted.items()))


def local_embedder() -> Embedder:
    """The embedder that needs no network and no key."""
    return make_embedder(EmbedConfig(Provider.LOCAL, LOCAL_MODEL))


def embed_query_text(source: EmbedSource | None, text: str, column: EmbedColumn) -> list[float]:
    """The vector to compare a property with.

    Raises:
        EmbeddingNotConfigured, EmbeddingModelMismatch, EmbeddingFailed: As they say.
    """
    if not text.strip():
        raise BadRequestError("nearest is asked for an empty text — give a text with words in it")
    embedder = (source or EmbedSource()).find_for_query(column)
    return embedder.embed_query(text, column.dimension)


def describe_default(column: EmbedColumn) -> str:
    """What to tell about vectors that were made without a choice."""
    return (
        f"{column.label}: no embedding provider is chosen, so the local model ({LOCAL_MODEL}) made "
        f"the vectors; {PROVIDER} chooses another"
    )


def explain_missing(column: EmbedColumn) -> str:
    """Why `local` does not fill a property when nothing else is chosen."""
    if column.model not in (None, LOCAL_MODEL):
        return f"its vectors are of model '{column.model}'"
    if column.dimension not in LOCAL_DIMENSIONS:
        return f"it is Vector({column.dimension}), and the local model makes {describe_local()}"
    return "it has vectors already, and which model made them is not recorded"


@lru_cache(maxsize=8)
def _find_for_documents(settings: Settings) -> Embedder | None:
    return embedder_of_documents(dict(settings))


@lru_cache(maxsize=8)
def _find_for_queries(settings: Settings) -> Embedder | None:
    return embedder_from_environment(dict(settings))
