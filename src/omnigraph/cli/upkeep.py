"""`omnigraph optimize`, `index`, `cleanup`, `repair`, `doctor`: keep a graph fast and intact.

Over a server each of them but `doctor` is a job: the command starts it and waits for its report.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.options import BranchOption

index = make_group("Build indexes.")


@index.command()
@command("index ensure", Capability.ANY, writes=True, uri="argument")
def ensure(call: Call, branch: BranchOption = None) -> None:
    """Build declared indexes that are missing."""
    call.announce()
    with call.open_graph("rw", doing="building indexes") as graph:
        report = graph.run_upkeep("ensure_indices", {"branch": call.branch(branch)})
    built = sorted(report["built"].items())
    lines = [
        *(f"{key}: built {', '.join(columns)}" for key, columns in built),
        *(
            f"{each['table_key']}: {each['column']} waits: {each['reason']}"
            for each in report["pending"]
        ),
    ]
    call.print_result(report, lines or ["every declared index is there"])


@command("optimize", Capability.ANY, writes=True, uri="argument")
def optimize(call: Call) -> None:
    """Merge small fragments and update indexes; query results stay the same."""
    call.announce()
    with call.open_graph("rw", doing="optimizing") as graph:
        report = graph.run_upkeep("optimize", {})
    call.print_result(report, map(_describe_optimized, report["tables"]))


def _describe_optimized(table: Json) -> str:
    if table["skipped"] is not None:
        return f"{table['table_key']}: skipped, {table['skipped']} — run `omnigraph repair`"
    outcome = "committed" if table["committed"] else "nothing to do"
    fragments = f"{table['fragments_removed']} fragments → {table['fragments_added']}"
    return f"{table['table_key']}: {outcome}, {fragments}"


@command("cleanup", Capability.ANY, writes=True, removes=True, uri="argument")
def cleanup(
    call: Call,
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Keep the newest N commits of each branch.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Remove versions older than 30s, 10m, 6h, 7d, 2w."),
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Remove them, instead of only listing.")
    ] = False,
) -> None:
    """Remove old versions that no branch, kept commit or pending recovery needs."""
    if keep is None and older_than is None:
        raise typer.BadParameter("give --keep, --older-than, or both")
    if confirm:
        call.announce()
        call.consent("remove old versions")
    options = {"keep": keep, "older_than": older_than, "confirm": confirm}
    with call.open_graph("rw", doing="cleaning up") as graph:
        report = graph.run_upkeep("cleanup", options)
    verb = "removed" if confirm else "would remove"
    lines = (_describe_cleaned(each, verb) for each in report["tables"])
    call.print_result(report, lines)
    if not (confirm or call.as_json):
        print("nothing was removed; --confirm removes", file=sys.stderr)


def _describe_cleaned(table: Json, verb: str) -> str:
    why = "" if table["error"] is None else f" — {table['error']}"
    count, size = table["old_versions_removed"], table["bytes_removed"]
    return f"{table['table_key']}: {verb} {count} versions, {size} bytes{why}"


@command("repair", Capability.ANY, writes=True, uri="argument")
def repair(
    call: Call,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Adopt them, instead of only listing.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="With --confirm: also adopt versions that cannot be verified."
        ),
    ] = False,
) -> None:
    """List tables whose HEAD is ahead of the graph; adopt versions that verify as safe."""
    if force and not confirm:
        raise typer.BadParameter("--force needs --confirm")
    if confirm:
        call.announce()
    with call.open_graph("rw", doing="repairing") as graph:
        report = graph.run_upkeep("repair", {"confirm": confirm, "force": force})
    call.print_result(report, map(_describe_repaired, report["tables"]))
    if confirm and any(table["action"] == "refused" for table in report["tables"]):
        raise typer.Exit(1)


def _describe_repaired(table: Json) -> str:
    operations = f" ({', '.join(table['operations'])})" if table["operations"] else ""
    return (
        f"{table['table_key']}: pin {table['manifest_version']}, "
        f"HEAD {table['lance_head_version']}: "
        f"{table['classification']} → {table['action']}{operations}"
    )


@command("doctor", Capability.ANY, uri="argument")
def doctor(call: Call) -> None:
    """Report versions, disk, fragments, indexes and recovery, and what to do next."""
    with call.open_graph("r", doing="looking") as graph:
        report = graph.doctor()
    call.print_result(report, _doctor_lines(report))


def _doctor_lines(report: Json) -> Iterator[str]:
    for name, version in report["versions"].items():
        yield f"{name}: {version}"
    yield f"java: {report['java'] or 'not found'}"
    if report["disk_free_bytes"] is not None and report["disk_total_bytes"] is not None:
        sizes = (report["disk_free_bytes"], report["disk_total_bytes"])
        free, total = (size // 2**20 for size in sizes)
        yield f"disk: {free} of {total} MiB free, {report['file_system']}"
    yield f"branches: {report['branches']}, commits: {report['commits']}"
    for table in report["tables"]:
        yield f"{table['table_key']}: {table['rows']} rows in {table['fragments']} fragments"
    for line in report["advice"] or ("all is well",):
        yield f"→ {line}"
