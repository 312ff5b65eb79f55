"""Versions: the calls of a graph about its states, schemas, and copies in other stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.catalog import Catalog
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.write.recovery import retry_after_recovery

if TYPE_CHECKING:
    from omnigraph.branch.apply_checks import ChecksResult
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.reset import ResetResult
    from omnigraph.errors import CheckFailure
    from omnigraph.graph.session import Session
    from omnigraph.manifest.checks import Check
    from omnigraph.manifest.tags import Tag
    from omnigraph.transfer.remotes import Remote, Remotes
    from omnigraph.transfer.result import TransferResult
    from omnigraph.upkeep.apply_schema import SchemaResult
    from omnigraph.upkeep.schema_plan import SchemaPlan


class VersionCalls:
    """What `Graph` can do with its past; a part of that class."""

    _session: Session

    def reset_branch(
        self,
        name: str,
        to: str,
        *,
        if_commit: str | None = None,
        preview: bool = False,
        actor: str | None = None,
    ) -> ResetResult:
        """Take a branch that no other branch uses back to an earlier commit of its line.

        What came after it is dropped: no branch knows it any more. A tag on a dropped commit stays
        readable. With `preview` nothing is changed, and the result says what would be dropped.

        Raises:
            BadRequestError: It is `main`, or `to` is not on its line.
            BranchInUse: Another branch comes from a commit that would be dropped.
            PreconditionFailed: The head is not `if_commit`. Nothing was changed.
        """
        from omnigraph.branch.reset import reset_branch

        session, branch = self._session, canonical_branch(name)
        environment = session.environment()
        if preview:
            session.read_contract()
            return reset_branch(environment, branch, to, if_commit=if_commit, is_preview=True)
        session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=branch)
        session.require_writable()
        session.recover()
        return retry_after_recovery(
            environment, None, lambda: reset_branch(environment, branch, to, if_commit=if_commit)
        )

    def tag(
        self, name: str, at: str = MAIN, message: str | None = None, *, actor: str | None = None
    ) -> Tag:
        """Give the commit that a revision names a name. It can be read as long as the tag is there.

        Raises:
            TagExists: The name stands for another commit.
            CommitStateGone: A cleanup has removed the state of the commit.
        """
        from omnigraph.branch.tag import create_tag
        from omnigraph.manifest.revisions import TAG_PREFIX

        session, wanted = self._session, f"{TAG_PREFIX}{name}"
        branch = session.find_branch_of(at)
        who = session.permit(Action.BRANCH_CREATE, actor=actor, branch=branch, target_branch=wanted)
        session.require_writable()
        return create_tag(session.environment(), name, at, message=message, actor=who)

    def tags(self) -> list[Tag]:
        """Every tag, by name."""
        self._session.read_contract()
        return [tag for tag, _ in self._session.coordinator.tags]

    def delete_tag(self, name: str, *, actor: str | None = None) -> None:
        """Remove a tag; its commit stays as long as a cleanup would leave it anyway."""
        from omnigraph.branch.tag import delete_tag
        from omnigraph.manifest.revisions import TAG_PREFIX

        session = self._session
        wanted = f"{TAG_PREFIX}{name}"
        session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=wanted)
        session.require_writable()
        delete_tag(session.environment(), name)


class CheckCalls:
    """What `Graph` can do with the queries that have to hold; a part of that class."""

    _session: Session

    def checks(self, branch: str = MAIN) -> list[Check]:
        """The checks of a branch or another revision, by name."""
        from omnigraph.manifest.revisions import find_revision

        self._session.read_contract()
        found = find_revision(self._session.coordinator, branch).checks
        return [found[name] for name in sorted(found)]

    def apply_checks(
        self,
        checks: str | Path | Sequence[Check | str | Path],
        *,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ChecksResult:
        """Make these the checks of a branch, as one commit; others that it has go.

        A directory stands for its `.gq` files, with their settings in `checks.yaml`.

        Raises:
            BadRequestError: A query does not fit the schema, or is no read without parameters.
            ChecksFailed: A new check does not hold now. Nothing is changed.
        """
        from omnigraph.branch.apply_checks import apply_checks
        from omnigraph.commit_note import read_note
        from omnigraph.graph.check_files import read_checks
        from omnigraph.manifest.checks import Check

        given = [checks] if isinstance(checks, str | Path) else list(checks)
        files = read_checks([each for each in given if not isinstance(each, Check)])
        wanted = [*files, *(each for each in given if isinstance(each, Check))]
        session, target = self._session, canonical_branch(branch)
        who = session.permit(Action.SCHEMA_APPLY, actor=actor, target_branch=target)
        catalog, note = session.require_writable(target).catalog, read_note(message, metadata)
        environment = session.environment()
        return apply_checks(environment, catalog, target, wanted, actor=who, note=note)

    def run_checks(self, branch: str = MAIN) -> list[CheckFailure]:
        """The checks of a branch or another revision that do not hold there, with their rows."""
        from omnigraph.write.checks import run_checks

        session = self._session
        catalog, snapshot = session.read((branch, None, None, None))
        checks = [snapshot.checks[name] for name in sorted(snapshot.checks)]
        return run_checks(checks, snapshot, catalog, session.store.tables, session.cache)


class SchemaCalls:
    """What `Graph` can do with schemas; a part of that class."""

    _session: Session

    @property
    def schema(self) -> str:
        """The accepted schema of `main`, as it was written."""
        return self._session.read_contract().source

    @property
    def catalog(self) -> Catalog:
        """The types of the accepted schema of `main`."""
        return self._session.read_contract().catalog

    def branch_schema(self, branch: str = MAIN) -> str:
        """The accepted schema of a branch, as it was written."""
        return self._session.read_schema(canonical_branch(branch)).source

    def branch_catalog(self, branch: str = MAIN) -> Catalog:
        """The types of the accepted schema of a branch."""
        return self._session.read_schema(canonical_branch(branch)).catalog

    def plan_schema(
        self, text: str, *, branch: str = MAIN, allow_data_loss: bool = False
    ) -> SchemaPlan:
        """What applying a schema would do, step by step and table by table. Changes nothing."""
        from omnigraph.upkeep.schema_plan import plan_schema

        session = self._session
        catalog, snapshot = session.read((canonical_branch(branch), None, None, None))
        return plan_schema(
            session.store.tables, snapshot, catalog, text, allow_data_loss=allow_data_loss
        )

    def apply_schema(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> SchemaResult:
        """Make `text` the schema of a branch, as one commit, or change nothing.

        Other branches stay in the schema they are in.

        Raises:
            MigrationError: A step is not supported.
            ConflictError: Another change is in progress, or `allow_data_loss` would remove for
                good what another branch has.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.upkeep.apply_schema import apply_schema

        session, target = self._session, canonical_branch(branch)
        who = session.permit(Action.SCHEMA_APPLY, actor=actor, target_branch=target)
        session.require_writable(target)
        environment, note = session.environment(), read_note(message, metadata)
        session.recover()
        result = retry_after_recovery(
            environment,
            None,
            lambda: apply_schema(
                environment,
                text,
                branch=target,
                allow_data_loss=allow_data_loss,
                actor=who,
                note=note,
            ),
        )
        session.read_contract()
        return result


