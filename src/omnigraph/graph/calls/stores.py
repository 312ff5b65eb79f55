"""Store calls: backups, and exchange with other stores of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.transfer.remotes import Remote, Remotes
    from omnigraph.transfer.result import TransferResult


class StoreCalls(GraphPart):
    """Other stores: backups, remotes, fetch, pull and push."""

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
            self._graph.merge(fetched, into=target, actor=who, resolve=resolve)
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
