"""Open graph: the two ways to get a `Graph`, `init` and `open`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequestError, GraphNotFound
from omnigraph.graph.arguments import check_call
from omnigraph.graph.graph import Graph
from omnigraph.graph.relocation import record_location, relocate_if_moved
from omnigraph.graph.session import Mode, Session
from omnigraph.graph.settings import Settings, read_settings
from omnigraph.graph.store import open_store
from omnigraph.manifest import migrate, read_stamp
from omnigraph.policy import Policy
from omnigraph.storage.durability import Durability
from omnigraph.storage.queues import writer_queues
from omnigraph.syntax import parse_schema
from omnigraph.write.power_cut import look_past_torn, set_torn_aside

if TYPE_CHECKING:
    from omnigraph.storage.content import Spread


@check_call
def init(
    uri: str | Path,
    *,
    schema: str,
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
    spark: Any = None,
    config: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    embedder: Any = None,
    embedding_model: str | None = None,
) -> Graph:
    """Create an empty graph and open it. The other arguments are those of `open`.

    Raises:
        GraphExists: There is one already.
        BadRequestError: The path is that of a file.
    """
    from omnigraph.catalog import build_catalog  # only an init needs it

    settings = read_settings(spark, config, embedder, embedding_model)
    catalog = build_catalog(parse_schema(schema))
    store = open_store(uri, storage_options, durability, _choose_spread(settings))
    if store.manifest.is_below_a_file():
        raise BadRequestError(
            f"'{uri}' is a file or below one, and a graph is a directory — name another path"
        )
    from omnigraph.manifest.genesis import create_graph  # only an init needs it

    create_graph(
        store.texts,
        store.tables,
        store.manifest,
        store.history,
        source=schema,
        catalog=catalog,
        actor=actor,
    )
    record_location(store)
    session = Session(
        store, mode="rw", actor=actor, self_care=self_care, settings=settings, policy=policy
    )
    return Graph(session)


@check_call
def open(  # noqa: A001 — `omnigraph.open` is the name programs use
    uri: str | Path,
    *,
    mode: Mode = "rw",
    storage_options: Mapping[str, str] | None = None,
    actor: str | None = None,
    durability: Durability = "power",
    self_care: bool = True,
    spark: Any = None,
    config: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    embedder: Any = None,
    embedding_model: str | None = None,
) -> Graph:
    """Open a graph. Mode `"r"` never writes, not even to recover.

    `spark` is the SparkSession to load and export with. `config` may have `spark`, a map of
    settings for a session that is made when one is needed, `cache_bytes`, how much queries may
    keep in memory, `read_ahead`, whether a write decodes for them before it is visible (one of few
    rows does unless it is False), and
    `retention`, the history that self-care leaves, such as `"keep=10,older_than=7d"`. With a
    session or a master given, small loads run there too.

    `embedder` makes the `@embed` vectors: a function from a list of texts to an array of one vector
    per text. `embedding_model` is the name that is recorded for them. Without it the provider is
    the one of `config["embedding"]` (`provider`, `model`, `base_url`, `api_key_env`), or of the
    environment.

    With a `policy` every write has to be allowed by it, and needs an actor; reads do not ask.

    Raises:
        GraphNotFound: There is no graph there.
        BadRequestError: A setting is unknown, or its value is of another kind.
    """
    if mode not in ("rw", "r"):
        raise BadRequestError(f"mode is {mode!r}, expected 'rw' or 'r'")
    settings = read_settings(spark, config, embedder, embedding_model)
    store = open_store(uri, storage_options, durability, _choose_spread(settings))
    if not store.manifest.exists():
        raise GraphNotFound(str(uri), is_file=store.manifest.is_below_a_file())
    if mode == "rw":
        if store.root.is_local:
            queues = writer_queues(store.root)
            set_torn_aside(store.texts, store.manifest, store.history, store.audit, queues)
        relocate_if_moved(store)
        migrate(store.manifest)
    else:
        if store.root.is_local:
            look_past_torn(store.texts, store.manifest)
        read_stamp(store.manifest)
    return Graph(
        Session(
            store, mode=mode, actor=actor, self_care=self_care, settings=settings, policy=policy
        )
    )


def _choose_spread(settings: Settings) -> Spread | None:
    """Where heavy work on large tables is done, if not here."""
    if not settings.spark.is_chosen:
        return None
    from omnigraph.pipeline.tasks import choose_spread  # most graphs never need it

    return choose_spread(settings.spark)
