"""`omnigraph optimize`, `index`, `cleanup`, `repair`, `doctor`: keep a graph fast and whole."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.options import BranchOption
from omnigraph.cli.output import JsonFlag, print_json
from omnigraph.cli.progress import working
from omnigraph.errors import BadRequestError

index = typer.Typer(help="Build indexes.", no_args_is_help=True, rich_markup_mode=None)

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def duration(text: str) -> timedelta:
    """`30`, `45s`, `10m`, `6h`, `7d` or `2w`."""
    found = re.fullmatch(r"(\d{1,9})([smhdw]?)", text.strip())
    if found is None:
        raise BadRequestError(f"'{text}' is not a duration — a number and s, m, h, d or w")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


@index.command()
@command("index ensure", Capability.DIRECT, writes=True, uri="argument")
def ensure(call: Call, branch: BranchOption = None, as_json: JsonFlag = False) -> None:
    """Build the declared indexes that are missing."""
    call.announce()
    with call.open_store("rw") as graph, working("building indexes", quiet=call.flags.quiet):
        report = graph.ensure_indices(call.branch(branch))
    if as_json:
        print_json(report.to_json())
        return
    for key, columns in sorted(report.built.items()):
        print(f"{key}: built {', '.join(columns)}")
    for waiting in report.pending:
        print(f"{waiting.table_key}: {waiting.column} waits: {waiting.reason}")
    if not report.built and not report.pending:
        print("every declared index is there")


@command("optimize", Capability.DIRECT, writes=True, uri="argument")
def optimize(call: Call, as_json: JsonFlag = False) -> None:
    """Merge small fragments and bring indexes up to date; answers stay the same."""
    call.announce()
    with call.open_store("rw") as graph, working("optimizing", quiet=call.flags.quiet):
        report = graph.optimize()
    if as_json:
        print_json(report.to_json())
        return
    for each in report.tables:
        if each.skipped is not None:
            print(f"{each.table_key}: skipped, {each.skipped} — run `omnigraph repair`")
        else:
            what = "committed" if each.committed else "nothing to do"
            print(
                f"{each.table_key}: {what}, "
                f"{each.fragments_removed} fragments → {each.fragments_added}"
            )


@command("cleanup", Capability.DIRECT, writes=True, removes=True, uri="argument")
def cleanup(
    call: Call,
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Keep this many commits of each branch.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Remove what is older: 30s, 10m, 6h, 7d, 2w.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Remove; else only look.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove old versions that no branch, commit to keep or pending recovery needs."""
    if keep is None and older_than is None:
        raise typer.BadParameter("give --keep, --older-than, or both")
    if confirm:
        call.announce()
        call.consent("remove old versions", as_json=as_json)
    age = None if older_than is None else duration(older_than)
    with call.open_store("rw") as graph, working("cleaning up", quiet=call.flags.quiet):
        report = graph.cleanup(keep=keep, older_than=age, confirm=confirm)
    if as_json:
        print_json(report.to_json())
        return
    verb = "removed" if confirm else "would remove"
    for each in report.tables:
        trouble = f" — {each.error}" if each.error is not None else ""
        print(
            f"{each.table_key}: {verb} {each.old_versions_removed} versions, "
            f"{each.bytes_removed} bytes{trouble}"
        )
    if not confirm:
        print("nothing was removed; --confirm removes", file=sys.stderr)


@command("repair", Capability.DIRECT, writes=True, uri="argument")
def repair(
    call: Call,
    confirm: Annotated[bool, typer.Option("--confirm", help="Publish; else only look.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --confirm: publish what cannot be verified too.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Look at tables whose HEAD is ahead of the graph, and publish what is safe."""
    if force and not confirm:
        raise typer.BadParameter("--force needs --confirm")
    if confirm:
        call.announce()
    with call.open_store("rw") as graph, working("repairing", quiet=call.flags.quiet):
        report = graph.repair(confirm=confirm, force=force)
    if as_json:
        print_json(report.to_json())
    else:
        for each in report.tables:
            made_by = f" ({', '.join(each.operations)})" if each.operations else ""
            print(
                f"{each.table_key}: pin {each.manifest_version}, HEAD {each.lance_head_version}: "
                f"{each.classification} → {each.action}{made_by}"
            )
    if confirm and report.has_refusals:
        raise typer.Exit(1)


@command("doctor", Capability.DIRECT, uri="argument")
def doctor(call: Call, as_json: JsonFlag = False) -> None:
    """Say how a graph is: versions, disk, fragments, indexes, recovery, and what to do."""
    with call.open_store("r") as graph, working("looking", quiet=call.flags.quiet):
        report = graph.doctor()
    if as_json:
        print_json(report.to_json())
        return
    for name, version in report.versions.items():
        print(f"{name}: {version}")
    print(f"java: {report.java or 'not found'}")
    if report.disk_free_bytes is not None and report.disk_total_bytes is not None:
        free, total = (size // 2**20 for size in (report.disk_free_bytes, report.disk_total_bytes))
        print(f"disk: {free} of {total} MiB free, {report.file_system}")
    print(f"branches: {report.branches}, commits: {report.commits}")
    for table in report.tables:
        print(f"{table.table_key}: {table.rows} rows in {table.fragments} fragments")
    for line in report.advice or ("all is well",):
        print(f"→ {line}")
