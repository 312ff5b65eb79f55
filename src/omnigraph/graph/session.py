"""Session: one open graph from the inside. `Graph` is the public face of it.

The parts of the graph in storage, the accepted schema, the known states of its branches, what
queries have cached, and who may write. Every call of `Graph` goes through it; it is thread-safe.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from omnigraph.catalog import Catalog, EntityType
from omnigraph.embed import EmbedSource
from omnigraph.embed.source import read_settings
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    NotFoundError,
    OmnigraphError,
    SourceError,
    TableNotFound,
    TableVersionNotFound,
)
from omnigraph.graph.commit_observers import Prefetcher
from omnigraph.graph.settings import Settings
from omnigraph.graph.store import Store
from omnigraph.index import DerivedStore, RuntimeCache, prefetch
from omnigraph.lru import Lru
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    GraphCommit,
    SchemaContract,
    Snapshot,
    UpdatePin,
    load_accepted_contract,
    load_contract,
    reconcile_changed,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.freshness import CommitObserver
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.manifest.schema_view import project_to_schema
from omnigraph.manifest.schemas import (
    AcceptedSchema,
    find_catalog,
    keep_accepted,
    list_kept,
    load_catalogs,
    read_schema,
)
from omnigraph.manifest.snapshot_cache import SnapshotCache
from omnigraph.policy import Action, Policy
from omnigraph.storage.queues import QueueKey
from omnigraph.write.environment import WriteEnvironment, queue_keys
from omnigraph.write.recovery import recover_all
from omnigraph.write.schema_lock import has_staged_schema, recover_dead_apply, refuse_while_applying

if TYPE_CHECKING:
    from omnigraph.branch.feed import KeptChanges
    from omnigraph.upkeep.self_care import SelfCare
    from omnigraph.write.commit import WriteRequest
    from omnigraph.write.group import InsertGroups

Mode: TypeAlias = Literal["rw", "r"]
Moment: TypeAlias = tuple[str, str | None, int | None, datetime | str | None]
"""Branch, commit, version and time of a read; without the last three it is of the branch now.

