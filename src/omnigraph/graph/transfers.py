"""Transfers: graphs brought to another store, and back from a backup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.graph.arguments import check_call
from omnigraph.graph.store import Store, open_store
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.storage.durability import Durability

if TYPE_CHECKING:
    from omnigraph.graph.session import Session
    from omnigraph.transfer.contents import Source
    from omnigraph.transfer.remotes import Remote
    from omnigraph.transfer.result import TransferResult


def open_far(session: Session, uri: str | Path, storage_options: Mapping[str, str] | None) -> Store:
    """The store at another location; its options are those of the session unless given."""
    tables = session.store.tables
    options = tables.storage_options if storage_options is None else storage_options
    return open_store(uri, options, tables.durability)


def to_source(session: Session) -> Source:
    """An open graph to copy from."""
    from omnigraph.transfer.contents import Source

    store = session.store
    return Source(session.environment(), store.manifest, (store.history, store.audit))


@contextmanager
def open_source(
    session: Session, uri: str | Path, storage_options: Mapping[str, str] | None
) -> Iterator[Source]:
    """Another store, opened to be copied from."""
    from omnigraph.graph.open_graph import open as open_graph

    options = session.store.tables.storage_options if storage_options is None else storage_options
    with open_graph(uri, mode="r", storage_options=options) as graph:
        yield to_source(graph._session)


def find_remote(session: Session, given: str | Path, name: str | None) -> Remote:
    """The store that a call is about: one that has a name here, or one at an address.

    Its branches are fetched under `name`, that of the remote, or as `origin`.

    Raises:
        RemoteNotFound: It can only be a name, and no store is called so.
    """
    from omnigraph.transfer.remotes import ORIGIN, Remote, Remotes, check_name

    found = Remotes(session.store.texts).get(given) if isinstance(given, str) else None
    if found is None:
        found = Remote(ORIGIN, str(given))
    return found if name is None else Remote(check_name(name), found.uri)


def fetch_branches(
    session: Session, source: Source, name: str, branch: str | None, *, prune: bool = False
) -> TransferResult:
    """Receive branches as `{name}/{branch}`, and the tags of their commits.

    One that was reset or made again at the source is received anew. With `prune` those that are
    gone there are deleted.
    """
    from omnigraph.branch.delete import delete_branch
    from omnigraph.errors import NotFastForward
    from omnigraph.transfer.receive import receive
    from omnigraph.transfer.result import TransferResult
    from omnigraph.transfer.tags import receive_tags

    environment, history = session.environment(), session.store.history
    moved = TransferResult()
    session.recover()
    coordinator = source.environment.coordinator
    names = coordinator.branches() if branch is None else [canonical_branch(branch)]
    # What the source itself has fetched from others is not its own.
    for each in [each for each in names if not each.startswith(f"{name}/")]:
        tracking = f"{name}/{each}"
        if _follow_reset(session, source, each, tracking):
            moved += TransferResult(renewed=(tracking,))
        try:
            moved += receive(source, each, environment, tracking, history, is_checked=False)
        except NotFastForward:
            delete_branch(environment, tracking, history)
            moved += receive(source, each, environment, tracking, history, is_checked=False)
            moved += TransferResult(renewed=(tracking,))
        moved += receive_tags(source, each, environment)
    if prune:
        there = {f"{name}/{each}" for each in coordinator.branches()}
        for each in session.coordinator.branches():
            if each.startswith(f"{name}/") and each not in there:
                delete_branch(environment, each, history)
                moved += TransferResult(pruned=(each,))
    return moved


def _follow_reset(session: Session, source: Source, branch: str, tracking: str) -> bool:
    """Take a fetched branch back if that is all that happened at its source; whether it was."""
    from omnigraph.branch.reset import reset_branch
    from omnigraph.write.evidence import has_commit

    coordinator = session.coordinator
    if not coordinator.has_branch(tracking):
        return False
    head = source.environment.coordinator.fresh(branch).head.commit_id
    here = coordinator.fresh(tracking)
    if here.head.commit_id == head or not has_commit(here, head):
        return False
    return reset_branch(session.environment(), tracking, head, is_mirror=True).commits_dropped > 0


def advance(
    session: Session, source: Source, name: str, branch: str, actor: str | None
) -> tuple[TransferResult, bool]:
    """Fetch a branch and move the one of this name there; True when it takes a merge."""
    from omnigraph.errors import NotFastForward
    from omnigraph.policy import Action
    from omnigraph.transfer.receive import receive

    moved = fetch_branches(session, source, name, branch)
    coordinator = session.coordinator
    if coordinator.has_branch(branch):
        fetched = coordinator.fresh(f"{name}/{branch}")
        if fetched.schema_name != coordinator.fresh(branch).schema_name:
            session.permit(Action.SCHEMA_APPLY, actor=actor, target_branch=branch)
    try:
        environment, history = session.environment(), session.store.history
        receive(to_source(session), f"{name}/{branch}", environment, branch, history)
    except NotFastForward:
        return moved, True
    return moved, False


def send(
    session: Session, uri: str | Path, branch: str, storage_options: Mapping[str, str] | None
) -> TransferResult:
    """Have another store receive a branch, and the tags of its commits."""
    from omnigraph.graph.open_graph import open as open_graph
    from omnigraph.transfer.receive import receive
    from omnigraph.transfer.tags import receive_tags

    tables = session.store.tables
    options = tables.storage_options if storage_options is None else storage_options
    with open_graph(
        uri, storage_options=options, durability=tables.durability, self_care=False
    ) as far:
        source, target = to_source(session), far._session.environment()
        moved = receive(source, branch, target, branch, far._session.store.history)
        return moved + receive_tags(source, branch, target)


@check_call
def clone(
    src: str | Path,
    dst: str | Path,
    *,
    storage_options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
    durability: Durability = "power",
) -> TransferResult:
    """Copy a graph with all branches, tags and commits to an empty location.

    The source may be written to meanwhile: the copy is one state of it. It opens once it is whole;
    when the call is interrupted, the same call goes on. The copy knows the source as the remote
    `origin`. `storage_options` are those of the source,
    and of the target too unless `target_options` are given.

    Raises:
        GraphNotFound: There is no graph at `src`.
        GraphExists: There is one at `dst`.
        DamagedFile: A file of the source is not what was written.
    """
    from omnigraph.graph.open_graph import open as open_graph
    from omnigraph.transfer.clone import clone_graph

    options = storage_options if target_options is None else target_options
    store = open_store(dst, options, durability)
    with open_graph(src, mode="r", storage_options=storage_options) as graph:
        found = clone_graph(
            to_source(graph._session), store.texts, store.tables.storage_options, durability
        )
    _settle_in(dst, options, durability)
    _name_origin(store, src)
    return found


@check_call
def restore_backup(
    src: str | Path,
    dst: str | Path,
    *,
    name: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
    durability: Durability = "power",
) -> TransferResult:
    """Make a graph of a backup, the latest or the one of this name, at an empty location.

    Raises:
        NotFoundError: There is no such backup.
        GraphExists: There is a graph at `dst`.
        DamagedFile: An object of the backup does not have its hash. Nothing can be opened.
    """
    from omnigraph.transfer.backup import restore_graph

    options = storage_options if target_options is None else target_options
    source = open_store(src, storage_options, durability)
    target = open_store(dst, options, durability)
    found = restore_graph(
        source.texts, storage_options or {}, target.texts, options or {}, name=name
    )
    _settle_in(dst, options, durability)
    return found


@check_call
def list_backups(
    src: str | Path, *, storage_options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The backups at a location, the latest last: name, time, branches with their heads."""
    from omnigraph.transfer.backup import describe_backups

    return describe_backups(open_store(src, storage_options, "power").texts)


def _name_origin(store: Store, src: str | Path) -> None:
    """Remember where a clone came from, unless its address has a secret."""
    from omnigraph.errors import BadRequestError
    from omnigraph.transfer.remotes import ORIGIN, Remotes

    with suppress(BadRequestError):
        Remotes(store.texts).add(ORIGIN, str(src))


def _settle_in(
    uri: str | Path, storage_options: Mapping[str, str] | None, durability: Durability
) -> None:
    """Open a copy once: its files learn where they are, and its history table is made."""
    from omnigraph.graph.open_graph import open as open_graph

    open_graph(uri, storage_options=storage_options, durability=durability).close()
