"""Operations on history: the commits of a branch, and one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from typing import Any

from starlette.responses import Response

from omnigraph.branch.log import CommitPatch
from omnigraph.graph import Commit
from omnigraph.manifest import CommitLog
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.json_parts import encode_parts
from omnigraph.server.readable_types import permit_selection
from omnigraph.server.request_models import resolve_branch
from omnigraph.server.streaming import stream
from omnigraph.server.url_parameters import check_parameters, integer_parameter, one_parameter
from omnigraph.wire import (
    LOG_COMMITS,
    LogPart,
    commit_to_json,
    commits_to_json,
    patch_to_json,
    read_patches,
)

TEXTS = ("type", "id", "actor", "since", "until", "message", "after", "detail")
NUMBERS = ("limit", "changes")
HIDDEN = "commits of branches that the caller may not read are left out"
HIDDEN_CHANGES = "the caller may not read the branch that it was made on"


async def list_commits(call: Call) -> Response:
    """The commits that a branch shows, newest first, or those that changed a type or an entity."""
    return await _read_log(call, merged=False)


async def log(call: Call) -> Response:
    """Every commit that led to a branch, those of merged branches too, newest first.

    With a type, those that changed it; with a `detail`, also what each of them changed.
    """
    return await _read_log(call, merged=True)


async def get_commit(call: Call) -> Response:
    """One commit, on whichever branch it is."""
    call.permit()
    found = await call.run_read(call.graph.graph.commit, call.request.path_params["commit_id"])
    return json_response(commit_to_json(found))


async def _read_log(call: Call, *, merged: bool) -> Response:
    check_parameters(call.request, ("branch", *TEXTS, *NUMBERS))
    branch = resolve_branch(one_parameter(call.request, "branch"))
    call.permit(branch=branch)
    given: dict[str, Any] = {name: one_parameter(call.request, name) for name in TEXTS}
    given |= {name: integer_parameter(call.request, name) for name in NUMBERS}
    asked = LogPart(**given)
    if merged and asked.limit is None:
        asked = replace(asked, limit=LOG_COMMITS)
    if asked.type is not None or asked.detail is not None:
        chosen = None if asked.type is None else [asked.type]
        await permit_selection(call, branch, chosen)
    graph = call.graph.graph
    if asked.detail is not None:
        patches = partial(read_patches, graph, branch, asked, merged=merged)
        return await stream(call, lambda: _encode(call, branch, asked.type, patches()), JSON)
    read = graph.log if merged else graph.commits
    found = await call.run_read(read, branch, **asked.filters)
    return json_response(commits_to_json(_hide_commits(call, branch, asked.type, found)))


def _hide_commits(call: Call, branch: str, type_name: str | None, found: CommitLog) -> CommitLog:
    """That a commit changed a type is as readable as the branch that it was made on."""
    if type_name is None:
        return found
    is_hidden = partial(_is_hidden, call, branch, type_name)
    shown = list(filterfalse(is_hidden, found))
    notes = found.notes if len(shown) == len(found) else (*found.notes, HIDDEN)
    return CommitLog(shown, notes)


def _is_hidden(call: Call, branch: str, type_name: str | None, commit: Commit) -> bool:
    return commit.branch != branch and not call.may_read(commit.branch, type_name)


def _encode(
    call: Call, branch: str, type_name: str | None, patches: Iterable[CommitPatch]
) -> Iterator[bytes]:
    def select() -> Iterator[Any]:
        for each in patches:
            if not _is_hidden(call, branch, type_name, each.commit):
                yield patch_to_json(each)
            elif type_name is None:
                yield patch_to_json(CommitPatch(each.commit, notes=(HIDDEN_CHANGES,)))

    return encode_parts({"commits": select()})
