"""The tools that agents get: each is a request to this server, with a name and typed arguments.

A tool has the permissions, limits and errors of its route; its answer is the body of the route.
Long lists are cut to what an agent can read, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, did_you_mean

Json: TypeAlias = dict[str, Any]
Arguments: TypeAlias = Mapping[str, Any]

LIST_ITEMS = 50
"""How many items of a list a tool shows unless it is told otherwise."""
LIST_ITEMS_MAX = 1_000
CUT_LISTS = ("rows", "commits", "changes", "branches", "conflicts")
"""The members of answers that can be long."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to the server."""

    method: str
    path: tuple[str, ...]
    params: Json = field(default_factory=dict)
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `operation_id` names the operation whose permission it needs."""

    name: str
    description: str
    operation_id: str
    build: Callable[[Json], Sent]
    arguments: Mapping[str, Json] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    is_read: bool = True
    aliases: tuple[str, ...] = ()
    cuts: bool = False

    @property
    def schema(self) -> Json:
        """The JSON schema of the arguments."""
        properties = {**self.arguments, **(_PAGE if self.cuts else {})}
        return {
            "type": "object",
            "properties": properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def read_arguments(self, given: Arguments) -> Json:
        """The arguments under their canonical names.

        Raises:
            BadRequestError: One is unknown, missing, or of another kind.
        """
        named = {_ALIASES.get(name, name): value for name, value in given.items()}
        named = {name: value for name, value in named.items() if value is not None}
        known = self.schema["properties"]
        for name, value in named.items():
            if name not in known:
                hint = did_you_mean(name, known) or f"it takes {', '.join(known) or 'none'}"
                raise BadRequestError(f"{self.name} has no argument `{name}` — {hint}")
            _check_kind(name, value, known[name])
        for name in self.required:
            if name not in named:
                raise BadRequestError(f"{self.name} needs the argument `{name}`")
        return named


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def _check_kind(name: str, value: Any, schema: Json) -> None:
    wanted = schema.get("type")
    if wanted is None:
        return
    is_right = isinstance(value, _KINDS[wanted])
    if not is_right or (wanted == "integer" and isinstance(value, bool)):
        article = "an" if wanted[0] in "aeiou" else "a"
        raise BadRequestError(f"`{name}` should be {article} {wanted}")
    if wanted == "integer" and not 0 <= value <= schema.get("maximum", value):
        raise BadRequestError(f"`{name}` should be from 0 to {schema.get('maximum', 2**63)}")


def cut_lists(body: Json, asked: Arguments) -> Json:
    """The part of an answer that was asked for; what was left out is told."""
    limit, skip = asked.get("limit", LIST_ITEMS), asked.get("skip", 0)
    cut: Json = {}
    for name in CUT_LISTS:
        items = body.get(name)
        if isinstance(items, list) and (skip or len(items) > limit):
            shown = items[skip : skip + limit]
            cut[name] = shown
            if skip + len(shown) < len(items):
                cut["truncated"] = {
                    "list": name,
                    "shown": len(shown),
                    "of": len(items),
                    "next_skip": skip + len(shown),
                }
    return {**body, **cut}


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


_BRANCH = _text("The branch; main by default.")
_QUERY = _text("The text of the query, in .gq.")
_NAME = _text("Which query of the text; may be left out when there is one.")
_PARAMS = {"type": "object", "description": "The parameters of the query, by name."}
_SOURCE = _text("The branch whose changes are brought in.")
_TARGET = _text("The branch that takes them; main by default.")
_RESOLVE = {
    "description": "How conflicts are decided: ours (the target), theirs, or a list of "
    "{table_key, row_id, take}."
}
_NOTE: Mapping[str, Json] = {
    "message": _text("Why the change is made; it stays with the commit."),
    "metadata": {"type": "object", "description": "Other texts to note on the commit, by name."},
}
_LIMIT = {"type": "integer", "maximum": LIST_ITEMS_MAX, "description": f"{LIST_ITEMS} by default."}
_PAGE: Mapping[str, Json] = {
    "limit": {**_LIMIT, "description": f"How many items to show; {LIST_ITEMS} by default."},
    "skip": {"type": "integer", "description": "How many to leave out first: `next_skip`."},
}
_ALIASES = {
    "querySource": "query",
    "query_source": "query",
    "queryName": "name",
    "query_name": "name",
    "commitId": "commit_id",
    "schemaSource": "schema_source",
}


def _get(path: str, *names: str) -> Callable[[Json], Sent]:
    """A request whose arguments are parameters of the URL."""

    def build(given: Json) -> Sent:
        return Sent("GET", (path,), _pick(given, names))

    return build


def _post(path: str, *names: str, **fixed: Any) -> Callable[[Json], Sent]:
    """A request whose arguments are members of the body."""

    def build(given: Json) -> Sent:
        return Sent("POST", (path,), body={**_pick(given, names), **fixed})

    return build


def _pick(given: Json, names: tuple[str, ...]) -> Json:
    return {name: given[name] for name in names if name in given}


def _mutate(given: Json) -> Sent:
    sent = _pick(given, ("query", "name", "params", "branch", *_NOTE))
    if "if_commit" not in given:
        return Sent("POST", ("mutate",), body=sent)
    headers = {"Omnigraph-If-Graph-Commit": given["if_commit"]}
    return Sent("POST", ("mutate", "if-graph-commit"), body=sent, headers=headers)


def _of_commit(*rest: str) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        params = _pick(given, ("page_token", "limit"))
        return Sent("GET", ("commits", given["commit_id"], *rest), params if rest else {})

    return build


_READ_ARGUMENTS = {"query": _QUERY, "name": _NAME, "params": _PARAMS, "branch": _BRANCH}
_MERGE_ARGUMENTS = {"source": _SOURCE, "target": _TARGET, "resolve": _RESOLVE}
_ENTITY = {
    "type": _text("The type of the node or edge."),
    "id": _text("Its id; the value of its @key."),
    "branch": _BRANCH,
}
_COMMIT_ID = {"commit_id": _text("The graph commit.")}

_LOG: Mapping[str, Json] = {
    "type": _text("Only commits that changed rows of this type."),
    "id": _text("Only those that changed this node or edge of the type."),
    "actor": _text("Only commits by this actor."),
    "since": _text("Only those made at this time or later."),
    "until": _text("Only those made by this time."),
    "message": _text("Only those with this text in their message."),
    "after": _text("The next page: the last commit of the page before."),
    "detail": {
        "type": "string",
        "enum": ["stat", "patch"],
        "description": "Also what each changed: counts by table, or changes.",
    },
    "changes": {"type": "integer", "description": "Changes of each commit; 100 by default."},
}
_COMMITS = {"type": "array", "description": "Commits, by their ids."}
_OF_ACTOR = _text("All commits of this actor, instead of ids.")
_OF_SESSION = _text("All commits with this `session` in their metadata, instead of ids.")
_SINCE = _text("Only those made since this time.")


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
            _post(f"{path}/preview", *known),
            known,
            required,
            cuts=True,
        ),
        Tool(
            name,
            f"{description} Preview it first.",
            operation_id,
            _post(path, *known, *_NOTE),
            {**known, **_NOTE},
            required,
            is_read=False,
        ),
    )


HEALTH = Tool("health", "Whether the server is up, and its version.", "health", _get("healthz"))
GRAPHS_LIST = Tool("graphs_list", "The graphs of this server.", "listGraphs", _get("graphs"))

TOOLS: tuple[Tool, ...] = (
    HEALTH,
    Tool(
        "schema_get",
        "The schema of the graph: node and edge types, their properties and keys. Read it first.",
        "getSchema",
        _get("schema", "branch"),
        {"branch": _BRANCH},
    ),
    Tool(
        "snapshot",
        "What a branch shows: its tables with their numbers of rows.",
        "getSnapshot",
        _get("snapshot", "branch"),
        {"branch": _BRANCH},
    ),
    Tool(
        "query",
        "Read the graph with a .gq query, e.g. "
        "query q($n: String) { match { $a: Person { name: $n } $a knows $b } return { $b.name } }.",
        "query",
        _post("query", "query", "name", "params", "branch", "snapshot"),
        {**_READ_ARGUMENTS, "snapshot": _text("A graph commit, instead of a branch.")},
        ("query",),
        aliases=("read",),
        cuts=True,
    ),
    Tool(
        "explain",
        "How a query would be run, without running it.",
        "explain",
        _post("explain", "query", "name", "params", "branch"),
        _READ_ARGUMENTS,
        ("query",),
    ),
    Tool(
        "mutate",
        "Change the graph with a .gq mutation, as one commit. Work on a branch of your own.",
        "mutate",
        _mutate,
        {**_READ_ARGUMENTS, "if_commit": _text("Only while this commit is the head."), **_NOTE},
        ("query",),
        is_read=False,
        aliases=("change",),
    ),
    Tool(
        "ingest",
        "Load records, one JSON object per line, as one commit.",
        "load",
        _post("load", "data", "mode", "branch", "from", *_NOTE),
        {
            "data": _text("The records: NDJSON text."),
            "mode": {
                "type": "string",
                "enum": ["merge", "append", "overwrite"],
                "description": "How records meet rows; merge by default.",
            },
            "branch": _BRANCH,
            "from": _text("Where a missing branch starts from."),
            **_NOTE,
        },
        ("data",),
        is_read=False,
    ),
    Tool("branches_list", "Every branch.", "listBranches", _get("branches"), cuts=True),
    Tool(
        "branches_create",
        "Make a branch; it copies nothing.",
        "createBranch",
        _post("branches", "name", "from"),
        {"name": _text("The new branch."), "from": _text("Where it starts; main by default.")},
        ("name",),
        is_read=False,
    ),
    Tool(
        "branches_delete",
        "Remove a branch and what only it holds.",
        "deleteBranch",
        lambda given: Sent("DELETE", ("branches", given["name"])),
        {"name": _text("The branch.")},
        ("name",),
        is_read=False,
    ),
    Tool(
        "branches_diff",
        "What differs between two states, entity by entity, before and after.",
        "diff",
        _get("diff", "from", "to", "type"),
        {
            "from": _text("The earlier state: a branch, a commit, or branch@time."),
            "to": _text("The later state; main by default."),
            "type": {"type": "array", "description": "Only these types."},
        },
        ("from",),
        cuts=True,
    ),
    Tool(
        "branches_merge_preview",
        "What a merge would do, and its conflicts with base, ours and theirs. Writes nothing.",
        "previewMerge",
        _post("branches/merge/preview", "source", "target", "resolve"),
        _MERGE_ARGUMENTS,
        ("source",),
        cuts=True,
    ),
    Tool(
        "branches_merge",
        "Merge one branch into another, as one commit or not at all. Preview it first.",
        "mergeBranches",
        _post("branches/merge", "source", "target", "resolve", "delete_branch", *_NOTE),
        {
            **_MERGE_ARGUMENTS,
            "delete_branch": {"type": "boolean", "description": "Remove the source afterwards."},
            **_NOTE,
        },
        ("source",),
        is_read=False,
    ),
    *_make_undo_tools(
        "revert",
        "Take back what commits did to a branch, as one commit. Later edits of the rows are "
        "conflicts.",
        "revert",
        {"commits": _COMMITS, "actor": _OF_ACTOR, "session": _OF_SESSION, "since": _SINCE},
        {"branch": _BRANCH, "resolve": _RESOLVE},
    ),
    *_make_undo_tools(
        "cherry_pick",
        "Make the changes of commits again on another branch, as one commit.",
        "cherryPick",
        {"commits": _COMMITS, "into": _text("The branch to change."), "resolve": _RESOLVE},
        required=("commits", "into"),
    ),
    *_make_undo_tools(
        "restore",
        "Make a branch what an earlier state shows: all of it, or some types or ids.",
        "restore",
        {
            "from": _text("The state: a branch, tag or commit."),
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
        _get("commits", "branch"),
        {"branch": _BRANCH},
        cuts=True,
    ),
    Tool("commits_get", "One commit.", "getCommit", _of_commit(), _COMMIT_ID, ("commit_id",)),
    Tool(
        "commits_changes",
        "What one commit changed, entity by entity, before and after.",
        "getCommitChanges",
        _of_commit("changes"),
        {
            **_COMMIT_ID,
            "limit": _LIMIT,
            "page_token": _text("The next_page_token of the page before."),
        },
        ("commit_id",),
    ),
    Tool(
        "history",
        "Every commit that led to a branch, merged branches included, newest first.",
        "log",
        _get("log", "branch", "limit", *_LOG),
        {"branch": _BRANCH, "limit": _LIMIT, **_LOG},
    ),
    Tool(
        "entity_history",
        "What every commit did to one node or edge, with its actor, before and after.",
        "history",
        _get("history", "type", "id", "branch"),
        _ENTITY,
        ("type", "id"),
        cuts=True,
    ),
    Tool(
        "entity_blame",
        "For each property of a node or edge, who wrote its value, in which commit, and when.",
        "blame",
        _get("blame", "type", "id", "branch"),
        _ENTITY,
        ("type", "id"),
    ),
    Tool(
        "schema_apply",
        "Change the schema of the graph to this text.",
        "applySchema",
        _post("schema/apply", "schema_source", *_NOTE),
        {"schema_source": _text("The whole schema, in .pg."), **_NOTE},
        ("schema_source",),
        is_read=False,
    ),
)
