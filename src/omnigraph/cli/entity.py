"""`omnigraph history`, `blame`: how one node or edge came to be what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.history import describe_time
from omnigraph.cli.options import BranchOption
from omnigraph.cli.patch_text import cut

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The type.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the node or edge.")]


@command("history", Capability.ANY, uri="option", pages=True)
def history(call: Call, type_: TypeArgument, id_: IdArgument, branch: BranchOption = None) -> None:
    """Show what every commit did to a node or edge, newest first."""
    with call.open_graph("r") as graph:
        found = graph.history(type_, id_, call.branch(branch))
    call.print_result(found, [*map(_describe_change, found["changes"]), *found["notes"]])


@command("blame", Capability.ANY, uri="option", pages=True)
def blame(call: Call, type_: TypeArgument, id_: IdArgument, branch: BranchOption = None) -> None:
    """Show which commit wrote each value of a node or edge, who made it, and when."""
    with call.open_graph("r") as graph:
        found = graph.blame(type_, id_, call.branch(branch))
    call.print_result(found, _blame_lines(found["properties"]))


def _describe_change(change: Json) -> str:
    commit = change["commit"]
    branch = commit["manifest_branch"] or "main"
    facts = [commit["graph_commit_id"], describe_time(commit["created_at"]), branch]
    what = f"{change['op']}{_describe_values(change)}"
    return " ".join([*facts, _describe_maker(commit["actor_id"], change["through"]) + what])


def _describe_maker(actor: str | None, through: str | None) -> str:
    by = f"by {actor} " if actor else ""
    return f"{by}through {through} " if through else by


def _describe_values(change: Json) -> str:
    before, after = change.get("before") or {}, change.get("after") or {}
    match change["op"]:
        case "update":
            pairs = [
                f"{name}: {cut(before.get(name))} → {cut(after.get(name))}"
                for name in change.get("changed", ())
            ]
            return f" {', '.join(pairs)}"
        case "insert":
            shown = {name: value for name, value in after.items() if value is not None}
            return f" {', '.join(f'{name}: {cut(value)}' for name, value in shown.items())}"
        case _:
            return ""


def _blame_lines(properties: Json) -> Iterator[str]:
    width = max(map(len, properties), default=0)
    for name, each in properties.items():
        value = cut(each["value"])
        if each["commit_id"] is None:
            yield f"{name:<{width}}  {value}  older history was removed by cleanup"
            continue
        maker = _describe_maker(each["actor"], each["through"]).rstrip()
        facts = [each["commit_id"], describe_time(each["at"]), *([maker] if maker else [])]
        yield f"{name:<{width}}  {value}  {' '.join(facts)}"
        # A server of an earlier version does not tell.
        yield from (f"{'':<{width}}  {_describe_lost(lost)}" for lost in each.get("lost", ()))


def _describe_lost(lost: Json) -> str:
    value = "a deletion" if lost["is_deletion"] else cut(lost["value"])
    maker = _describe_maker(lost["actor"], None).rstrip()
    facts = [lost["commit_id"], describe_time(lost["at"]), lost["branch"]]
    made = " ".join([*facts, *([maker] if maker else [])])
    return f"lost: {value}  {made}; merge {lost['merge_id']} kept {lost['kept']}"
