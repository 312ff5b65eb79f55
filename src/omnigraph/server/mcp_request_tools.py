"""The tools for merge requests: how an agent asks for its work to be reviewed and merged."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.server.mcp_tool import (
    LIMIT,
    LIST_ITEMS,
    RESOLVE,
    Json,
    Sent,
    Tool,
    get_by_url,
    peek,
    pick_arguments,
    post_body,
    text_argument,
)

_PATH = "merge-requests"
_NUMBER: Json = {"type": "integer", "description": "The number of the merge request."}
_HEAD = text_argument("Only while this commit is the head of the source.")
_EDITED: Json = {
    "title": text_argument("One line about what the branch does."),
    "description": text_argument("What a reviewer has to know; an empty text removes it."),
    "reviewers": {"type": "array", "description": "All who are asked to review it."},
    "target": text_argument("The branch to merge into; approvals for another do not count."),
}


def _get(*rest: str, names: tuple[str, ...] = ()) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        path = (_PATH, str(given["number"]), *rest)
        return Sent("GET", path, pick_arguments(given, names))

    return build


def _send(method: str, *rest: str, names: tuple[str, ...] = ()) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        path = (_PATH, str(given["number"]), *rest)
        return Sent(method, path, body=pick_arguments(given, names) if names else None)

    return build


def _say(
    name: str,
    description: str,
    operation_id: str,
    verb: str,
    required: tuple[str, ...],
    **known: Json,
) -> Tool:
    return Tool(
        name,
        description,
        operation_id,
        _send("POST", verb, names=tuple(known)),
        {"number": _NUMBER, **known},
        ("number", *required),
        is_read=False,
    )


REQUEST_TOOLS: tuple[Tool, ...] = (
    Tool(
        "requests_list",
        "Merge requests, newest first, without what was said.",
        "listMergeRequests",
        get_by_url(_PATH, "state", "limit", "before"),
        {
            "state": {
                "type": "string",
                "enum": ["open", "merged", "closed", "all"],
                "description": "open by default.",
            },
            "limit": LIMIT,
            "before": {"type": "integer", "description": "The next_before of the page before."},
        },
    ),
    Tool(
        "requests_show",
        "One merge request: its approvals, what is missing, comments and all events.",
        "getMergeRequest",
        _get(names=("after", "limit")),
        {
            "number": _NUMBER,
            "limit": LIMIT,
            "after": {"type": "integer", "description": "The next_after of the page before."},
        },
        ("number",),
    ),
    Tool(
        "requests_preview",
        "What merging a request would do, its conflicts with all sides, and its checks.",
        "previewMergeRequest",
        peek("changes_max", _get("preview")),
        {"number": _NUMBER},
        ("number",),
        items=LIST_ITEMS,
    ),
    Tool(
        "requests_open",
        "Ask people to review a branch and merge it. Use it when you may not merge yourself.",
        "openMergeRequest",
        post_body(_PATH, "source", "target", "title", "description", "reviewers"),
        {
            "source": text_argument("The branch to merge."),
            "target": text_argument("The branch to merge into; main by default."),
            "title": text_argument("One line about what the branch does."),
            "description": text_argument("What a reviewer has to know."),
            "reviewers": {"type": "array", "description": "Actors who are asked to review it."},
        },
        ("source", "title"),
        is_read=False,
    ),
    _say(
        "requests_comment",
        "Comment on a merge request, or on a type, a node or edge, or a property of it.",
        "commentOnMergeRequest",
        "comments",
        ("text",),
        text=text_argument("The comment."),
        type=text_argument("The type it is about."),
        id=text_argument("The node or edge it is about."),
        property=text_argument("The property it is about."),
    ),
    _say(
        "requests_approve",
        "Approve the source of a merge request as it is now. Preview it first.",
        "approveMergeRequest",
        "approvals",
        (),
        head=_HEAD,
        text=text_argument("Why."),
    ),
    Tool(
        "requests_withdraw",
        "Take back your approval of a merge request, or your request for changes.",
        "withdrawApproval",
        _send("DELETE", "approvals"),
        {"number": _NUMBER},
        ("number",),
        is_read=False,
    ),
    Tool(
        "requests_edit",
        "Change what a merge request says, or the branch that it is into; the rest stays.",
        "editMergeRequest",
        _send("PATCH", names=tuple(_EDITED)),
        {"number": _NUMBER, **_EDITED},
        ("number",),
        is_read=False,
    ),
    _say(
        "requests_close",
        "Close a merge request without merging it.",
        "closeMergeRequest",
        "close",
        (),
        text=text_argument("Why."),
    ),
    _say(
        "requests_merge",
        "Merge a merge request, as one commit or not at all.",
        "completeMergeRequest",
        "merge",
        (),
        head=_HEAD,
        resolve=RESOLVE,
        delete_branch={"type": "boolean", "description": "Remove the source afterwards."},
    ),
)