class TransferCalls:
    """What `Graph` can do with other stores; a part of that class."""

    _session: Session
    merge: Callable[..., Any]

    def backup(
        self, dst: str | Path, *, storage_options: Mapping[str, str] | None = None
    ) -> TransferResult:
        """Write a backup of the whole graph below `dst`, which may hold earlier ones.

        Every file is stored once, under its SHA-256, and every backup is a list of them.
        `storage_options` are those of `dst`; without them, those of this graph.

        Raises:
            DamagedFile: A file is not what was written; there is no new backup.
        """
        from omnigraph.graph.transfers import open_far, to_source
        from omnigraph.transfer.backup import write_backup

        session = self._session
        session.read_contract()
        store = open_far(session, dst, storage_options)
        return write_backup(to_source(session), store.texts, store.tables.storage_options)

    def fetch(
        self,
        src: str | Path,
        *,
        name: str | None = None,
        branch: str | None = None,
        prune: bool = False,
        storage_options: Mapping[str, str] | None = None,
        actor: str | None = None,
    ) -> TransferResult:
        """Bring the branches of another store of this graph here, as `{name}/{branch}`.

        `src` is the name of a remote or an address; `name` is that of the remote, or `origin`. With
        `branch` only that one. Branches of this graph do not change. Tags of the commits come
        along. With `prune` fetched branches go that are gone there. `storage_options` are those of
        `src`; without them, those of this graph.

        Raises:
            UnrelatedHistories: `src` is another graph.
        """
        from omnigraph.graph.transfers import fetch_branches, find_remote, open_source

        session = self._session
        remote = find_remote(session, src, name)
        tracking = f"{remote.name}/{branch or '*'}"
        who = session.permit(Action.BRANCH_CREATE, actor=actor, target_branch=tracking)
        if prune:
            session.permit(Action.BRANCH_DELETE, actor=who, target_branch=tracking)
        session.require_writable()
        with open_source(session, remote.uri, storage_options) as source:
            return fetch_branches(session, source, remote.name, branch, prune=prune)

    def pull(
        self,
        src: str | Path,
        branch: str = MAIN,
        *,
        name: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        actor: str | None = None,
        resolve: Resolution | None = None,
    ) -> TransferResult:
        """Bring a branch of another store here, and what it has into the branch of that name.

        The branch moves to the fetched head if that comes from its own; otherwise both are merged,
        with the choices `resolve`, as by `merge`. `src` and `name` are those of `fetch`.

        Raises:
            MergeConflicts: Both sides changed something differently. The branch is unchanged, and
                what was fetched stays as `{name}/{branch}`.
            ChecksFailed: A check of the branch would not hold; the same.
            ApprovalsMissing: Merges into the branch need approvals. Fetch, and open a request.
            UnrelatedHistories: `src` is another graph.
        """
        from omnigraph.graph.merges import permit_merge
        from omnigraph.graph.transfers import advance, find_remote, open_source

        session = self._session
        remote, target = find_remote(session, src, name), canonical_branch(branch)
        fetched = f"{remote.name}/{target}"
        who = permit_merge(session, fetched, target, actor)
        session.require_writable()
        with open_source(session, remote.uri, storage_options) as source:
            moved, is_merge = advance(session, source, remote.name, target, who)
        if is_merge:
            self.merge(fetched, into=target, actor=who, resolve=resolve)
        return moved

    def push(
        self,
        dst: str | Path,
        branch: str = MAIN,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> TransferResult:
        """Bring a branch to another store of this graph. It moves there, or is made.

        `dst` is the name of a remote or an address. Tags of the commits come along.

        Raises:
            NotFastForward: The branch has commits there that are not here: pull first.
            ChecksFailed: A check of the branch would not hold there. Nothing changed.
            UnrelatedHistories: `dst` is another graph.
        """
        from omnigraph.graph.transfers import find_remote, send

        session = self._session
        session.read_contract()
        remote = find_remote(session, dst, None)
        return send(session, remote.uri, canonical_branch(branch), storage_options)

    # Names for other stores

    def add_remote(self, name: str, uri: str | Path, *, actor: str | None = None) -> Remote:
        """Name another store of this graph: `push(name)`, and branches `{name}/{branch}`.

        The address is kept beside the graph, and nothing that it takes to open it.

        Raises:
            ConflictError: The name stands for another store.
            BadRequestError: The name cannot begin a branch's, or the address has a secret in it.
        """
        return self._remotes(actor, name).add(name, str(uri))

    def remove_remote(self, name: str, *, actor: str | None = None) -> Remote:
        """Forget another store. Branches that were fetched from it stay.

        Raises:
            NotFoundError: There is none of that name.
        """
        return self._remotes(actor, name).remove(name)

    def remotes(self) -> list[Remote]:
        """The other stores that have a name here."""
        from omnigraph.transfer.remotes import Remotes

        return Remotes(self._session.store.texts).list()

    def _remotes(self, actor: str | None, name: str) -> Remotes:
        """Those of the store, for a caller who may fetch under that name."""
        from omnigraph.transfer.remotes import Remotes

        session = self._session
        session.permit(Action.BRANCH_CREATE, actor=actor, target_branch=f"{name}/*")
        session.require_writable()
        return Remotes(session.store.texts)
