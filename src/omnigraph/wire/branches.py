"""Branches, tags, checks, merges and undoes as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from omnigraph.undo_calls import RestoreCall, UndoCall
from omnigraph.wire.errors import conflict_to_json
from omnigraph.wire.history import commit_to_json
from omnigraph.wire.names import Json

if TYPE_CHECKING:
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.branch.merge_request import MergeRequest
    from omnigraph.branch.reset import ResetResult
    from omnigraph.graph import Commit, MutationResult
    from omnigraph.graph.merge_requests import RequestPreview
    from omnigraph.manifest.checks import Check
    from omnigraph.manifest.tags import Tag


def branch_created_to_json(uri: str, source: str, name: str, actor: str | None) -> Json:
    return {"uri": uri, "from": source, "name": name, "actor_id": actor}


def removed_to_json(uri: str, name: str, actor: str | None) -> Json:
    return {"uri": uri, "name": name, "actor_id": actor}


def reset_to_json(result: ResetResult, actor: str | None) -> Json:
    return {**result.to_json(), "actor_id": actor}


def tags_to_json(tags: Iterable[Tag]) -> Json:
    return {"tags": [tag.to_json() for tag in tags]}


def merge_requests_to_json(requests: Sequence[MergeRequest], limit: int) -> Json:
    """A page of merge requests; of those beyond the limit there are more."""
    shown = requests[:limit]
    more = shown[-1].number if len(requests) > limit else None
    return {"merge_requests": [each.to_summary() for each in shown], "next_before": more}


def checks_to_json(checks: Iterable[Check]) -> Json:
    return {"checks": [check.to_json() for check in checks]}


def undone_to_json(
    done: MergeResult | MutationResult, asked: UndoCall, actor: str | None, commit: Commit | None
) -> Json:
    """What a revert, a cherry-pick or a restore did; `commit` is null when nothing differed."""
    facts: Json
    if isinstance(asked, RestoreCall):
        result = cast("MutationResult", done)
        facts = {
            "source": asked.revision,
            "target": asked.branch,
            "affected_nodes": result.affected_nodes,
            "affected_edges": result.affected_edges,
            "actor_id": actor,
        }
    else:
        facts = {**cast("MergeResult", done).to_json(), "actor_id": actor}
    return {**facts, "commit": commit_to_json(commit) if commit else None}


def merge_preview_to_json(preview: MergePreview) -> Json:
    """What a merge would do. The changes are an iterator, since there can be many."""
    return {
        "source": preview.source,
        "target": preview.target,
        "outcome": preview.outcome.value,
        "changes": preview.changes.to_stream(),
        "conflicts": [conflict_to_json(each) for each in preview.conflicts],
        "checks": [each.to_json() for each in preview.checks],
    }


def request_preview_to_json(preview: RequestPreview) -> Json:
    """What merging a request would do, with the checks that the merge is held to."""
    return merge_preview_to_json(preview.merge)
