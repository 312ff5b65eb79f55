"""RemoteRequests: the merge requests of a served graph, one method per route."""

from __future__ import annotations

from omnigraph.client.errors import raise_conflicts
from omnigraph.client.http import Http, Json
from omnigraph.wire import RequestVerb

EVENTS_LIMIT = 1_000


class RemoteRequests:
    """What `RemoteGraph` can do with merge requests; a part of that class."""

    __slots__ = ()
    http: Http

    def merge_requests(self, state: str, limit: int, before: int | None) -> Json:
        params = {"state": state, "limit": limit}
        more = {} if before is None else {"before": before}
        return self.http.call("GET", "/merge-requests", params={**params, **more})

    def merge_request(self, number: int) -> Json:
        """All of a request, page by page."""
        http = self._below(number)
        found = http.call("GET", "", params={"limit": EVENTS_LIMIT})
        page = found
        while page["next_after"] is not None:
            page = http.call("GET", "", params={"after": page["next_after"], "limit": EVENTS_LIMIT})
            for name in ("events", "comments"):
                found[name] += page[name]
        return {**found, "next_after": None}

    def preview_merge_request(self, number: int) -> Json:
        return self._below(number, "preview").call("GET", "")

    def open_merge_request(self, asked: Json) -> Json:
        return self.http.call("POST", "/merge-requests", body=_drop_missing(asked))

    def edit_merge_request(self, number: int, changed: Json) -> Json:
        return self._below(number).call("PATCH", "", body=_drop_missing(changed))

    def say_on_merge_request(self, number: int, verb: RequestVerb, said: Json) -> Json:
        return self._below(number, verb.value).call("POST", "", body=_drop_missing(said))

    def withdraw_approval(self, number: int) -> Json:
        return self._below(number, RequestVerb.APPROVE.value).call("DELETE", "")

    def complete_merge_request(self, number: int, asked: Json) -> Json:
        with raise_conflicts("the target", "merge"):
            return self._below(number, "merge").call("POST", "", body=_drop_missing(asked))

    def _below(self, number: int, *rest: str) -> Http:
        return self.http.below("merge-requests", str(number), *rest)


def _drop_missing(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}
