"""Handle: an open graph from the inside. The public calls are in the files beside it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from omnigraph.catalog import Catalog
from omnigraph.embed import EnvironmentEmbedder
from omnigraph.errors import BadRequestError, ConflictError
from omnigraph.graph.commit_observers import Prefetcher
from omnigraph.graph.settings import Settings
from omnigraph.graph.store import Store
from omnigraph.index import DerivedStore, RuntimeCache, prefetch
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    SchemaContract,
    Snapshot,
    UpdatePin,
    load_accepted_contract,
    load_contract,
    reconcile,
)
from omnigraph.manifest.freshness import CommitObserver
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.manifest.schema_view import project_to_schema
from omnigraph.manifest.schemas import catalog_of, keep_accepted
from omnigraph.manifest.targets import resolve
from omnigraph.policy import Action, Policy
from omnigraph.storage.location import GraphRoot
from omnigraph.storage.queues import QueueKey, writer_queues
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.recovery import settle_all
from omnigraph.write.schema_lock import (
    has_staged_schema,
    refuse_while_applying,
    settle_dead_apply,
)

Mode: TypeAlias = Literal["rw", "r"]

log = logging.getLogger("omnigraph")

_SCHEMA_LOOKS_MAX = 3


class Handle:
    """What every part of a `Graph` works on: the store, the contract, what was seen of it."""

    def __init__(
        self,
        store: Store,
        *,
        mode: Mode,
        actor: str | None,
        self_care: bool = True,
        settings: Settings | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._settings = settings if settings is not None else Settings()
        self._self_care = self_care
        self._mode = mode
        self._actor = actor
        self._lock = threading.Lock()
        self._is_closed = False
        self._coordinator = Coordinator(
            store.manifest, RetainedCommits(store.texts), self._observer()
        )
        self._cache = RuntimeCache(
            self._settings.cache_bytes, derived=_derived_store(store.root, mode)
        )
        self._embedder = EnvironmentEmbedder()
        if mode == "rw":
            self._settle(full=True)
            settle_dead_apply(self._environment())
        self._contract = load_contract(store.texts)
        if mode == "rw":
            keep_accepted(store.texts, self._coordinator.last_seen(MAIN), self._contract)
            reconcile(self._coordinator, store.history)

    @property
    def uri(self) -> str:
        return str(self._store.root)

    @property
    def schema(self) -> str:
        """The accepted schema, as it was written."""
        return self._checked_contract().source

    @property
    def catalog(self) -> Catalog:
        """The types of the accepted schema."""
        return self._checked_contract().catalog

    def refresh(self) -> None:
        """Look at every branch again; finish or undo what dead writers left."""
        self._checked_contract()
        if self._mode == "rw":
            self._settle(full=False)
            settle_dead_apply(self._environment())
        for branch in self._coordinator.branches():
            self._coordinator.fresh(branch)
        if self._mode == "rw":
            reconcile(self._coordinator, self._store.history)

    def close(self) -> None:
        """Let go of everything. Using the handle afterwards is an error."""
        self._is_closed = True
        self._cache.clear()
        self._store.tables.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.uri} ({self._mode})>"

    def _permit(
        self,
        action: Action,
        *,
        actor: str | None,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> str | None:
        """Say who acts, once the policy of the handle lets them. Every write asks this first.

        Raises:
            PolicyError: It does not, or there is a policy and nobody is named.
        """
        who = actor if actor is not None else self._actor
        if self._policy is not None:
            self._policy.require(action, actor=who, branch=branch, target_branch=target_branch)
        return who

    def _settle(self, *, full: bool, wait_for: Collection[QueueKey] | None = None) -> None:
        """Finish or undo what dead writers left; `full` says that this is an open."""
        settle_all(self._environment(), full=full, wait_for=wait_for)

    def _environment(self) -> WriteEnvironment:
        return WriteEnvironment(
            tables=self._store.tables,
            texts=self._store.texts,
            coordinator=self._coordinator,
            queues=writer_queues(self._store.root),
            audit=self._store.audit,
        )

    def _observer(self) -> CommitObserver | None:
        wanted = self._settings.read_ahead
        if wanted is True:
            return Prefetcher(self)
        return wanted or None

    def _read_ahead(self, branch: str, pins: Sequence[UpdatePin]) -> None:
        """Decode for queries what a branch is about to show."""
        try:
            before = self._coordinator.last_seen(branch).snapshot()
            catalog, tables = self._contract.catalog, self._store.tables
            with self._cache.prefetching():
                prefetch(before, pins, catalog, tables, self._cache)
        except Exception as error:  # the write is whole; the next query pays for the decoding
            log.warning("could not read ahead of a commit to '%s'", branch, exc_info=error)

    def _checked_contract(self) -> SchemaContract:
        if self._is_closed:
            raise BadRequestError(f"the handle of '{self.uri}' is closed — open the graph again")
        contract = load_accepted_contract(self._store.texts, self._coordinator, self._contract)
        with self._lock:
            self._contract = contract
        return contract

    def _reading(
        self,
        branch: str,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
    ) -> tuple[Catalog, Snapshot]:
        """A schema, and a snapshot whose tables are in it; the past is in its own."""
        is_past = (commit, version, at) != (None, None, None)
        for _ in range(_SCHEMA_LOOKS_MAX):
            contract = self._checked_contract()
            snapshot = resolve(
                self._coordinator, branch=branch, commit=commit, version=version, at=at
            )
            if is_past:
                return self._in_own_schema(snapshot, contract)
            if snapshot.schema_hash in (None, contract.catalog.shape_hash):
                return contract.catalog, snapshot
        raise ConflictError("the schema keeps changing — try again")

    def _in_own_schema(
        self, snapshot: Snapshot, current: SchemaContract
    ) -> tuple[Catalog, Snapshot]:
        """A snapshot in the schema it was made under, in that of today when its text is gone."""
        own = catalog_of(self._store.texts, snapshot, current)
        if own is not None:
            return own, snapshot
        return current.catalog, project_to_schema(snapshot, None, current.catalog)

    def _in_current_schema(self, snapshot: Snapshot) -> tuple[Catalog, Snapshot]:
        """A snapshot in the schema of today, through identities."""
        current = self._checked_contract()
        own = catalog_of(self._store.texts, snapshot, current)
        return current.catalog, project_to_schema(snapshot, own, current.catalog)

    def _writable_catalog(self) -> Catalog:
        if self._mode == "r":
            self._checked_contract()
            raise BadRequestError(
                f"'{self.uri}' is open for reading only — open it with mode='rw' to change it"
            )
        if not self._is_closed:
            environment = self._environment()
            if has_staged_schema(environment):
                # A schema change died close to its end: what comes now is checked against it.
                self._settle(full=False)
            refuse_while_applying(environment)
        return self._checked_contract().catalog


def _derived_store(root: GraphRoot, mode: Mode) -> DerivedStore | None:
    """Where adjacency is kept beside a local graph; a read-only handle only looks there."""
    return DerivedStore(Path(root.local_path), is_writable=mode == "rw") if root.is_local else None
