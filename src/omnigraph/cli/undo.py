"""`omnigraph revert`, `cherry-pick`, `restore`: take changes back, or make them again elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from omnigraph.cli.branch import (
    PreviewFlag,
    ResolveOption,
    check_lines,
    count_changes,
    describe_tables,
    print_conflicts,
    read_resolution,
    tell_outcome,
)
from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import BranchOption, MessageOption, MetaOption, TypesOption, parse_note
from omnigraph.commit_note import CommitNote
from omnigraph.errors import MergeConflicts
from omnigraph.undo_calls import PickCall, RestoreCall, RevertCall, UndoCall
from omnigraph.wire import parse_conflict

CommitsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMIT...", help="Commits: ids or other revisions, such as main~1."),
]


@command("revert", Capability.ANY, writes=True, uri="option")
def revert(
    call: Call,
    commits: CommitsArgument = None,
    of_actor: Annotated[
        str | None, typer.Option("--actor", help="All commits of this actor, instead of names.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help="All commits with this session in their metadata."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="With --actor or --session: since this time.")
    ] = None,
    branch: BranchOption = None,
    preview: PreviewFlag = False,
    resolve: ResolveOption = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Take back what commits did to a branch, as one commit or not at all."""
    chosen = of_actor, session, since
    target, choices = call.branch(branch), read_resolution(resolve)
    asked = RevertCall(commits or [], target, *chosen, choices)
    _undo(call, asked, parse_note(message, meta), preview=preview)


@command("cherry-pick", Capability.ANY, writes=True, uri="option")
def cherry_pick(
    call: Call,
    into: Annotated[str, typer.Option("--into", help="The branch to change.")],
    commits: CommitsArgument = None,
    preview: PreviewFlag = False,
    resolve: ResolveOption = None,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Make the changes of commits again on another branch, as one commit or not at all."""
    asked = PickCall(commits or [], into, read_resolution(resolve))
    _undo(call, asked, parse_note(message, meta), preview=preview)


@command("restore", Capability.ANY, writes=True, uri="option")
def restore(
    call: Call,
    source: Annotated[
        str, typer.Option("--from", help="The state to go back to: a branch, tag or commit.")
    ],
    types: TypesOption = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", help="Only the node or edge with this id; may be repeated."),
    ] = None,
    branch: BranchOption = None,
    preview: PreviewFlag = False,
    message: MessageOption = None,
    meta: MetaOption = None,
) -> None:
    """Make a branch, or some types or ids of it, what an earlier state shows, as one commit."""
    asked = RestoreCall(source, call.branch(branch), types, ids)
    _undo(call, asked, parse_note(message, meta), preview=preview)


def _undo(call: Call, asked: UndoCall, note: CommitNote, *, preview: bool) -> None:
    if preview:
        with call.open_graph("r", doing="comparing") as graph:
            found = graph.preview_undo(asked)
        call.print_result(found, _preview_lines(found, asked.verb))
        return
    call.announce()
    try:
        with call.open_graph("rw", doing="changing") as graph:
            done = graph.undo(asked, note)
    except MergeConflicts as error:
        print_conflicts(call, error)
        raise typer.Exit(1) from None
    call.print_result(done, _lines(done, asked.verb))


def _lines(done: Json, verb: str) -> Iterator[str]:
    commit = done["commit"]
    if commit is None:
        yield f"nothing to {verb} on {done['target']}: no commit"
        return
    yield f"{verb} on {done['target']}: {commit['message']}"
    yield f"commit {commit['graph_commit_id']}"
    if "tables" in done:
        yield from describe_tables(done)
    else:
        yield f"{done['affected_nodes']} nodes, {done['affected_edges']} edges"


def _preview_lines(found: Json, verb: str) -> Iterator[str]:
    yield f"{verb} on {found['target']} would be: {tell_outcome(found)}"
    yield count_changes(found["changes"])
    for conflict in map(parse_conflict, found["conflicts"]):
        yield f"conflict: {conflict}: {conflict.message}"
    yield from check_lines(found)