The commit is any revision, and so is the branch when there is none of that name.
"""
_T = TypeVar("_T")

log = logging.getLogger("omnigraph")

_SCHEMAS = ("commit", "current")


class Session:
    """What every call of a `Graph` works on."""

    def __init__(
        self,
        store: Store,
        *,
        mode: Mode,
        actor: str | None,
        self_care: bool,
        settings: Settings,
        policy: Policy | None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.policy = policy
        self.mode = mode
        self._actor = actor
        self._wants_self_care = self_care
        self._self_care: SelfCare | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self.coordinator = Coordinator(
            store.manifest, RetainedCommits(store.texts), self._observer()
        )
        derived = None
        if store.root.is_local:  # a read-only session uses the derived files and adds none
            derived = DerivedStore(Path(store.root.local_path), is_writable=mode == "rw")
        self.cache = RuntimeCache(settings.cache_bytes, derived=derived)
        self.snapshots = SnapshotCache[tuple[Catalog, Snapshot]](store.root)
        self._groups: InsertGroups | None = None
        self.feed_changes: KeptChanges = Lru(2)
        self._types_had: tuple[tuple[str, ...], list[EntityType]] | None = None
        if mode == "rw":
            self.recover(full=True)
            recover_dead_apply(self.environment())
        self.contract = load_contract(store.texts)
        """The accepted schema as it was read last."""
        if mode == "rw":
            keep_accepted(store.texts, self.coordinator.last_seen(MAIN), self.contract)
            queues = self.environment().queues
            reconcile_changed(self.coordinator, store.history, store.texts, queues)

    @property
    def embed_source(self) -> EmbedSource:
        """What the graph embeds with, by the settings as they are now."""
        settings = self.settings
        return EmbedSource(
            read_settings(os.environ, settings.embedding),
            settings.embedder,
            settings.embedding_model,
        )

    @property
    def uri(self) -> str:
        return str(self.store.root)

    def refresh(self) -> None:
        """Look again at every branch that was read, recovered first if the session may write.

        The others are read when they are first asked for.
        """
        self.read_contract()
        if self.mode == "rw":
            self.recover()
            recover_dead_apply(self.environment())
        self.coordinator.states.refresh()
        if self.mode == "rw":
            store, queues = self.store, self.environment().queues
            reconcile_changed(self.coordinator, store.history, store.texts, queues)

    def close(self) -> None:
        self._is_closed = True
        self.cache.background.stop()
        self.wait_for_self_care()
        if self.cache.derived is not None:
            self.cache.derived.texts.wait()
        self.cache.clear()
        self.store.tables.forget()

    # The schema

    def read_contract(self) -> SchemaContract:
        """The accepted schema now. Every call starts with this: it refuses a closed session."""
        if self._is_closed:
            raise BadRequestError(f"the handle of '{self.uri}' is closed — open the graph again")
        contract = load_accepted_contract(self.store.texts, self.coordinator, self.contract)
        with self._lock:
            self.contract = contract
        return contract

    def read_schema(self, branch: str) -> AcceptedSchema:
        """The schema that a branch is in now.

        Raises:
            BranchNotFound: There is no such branch.
        """
        current = self.read_contract()
        return read_schema(self.store.texts, self.coordinator.fresh(branch), current)

    def view_in_own_schema(
        self, snapshot: Snapshot, current: SchemaContract
    ) -> tuple[Catalog, Snapshot]:
        """A snapshot in the schema it was made under, in that of main when its text is gone."""
        own = find_catalog(self.store.texts, snapshot, current)
        if own is not None:
            return own, snapshot
        return current.catalog, project_to_schema(snapshot, None, current.catalog)

    def view_in_current_schema(self, snapshot: Snapshot) -> tuple[Catalog, Snapshot]:
        """A snapshot in the schema of its branch today, of main if that is gone, by identities."""
        own = find_catalog(self.store.texts, snapshot, self.read_contract())
        is_there = self.coordinator.has_branch(snapshot.branch)
        today = self.read_schema(snapshot.branch if is_there else MAIN).catalog
        return today, project_to_schema(snapshot, own, today)

    def list_types_had(self) -> list[EntityType]:
        """Every type that there is or was, on any branch; read again when a schema is added."""
        texts, current = self.store.texts, self.read_contract().catalog
        kept = (*list_kept(texts), current.shape_hash)
        if self._types_had is None or self._types_had[0] != kept:
            catalogs = [*load_catalogs(texts, kept[:-1]), current]
            self._types_had = kept, [each for known in catalogs for each in known.entities()]
        return self._types_had[1]

    # Reading

    def read(self, moment: Moment) -> tuple[Catalog, Snapshot]:
        """A schema, and a snapshot whose tables are in it; the past is in its own schema."""
        branch, commit, version, at = self._pin_revision(moment)
        if (commit, version, at) != (None, None, None):
            from omnigraph.manifest.revisions import resolve

            current = self.read_contract()
            snapshot = resolve(
                self.coordinator, branch=branch, commit=commit, version=version, at=at
            )
            return self.view_in_own_schema(snapshot, current)
        if self._is_closed:
            self.read_contract()
        name = branch if branch == MAIN else canonical_branch(branch)
        probe = self.snapshots.probe(name)
        found = self.snapshots.get(probe)
        if found is None:
            found = self._read_now(name)
            self.snapshots.put(probe, found, found[1].manifest_version)
        return found

    def find_branch_of(self, revision: str) -> str:
        """The branch that a policy decides by: the one that is named, or the commit's."""
        from omnigraph.manifest.revisions import find_revision, is_plain

        if is_plain(revision) and self.coordinator.has_branch(canonical_branch(revision)):
            return canonical_branch(revision)
        return find_revision(self.coordinator, revision).branch

    def _pin_revision(self, moment: Moment) -> Moment:
        """Read a branch as the revision that it is when there is no branch of that name."""
        branch = moment[0]
        if branch == MAIN or moment[1:] != (None, None, None):
            return moment
        from omnigraph.manifest.revisions import find_revision, is_plain

        if is_plain(branch):
            name = canonical_branch(branch)
            if self.coordinator.states.find(name) or self.coordinator.has_branch(name):
                return moment
            try:
                find_revision(self.coordinator, name)
            except BranchNotFound:
                return moment
        return MAIN, branch, None, None

    def _read_now(self, branch: str) -> tuple[Catalog, Snapshot]:
        current = self.read_contract()
        snapshot = self.coordinator.fresh(branch).snapshot()
        return read_schema(self.store.texts, snapshot, current).catalog, snapshot

    def read_as(
        self, moment: Moment, schema: str, ask: Callable[[Catalog, Snapshot], _T]
    ) -> tuple[Catalog, Snapshot, _T]:
        """Ask of a snapshot in its own schema; of the past with today's names where only they fit.

        `ask` raises when what is asked for does not fit the schema it is given.
        """
        if schema not in _SCHEMAS:
            known = " or ".join(f"'{each}'" for each in _SCHEMAS)
            raise BadRequestError(f"schema is {schema!r}, expected {known}")
        moment = self._pin_revision(moment)
        catalog, snapshot = self.read(moment)
        if moment[1:] == (None, None, None):
            return catalog, snapshot, ask(catalog, snapshot)
        if schema == "current":
            catalog, snapshot = self.view_in_current_schema(snapshot)
            return catalog, snapshot, ask(catalog, snapshot)
        try:
            return catalog, snapshot, ask(catalog, snapshot)
        except (TableNotFound, TableVersionNotFound):
            raise  # the name fits, and its rows are gone: today another type may have that name
        except (SourceError, BadRequestError, NotFoundError) as error:
            today, shown = self.view_in_current_schema(snapshot)
            if today is catalog:
                raise
            try:
                return today, shown, ask(today, shown)
            except OmnigraphError:
                raise error from None

    # Writing

    def permit(
        self,
        action: Action,
        *,
        actor: str | None,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> str | None:
        """Say who acts, once the policy lets them. Every write asks this first.

        Raises:
            PolicyError: It does not, or there is a policy and no actor is named.
        """
        who = actor if actor is not None else self._actor
        if self.policy is not None:
            self.policy.require(action, actor=who, branch=branch, target_branch=target_branch)
        return who

    def permit_somewhere(self, action: Action, *, actor: str | None) -> None:
        """Refuse who may not do it on any branch, before the store tells which one it is about.

        Raises:
            PolicyError: The policy denies it everywhere.
        """
        if self.policy is not None:
            who = actor if actor is not None else self._actor
            self.policy.require_somewhere(action, actor=who)

    def require_writable(self, branch: str = MAIN) -> AcceptedSchema:
        """The schema that a write to a branch is checked against.

        That of main is told by the schema files, which were just looked at; a branch has none.

        Raises:
            BadRequestError: The session is closed, or open for reading only.
            BranchNotFound: There is no such branch.
            ConflictError: A schema change is in progress.
        """
        if self.mode == "r":
            self.read_contract()
            raise BadRequestError(
                f"'{self.uri}' is open for reading only — open it with mode='rw' to change it"
            )
        if not self._is_closed:
            environment = self.environment()
            if has_staged_schema(environment):
                # A schema change died close to its end: what comes now is checked against it.
                self.recover(full=False)
            refuse_while_applying(environment)
        current = self.read_contract()
        # What the handle has seen, not what is there: a strict write is fenced on that. Another
        # branch of the name may be in another schema; looking there must not refresh the handle.
        states, seen = self.coordinator.states, self.coordinator.last_seen(branch)
        if branch != MAIN and states.read_branch_id(branch) != seen.branch_id:
            seen = states.read_anew(branch)
        return read_schema(self.store.texts, seen, current)

    def recover(self, *, full: bool = False, wait_for: Collection[QueueKey] | None = None) -> None:
        """Finish or undo what dead writers left; `full` says that this is an open."""
        recover_all(self.environment(), full=full, wait_for=wait_for)

    def recover_for_upkeep(self, branch: str = MAIN) -> Catalog:
        """Recover all that can be recovered now; returns the schema of a branch afterwards."""
        self.require_writable()
        self.recover()
        self.require_writable()
        return self.read_schema(branch).catalog

    @cached_property
    def _environment(self) -> WriteEnvironment:
        return replace(self.store.environment(self.coordinator), check_cache=self.cache)

    def environment(self) -> WriteEnvironment:
        """What a write works with."""
        return self._environment

    @property
    def groups(self) -> InsertGroups:
        """The inserts that wait to be committed together."""
        from omnigraph.write.group import InsertGroups

        with self._lock:
            if self._groups is None:
                self._groups = InsertGroups()
            return self._groups

    def write(self, request: WriteRequest, schema: AcceptedSchema) -> GraphCommit | None:
        """Recover what stands in the way, commit, and have compacted what is due for it."""
        from omnigraph.write.commit import run_write  # a session that only reads does without

        environment = replace(self.environment(), schema_name=schema.name)
        self.recover(wait_for=queue_keys(request.touched.all, request.branch))
        # Commits that are checked one by one are made one by one.
        is_checked = any(
            each.every_commit for each in self.coordinator.last_seen(request.branch).checks.values()
        )
        run = run_write if request.inserts is None or is_checked else self.groups.run
        commit = run(environment, request)
        if commit is not None:
            self.compact_if_due(request.branch, request.touched.written)
        return commit

    def compact_if_due(self, branch: str, table_keys: Collection[str]) -> None:
        """Have tables that were just written compacted, and the history cleaned up, when due."""
        from omnigraph.upkeep.self_care import SelfCare

        if not self._wants_self_care:
            return
        with self._lock:
            if self._self_care is None:
                self._self_care = SelfCare()
        self._self_care.compact_if_due(self.environment(), branch, table_keys)
        retention = self.settings.retention
        if retention is not None and branch == MAIN:
            projections = [self.store.history, self.store.audit]
            self._self_care.clean_if_due(self.environment(), projections, retention)

    def wait_for_self_care(self) -> None:
        """Wait for the compactions that writes have made due."""
        if self._self_care is not None:
            self._self_care.wait()

    def prefetch(self, branch: str, pins: Sequence[UpdatePin], *, all_of_it: bool = True) -> None:
        """Decode for queries what a branch is about to show, or only what few rows change."""
        if self.cache.is_empty:
            return
        try:
            before = self.coordinator.last_seen(branch).snapshot()
            catalog = read_schema(self.store.texts, before, self.contract).catalog
            with self.cache.prefetching():
                where = (catalog, self.store.tables, self.cache)
                prefetch(before, pins, *where, all_of_it=all_of_it)
        except Exception as error:  # the write is whole; the next query pays for the decoding
            log.warning("could not read ahead of a commit to '%s'", branch, exc_info=error)

    def _observer(self) -> CommitObserver | None:
        wanted = self.settings.read_ahead
        if wanted is None or wanted is True:
            return Prefetcher(self, all_of_it=wanted is True)
        return wanted or None
