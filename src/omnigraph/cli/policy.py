"""`omnigraph policy`: check, test and explain a policy bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from omnigraph.cli.command import make_group
from omnigraph.cli.output import JsonFlag, print_error, print_result, read_text_file
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.config import Project
    from omnigraph.policy import Kind, Policy

app = make_group("Check, test and explain a policy bundle.")

TESTS_FILE = "policy.tests.yaml"

PolicyOption = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="The bundle.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The project file that names the bundle."),
]
GraphOption = Annotated[
    str | None,
    typer.Option("--graph", "--target", metavar="NAME", help="The graph of the project file."),
]


@app.command()
def validate(
    policy: PolicyOption = None,
    config: ConfigOption = None,
    graph: GraphOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a bundle and report every error in it."""
    loaded = _load(_choose(policy, config, graph))
    value = {"bundle": loaded.name, "kind": loaded.kind, "actors": len(loaded.actors)}
    line = f"policy valid: bundle '{loaded.name}' [{len(loaded.actors)} actors]"
    print_result(as_json, value, [line])


@app.command("test")
def run_tests(
    policy: PolicyOption = None,
    config: ConfigOption = None,
    graph: GraphOption = None,
    tests: Annotated[
        Path | None,
        typer.Option(
            "--tests", metavar="FILE", help=f"The cases [default: {TESTS_FILE} beside the bundle]."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the test cases of a file against a bundle; exit 1 when one fails."""
    from omnigraph.policy import read_cases, run_cases

    chosen = _choose(policy, config, graph)
    loaded = _load(chosen)
    path = tests if tests is not None else chosen.file.parent / TESTS_FILE
    cases = read_cases(read_text_file(path), name=str(path))
    failures = run_cases(loaded, cases)
    errors = [{"id": each.case.id, "error": str(each)} for each in failures]
    lines = list(map(str, failures)) or [f"policy tests passed: {len(cases)} cases"]
    value = {"bundle": loaded.name, "cases": len(cases), "failures": errors}
    print_result(as_json, value, lines)
    if failures:
        print_error(f"policy tests failed: {len(failures)} of {len(cases)} cases")
        raise typer.Exit(1)


@app.command()
def explain(
    actor: Annotated[str, typer.Option("--actor", help="The actor of the request.")],
    action: Annotated[str, typer.Option("--action", help="The requested action.")],
    branch: Annotated[
        str | None,
        typer.Option("--branch", help="The branch that the action reads or starts from."),
    ] = None,
    target_branch: Annotated[
        str | None, typer.Option("--target-branch", help="The branch that the action changes.")
    ] = None,
    type_name: Annotated[
        str | None, typer.Option("--type", help="The type that the action reads.")
    ] = None,
    policy: PolicyOption = None,
    config: ConfigOption = None,
    graph: GraphOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the decision on one request, and the rule that allows it."""
    from omnigraph.policy import Action, Request, explain_decision

    try:
        requested = Action(action)
    except ValueError:
        raise typer.BadParameter(f"'{action}' is not one of {', '.join(Action)}") from None
    request = Request(actor, requested, branch, target_branch, type_name)
    facts = explain_decision(request, _load(_choose(policy, config, graph)).decide(request))
    lines = (f"{name}: {fact}" for name, fact in facts.items() if fact is not None)
    print_result(as_json, facts, lines)


class _Chosen(NamedTuple):
    """The chosen bundle; `kind` if the project file says what it is for."""

    file: Path
    kind: Kind | None = None


def _load(chosen: _Chosen) -> Policy:
    from omnigraph.policy import load_standalone

    text = read_text_file(chosen.file)
    return load_standalone(text, name=str(chosen.file), kind=chosen.kind)


def _choose(policy: Path | None, config: Path | None, graph: str | None) -> _Chosen:
    """Choose the bundle that the flags or the project file name."""
    if policy is not None:
        if config is not None or graph is not None:
            raise typer.BadParameter("--policy names the bundle; leave out --config and --graph")
        return _Chosen(policy)
    from omnigraph.config import load_project
    from omnigraph.policy import Kind

    project = load_project(config)
    if graph is not None:
        file = project.graph(graph).policy_file
        if file is None:
            raise BadRequestError(f"graph '{graph}' has no policy — set graphs.{graph}.policy.file")
        return _Chosen(file, Kind.GRAPH)
    if project.policy_file is not None:
        return _Chosen(project.policy_file, Kind.GRAPH)
    return _only_bundle(project)


def _only_bundle(project: Project) -> _Chosen:
    from omnigraph.policy import Kind

    bundles = {
        f"graphs.{graph.name}": _Chosen(graph.policy_file, Kind.GRAPH)
        for graph in project.graphs.values()
        if graph.policy_file is not None
    }
    if project.server.policy_file is not None:
        bundles["server"] = _Chosen(project.server.policy_file, Kind.SERVER)
    if not bundles:
        raise BadRequestError(
            "there is no policy — give --policy FILE, or set policy.file in omnigraph.yaml"
        )
    if len(bundles) > 1:
        choices = "\n".join(f"  {name}: {each.file}" for name, each in bundles.items())
        raise BadRequestError(
            f"there are several policies — pick one with --graph or --policy:\n{choices}"
        )
    return next(iter(bundles.values()))
