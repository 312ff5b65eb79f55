"""The tools that agents get, each a request to this server; see `mcp_tool.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omnigraph.server.mcp_request_tools import REQUEST_TOOLS
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

_BRANCH = text_argument("The branch; main by default.")
_QUERY = text_argument("The text of the query, in .gq.")
_NAME = text_argument("Which query of the text; may be left out when there is one.")
_PARAMS = {"type": "object", "description": "The parameters of the query, by name."}
_SOURCE = text_argument("The branch whose changes are brought in.")
_TARGET = text_argument("The branch that takes them; main by default.")
_NOTE: Mapping[str, Json] = {
    "message": text_argument("Why the change is made; it stays with the commit."),
    "metadata": {"type": "object", "description": "Other texts to note on the commit, by name."},
}


def _mutate(given: Json) -> Sent:
    sent = pick_arguments(given, ("query", "name", "params", "branch", *_NOTE))
    if "if_commit" not in given:
        return Sent("POST", ("mutate",), body=sent)
    headers = {"Omnigraph-If-Graph-Commit": given["if_commit"]}
    return Sent("POST", ("mutate", "if-graph-commit"), body=sent, headers=headers)


def _of_commit(*rest: str) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        params = pick_arguments(given, ("page_token", "limit"))
        return Sent("GET", ("commits", given["commit_id"], *rest), params if rest else {})

    return build


_READ_ARGUMENTS = {"query": _QUERY, "name": _NAME, "params": _PARAMS, "branch": _BRANCH}
_MERGE_ARGUMENTS = {"source": _SOURCE, "target": _TARGET, "resolve": RESOLVE}
_ENTITY = {
    "type": text_argument("The type of the node or edge."),
    "id": text_argument("Its id; the value of its @key."),
    "branch": _BRANCH,
}
_COMMIT_ID = {"commit_id": text_argument("The graph commit.")}

_LOG: Mapping[str, Json] = {
    "type": text_argument("Only commits that changed rows of this type."),
    "id": text_argument("Only those that changed this node or edge of the type."),
    "actor": text_argument("Only commits by this actor."),
    "since": text_argument("Only those made at this time or later."),
    "until": text_argument("Only those made by this time."),
    "message": text_argument("Only those with this text in their message."),
    "after": text_argument("The next page: the last commit of the page before."),
    "detail": {
        "type": "string",
        "enum": ["stat", "patch"],
        "description": "Also what each changed: counts by table, or changes.",
    },
    "changes": {"type": "integer", "description": "Changes of each commit; 100 by default."},
}
_COMMITS = {"type": "array", "description": "Commits, by their ids."}
_OF_ACTOR = text_argument("All commits of this actor, instead of ids.")
_OF_SESSION = text_argument("All commits with this `session` in their metadata, instead of ids.")
_SINCE = text_argument("Only those made since this time.")


def _make_undo_tools(
    name: str,
    description: str,
    operation_id: str,
    *arguments: Mapping[str, Json],
    required: tuple[str, ...] = (),
) -> tuple[Tool, Tool]:
    """A tool, and one that says what it would do."""
    path = name.replace("_", "-")
    known = {key: each for one in arguments for key, each in one.items()}
    preview = f"preview{operation_id[0].upper()}{operation_id[1:]}"
    return (
        Tool(
            f"{name}_preview",
            f"What {name} would do, and its conflicts with base, ours and theirs. Writes nothing.",
            preview,
            peek("changes_max", post_body(f"{path}/preview", *known)),
            known,
            required,
            items=LIST_ITEMS,
        ),
        Tool(
            name,
            f"{description} Preview it first.",
            operation_id,
            post_body(path, *known, *_NOTE),
            {**known, **_NOTE},
            required,
            is_read=False,
        ),
    )


HEALTH = Tool(
    "health", "Whether the server is up, and its version.", "health", get_by_url("healthz")
)
GRAPHS_LIST = Tool("graphs_list", "The graphs of this server.", "listGraphs", get_by_url("graphs"))

TOOLS: tuple[Tool, ...] = (
    HEALTH,
    Tool(
        "schema_get",
        "The schema of the graph: node and edge types, their properties and keys. Read it first.",
        "getSchema",
        get_by_url("schema", "branch"),
        {"branch": _BRANCH},
    ),
    Tool(
        "snapshot",
        "What a branch shows: its tables with their numbers of rows.",
        "getSnapshot",
        get_by_url("snapshot", "branch"),
        {"branch": _BRANCH},
    ),
    Tool(
        "query",
        "Read the graph with a .gq query, e.g. "
        "query q($n: String) { match { $a: Person { name: $n } $a knows $b } return { $b.name } }.",
        "query",
        post_body("query", "query", "name", "params", "branch", "snapshot"),
        {**_READ_ARGUMENTS, "snapshot": text_argument("A graph commit, instead of a branch.")},
        ("query",),
        aliases=("read",),
        items=LIST_ITEMS,
    ),
    Tool(
        "explain",
        "How a query would be run, without running it.",
        "explain",
        post_body("explain", "query", "name", "params", "branch"),
        _READ_ARGUMENTS,
        ("query",),
    ),
    Tool(
        "mutate",
        "Change the graph with a .gq mutation, as one commit. Work on a branch of your own.",
        "mutate",
        _mutate,
        {
            **_READ_ARGUMENTS,
            "if_commit": text_argument("Only while this commit is the head."),
            **_NOTE,
        },
        ("query",),
        is_read=False,
        aliases=("change",),
    ),
    Tool(
        "ingest",
        "Load records, one JSON object per line, as one commit.",
        "load",
        post_body("load", "data", "mode", "branch", "from", *_NOTE),
        {
            "data": text_argument("The records: NDJSON text."),
            "mode": {
                "type": "string",
                "enum": ["merge", "append", "overwrite"],
                "description": "How records meet rows; merge by default.",
            },
            "branch": _BRANCH,
            "from": text_argument("Where a missing branch starts from."),
            **_NOTE,
        },
        ("data",),
        is_read=False,
    ),
    Tool(
        "branches_list", "Every branch.", "listBranches", get_by_url("branches"), items=LIST_ITEMS
    ),
    Tool(
        "branches_create",
        "Make a branch; it copies nothing.",
        "createBranch",
        post_body("branches", "name", "from"),
        {
            "name": text_argument("The new branch."),
            "from": text_argument("Where it starts; main by default."),
        },
        ("name",),
        is_read=False,
    ),
    Tool(
        "branches_reset",
        "Take a branch back to an earlier commit; later ones are dropped. Preview first.",
        "resetBranch",
        post_body("branches/reset", "branch", "to", "if_commit", "preview"),
        {
            "branch": text_argument("The branch; main cannot be reset."),
            "to": text_argument("The commit to go back to, or branch~2."),
            "if_commit": text_argument("Only while this commit is its head."),
            "preview": {"type": "boolean", "description": "Only say what would be dropped."},
        },
        ("branch", "to"),
        is_read=False,
    ),
    Tool(
        "branches_delete",
        "Remove a branch and what only it holds.",
        "deleteBranch",
        lambda given: Sent("DELETE", ("branches", given["name"])),
        {"name": text_argument("The branch.")},
        ("name",),
        is_read=False,
    ),
    Tool(
        "branches_diff",
        "What differs between two states, entity by entity, before and after.",
        "diff",
        peek("changes_max", get_by_url("diff", "from", "to", "type")),
        {
            "from": text_argument("The earlier state: a branch, a commit, or branch@time."),
            "to": text_argument("The later state; main by default."),
            "type": {"type": "array", "description": "Only these types."},
        },
        ("from",),
        items=LIST_ITEMS,
    ),
    Tool(
        "branches_merge_preview",
        "What a merge would do, and its conflicts with base, ours and theirs. Writes nothing.",
        "previewMerge",
        peek("changes_max", post_body("branches/merge/preview", "source", "target", "resolve")),
        _MERGE_ARGUMENTS,
        ("source",),
        items=LIST_ITEMS,
    ),
    Tool(
        "branches_merge",
        "Merge one branch into another, as one commit or not at all. Preview it first.",
        "mergeBranches",
        post_body("branches/merge", "source", "target", "resolve", "delete_branch", *_NOTE),
        {
            **_MERGE_ARGUMENTS,
            "delete_branch": {"type": "boolean", "description": "Remove the source afterwards."},
            **_NOTE,
        },
        ("source",),
        is_read=False,
    ),
    *REQUEST_TOOLS,
    *_make_undo_tools(
        "revert",
        "Take back what commits did to a branch, as one commit. Later edits of the rows are "
        "conflicts.",
        "revert",
        {"commits": _COMMITS, "actor": _OF_ACTOR, "session": _OF_SESSION, "since": _SINCE},
        {"branch": _BRANCH, "resolve": RESOLVE},
    ),
    *_make_undo_tools(
        "cherry_pick",
        "Make the changes of commits again on another branch, as one commit.",
        "cherryPick",
        {"commits": _COMMITS, "into": text_argument("The branch to change."), "resolve": RESOLVE},
        required=("commits", "into"),
    ),
    *_make_undo_tools(
        "restore",
        "Make a branch what an earlier state shows: all of it, or some types or ids.",
        "restore",
        {
            "from": text_argument("The state: a branch, tag or commit."),
            "types": {"type": "array", "description": "Only these types."},
            "ids": {"type": "array", "description": "Only nodes and edges with these ids."},
            "branch": _BRANCH,
        },
        required=("from",),
    ),
    Tool(
        "commits_list",
        "The commits that a branch shows, newest first.",
        "listCommits",
        get_by_url("commits", "branch"),
        {"branch": _BRANCH},
        items=LIST_ITEMS,
    ),
    Tool("commits_get", "One commit.", "getCommit", _of_commit(), _COMMIT_ID, ("commit_id",)),
    Tool(
        "commits_changes",
        "What one commit changed, entity by entity, before and after.",
        "getCommitChanges",
        _of_commit("changes"),
        {
            **_COMMIT_ID,
            "limit": LIMIT,
            "page_token": text_argument("The next_page_token of the page before."),
        },
        ("commit_id",),
    ),
    Tool(
        "history",
        "Every commit that led to a branch, merged branches included, newest first.",
        "log",
        peek("limit", get_by_url("log", "branch", *_LOG)),
        {"branch": _BRANCH, **_LOG},
        items=LIST_ITEMS,
        is_peek=True,
    ),
    Tool(
        "entity_history",
        "What every commit did to one node or edge, with its actor, before and after.",
        "history",
        get_by_url("history", "type", "id", "branch"),
        _ENTITY,
        ("type", "id"),
        items=LIST_ITEMS,
    ),
    Tool(
        "entity_blame",
        "For each property of a node or edge, who wrote its value, in which commit, and when.",
        "blame",
        get_by_url("blame", "type", "id", "branch"),
        _ENTITY,
        ("type", "id"),
    ),
    Tool(
        "bisect",
        "Find the commit that broke something: the first at which a query returns rows.",
        "bisect",
        post_body("bisect", "query", "good", "bad"),
        {
            "query": text_argument(
                "A .gq text with one query: it returns no rows while all is well."
            ),
            "good": text_argument("A revision at which it finds nothing, such as main~40."),
            "bad": text_argument("A later one at which it does; main by default."),
        },
        ("query", "good"),
    ),
    Tool(
        "schema_apply",
        "Change the schema of the graph to this text.",
        "applySchema",
        post_body("schema/apply", "schema_source", *_NOTE),
        {"schema_source": text_argument("The whole schema, in .pg."), **_NOTE},
        ("schema_source",),
        is_read=False,
    ),
)
