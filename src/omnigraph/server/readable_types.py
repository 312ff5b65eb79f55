"""Readable types: which types a request reads, asked of the policy one by one.

Only a policy that speaks of types gets here. A type is every name that it has had: a rule that
names it by an older or newer one still holds, for what is there now and for the past. A request
that names no types reads all there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from omnigraph.branch.merge_request import MergeRequest, RequestComment
from omnigraph.compiler import compile_query, require_mutation, require_read
from omnigraph.compiler.describe import describe
from omnigraph.errors import ChecksFailed, MergeConflicts, OmnigraphError, PolicyError
from omnigraph.graph.graph import get_session
from omnigraph.manifest import Snapshot
from omnigraph.policy import Action
from omnigraph.server.call import Call
from omnigraph.server.graphs import OpenGraph

HIDDEN = "the caller may not read this type"


async def permit_query(
    call: Call, source: str, name: str | None, branch: str, commit: str | None, schema_of: str
) -> None:
    """Check that the caller may read every type that a read touches."""
    if call.graph.gate.limits_types:
        moment = branch, commit, None, None
        found = await call.run_read(_find_read, call.graph, source, name, moment, schema_of)
        call.permit_types(branch, found, Action.READ)


async def permit_mutation(call: Call, source: str, name: str | None, branch: str) -> None:
    """Check that the caller may read every type that decides a mutation, or comes back."""
    if call.graph.gate.limits_types:
        found = await call.run_read(_find_mutated, call.graph, source, name, branch)
        call.permit_types(branch, found, Action.READ)


async def permit_selection(
    call: Call,
    branch: str | None,
    chosen: Sequence[str] | None,
    *,
    kinds: Sequence[str] | None = None,
    action: Action | None = None,
) -> None:
    """Check that the caller may read the types that are chosen, or all, on a branch or anywhere."""
    if call.graph.gate.limits_types:
        found = await call.run_read(_find_selected, call.graph, chosen, kinds)
        try:
            call.permit_types(branch, found, action)
        except PolicyError as error:
            raise error if chosen else PolicyError(f"{error} — name the types to read") from None


async def hide_tables(call: Call, shown: Snapshot) -> Snapshot:
    """The snapshot without the tables of types that the caller may not read."""
    if not call.graph.gate.limits_types:
        return shown
    names = await call.run_read(list_names, call.graph)
    entries = {
        key: entry
        for key, entry in shown.entries.items()
        if _may_read_all(call, shown.branch, names, key.partition(":")[2])
    }
    return replace(shown, entries=entries)


def hide_conflicts(call: Call, error: MergeConflicts, branch: str) -> MergeConflicts:
    """The conflicts without the values of types that the caller may not read."""
    if not call.graph.gate.limits_types:
        return error
    names = list_names(call.graph)
    shown = [
        each
        if _may_read_all(call, branch, names, each.table_key.partition(":")[2])
        else replace(each, row_id=None, message=HIDDEN, base=None, ours=None, theirs=None)
        for each in error.conflicts
    ]
    return MergeConflicts(shown, into=branch, verb=error.verb)


def hide_comments(call: Call, request: MergeRequest) -> MergeRequest:
    """The merge request without what comments say of types that the caller may not read."""
    if not call.graph.gate.limits_types:
        return request
    names, branches = list_names(call.graph), (request.source, request.target)
    hidden = {
        each.sequence
        for each in request.comments
        if each.type is not None
        and not all(_may_read_all(call, branch, names, each.type) for branch in branches)
    }
    return replace(
        request,
        comments=tuple(
            RequestComment(each.sequence, each.actor, each.at, None, is_hidden=True)
            if each.sequence in hidden
            else each
            for each in request.comments
        ),
        events=tuple(
            replace(each, facts={}) if each.sequence in hidden else each for each in request.events
        ),
    )


def hide_rows(call: Call, error: OmnigraphError) -> OmnigraphError:
    """An error without the rows of checks, where a policy keeps types from callers."""
    if isinstance(error, ChecksFailed) and call.graph.gate.limits_types:
        return error.without_rows()
    return error


def list_names(opened: OpenGraph) -> dict[str, set[str]]:
    """For every name that a type has or had, all names of the types that ever bore it."""
    by_identity: dict[int, set[str]] = defaultdict(set)
    for entity in get_session(opened.graph).list_types_had():
        by_identity[entity.type_id].add(entity.name)
    names: dict[str, set[str]] = defaultdict(set)
    for together in by_identity.values():
        for name in together:
            names[name] |= together
    return names


def _find_read(
    opened: OpenGraph,
    source: str,
    name: str | None,
    moment: tuple[str, str | None, None, None],
    schema_of: str,
) -> set[str]:
    catalog, _, ir = get_session(opened.graph).read_as(
        moment, schema_of, lambda catalog, _: require_read(compile_query(source, catalog, name))
    )
    return _with_all_names(opened, (use.type_name for use in describe(ir, catalog).reads))


def _find_mutated(opened: OpenGraph, source: str, name: str | None, branch: str) -> set[str]:
    catalog = opened.graph.branch_catalog(branch)
    ir = require_mutation(compile_query(source, catalog, name))
    return _with_all_names(opened, (use.type_name for use in describe(ir, catalog).reads))


def _find_selected(
    opened: OpenGraph, chosen: Sequence[str] | None, kinds: Sequence[str] | None
) -> set[str]:
    if chosen:
        return _with_all_names(opened, (each.rpartition(":")[2] for each in chosen))
    return {
        entity.name
        for entity in get_session(opened.graph).list_types_had()
        if not kinds or entity.table_key.partition(":")[0] in kinds
    }


def _with_all_names(opened: OpenGraph, type_names: Iterable[str]) -> set[str]:
    names = list_names(opened)
    return {name for each in type_names for name in names.get(each, {each})}


def _may_read_all(call: Call, branch: str, names: dict[str, set[str]], type_name: str) -> bool:
    return all(call.may_read(branch, each) for each in names.get(type_name, {type_name}))
