"""LocalRequests: the merge requests of a graph in a store, in the JSON of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph import wire
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from omnigraph.pipeline.progress import Listener

Json = dict[str, Any]


class LocalRequests:
    """What `LocalGraph` can do with merge requests; a part of that class."""

    __slots__ = ()
    graph: Graph
    told: Listener | None

    def merge_requests(self, state: str, limit: int, before: int | None) -> Json:
        found = self.graph.merge_requests(state, limit=limit + 1, before=before)
        return wire.merge_requests_to_json(found, limit)

    def merge_request(self, number: int) -> Json:
        return self.graph.merge_request(number).to_json()

    def preview_merge_request(self, number: int) -> Json:
        found = self.graph.preview_merge_request(number)
        return {**wire.request_preview_to_json(found), "changes": found.merge.changes.to_json()}

    def open_merge_request(self, asked: Json) -> Json:
        given = dict(asked)
        return self.graph.open_merge_request(
            given.pop("source"), given.pop("target"), **given
        ).to_json()

    def edit_merge_request(self, number: int, changed: Json) -> Json:
        return self.graph.edit_merge_request(number, **changed).to_json()

    def say_on_merge_request(self, number: int, verb: wire.RequestVerb, said: Json) -> Json:
        graph = self.graph
        match verb:
            case wire.RequestVerb.COMMENT:
                done = graph.comment_on_merge_request(number, **said)
            case wire.RequestVerb.APPROVE:
                done = graph.approve_merge_request(number, **said)
            case wire.RequestVerb.OBJECT:
                done = graph.request_changes(number, **said)
            case wire.RequestVerb.CLOSE:
                done = graph.close_merge_request(number, **said)
            case wire.RequestVerb.REOPEN:
                done = graph.reopen_merge_request(number, **said)
        return done.to_json()

    def withdraw_approval(self, number: int) -> Json:
        return self.graph.withdraw_approval(number).to_json()

    def complete_merge_request(self, number: int, asked: Json) -> Json:
        done = self.graph.complete_merge_request(number, **asked, progress=self.told)
        return {"number": number, **done.to_json()}
