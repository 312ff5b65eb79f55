"""`omnigraph jobs`: upkeep that a server was given, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.command import command, make_group
from omnigraph.cli.flags import Capability
from omnigraph.cli.graph_commands import Json
from omnigraph.cli.history import describe_time

app = make_group("See what upkeep a server has run.")


@app.command("list")
@command("jobs list", Capability.ANY, uri="argument")
def list_(call: Call) -> None:
    """List the newest jobs, newest first."""
    with call.open_graph("r") as graph:
        found = graph.jobs()
    call.print_result(found, map(_summarize, found["jobs"]))


@app.command()
@command("jobs show", Capability.ANY, uri="option")
def show(call: Call, job_id: Annotated[str, typer.Argument(metavar="JOB_ID")]) -> None:
    """Show a job: how far it is, or its outcome; exit 1 when it failed or was interrupted."""
    with call.open_graph("r") as graph:
        found = graph.job(job_id)
    call.print_result(found, _describe(found))
    if found["state"] in ("failed", "interrupted"):
        raise typer.Exit(1)


def _summarize(job: Json) -> str:
    by = f" by {job['actor_id']}" if job["actor_id"] else ""
    when = describe_time(job["created_at"])
    return f"{job['job_id']} {when} {job['kind']} {job['state']}{_place(job)}{by}"


def _place(job: Json) -> str:
    shown = job["progress"]
    if shown is None or job["state"] != "running":
        return ""
    return f" ({shown['done']} of {shown['total']} steps, at {shown['step']})"


def _describe(job: Json) -> Iterator[str]:
    yield _summarize(job)
    if job["options"]:
        yield f"options: {json.dumps(job['options'], ensure_ascii=False)}"
    if job["error"] is not None:
        yield f"{job['state']}: {job['error']['error']}"
    if job["report"] is not None:
        yield json.dumps(job["report"], indent=2, ensure_ascii=False)
