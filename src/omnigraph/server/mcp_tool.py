"""A tool that agents get: a request to this server, with a name and typed arguments.

A tool has the permissions, limits and errors of its route; its answer is the body of the route.
Long lists are cut to what an agent can read, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
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
    items: int = 0
    """How many items of a list it shows unless it is told otherwise; 0 if it has no long list."""
    is_peek: bool = False
    """Whether it asks for one item more than it shows, and does not know how many there are."""

    @property
    def schema(self) -> Json:
        """The JSON schema of the arguments."""
        properties = {**self.arguments, **(_describe_page(self.items) if self.items else {})}
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


def cut_lists(body: Json, tool: Tool, asked: Arguments) -> Json:
    """The part of an answer that was asked for; what was left out is told."""
    limit, skip = asked.get("limit", tool.items), asked.get("skip", 0)
    cut: Json = {}
    for name in CUT_LISTS:
        items = body.get(name)
        if isinstance(items, list) and (skip or len(items) > limit):
            shown = items[skip : skip + limit]
            cut[name] = shown
            if skip + len(shown) < len(items):
                told = {"list": name, "shown": len(shown), "next_skip": skip + len(shown)}
                cut["truncated"] = told if tool.is_peek else told | {"of": _count(body, name)}
    return {**body, **cut}


def _count(body: Json, name: str) -> int:
    """How many items there are: of changes an answer has the counts, and not all of the list."""
    counts = body.get("stats") if name == "changes" else None
    if not isinstance(counts, dict):
        return len(body[name])
    return sum(counts[each] for each in ("inserts", "updates", "deletes"))


LIMIT = {"type": "integer", "maximum": LIST_ITEMS_MAX, "description": f"{LIST_ITEMS} by default."}


def _describe_page(items: int) -> Mapping[str, Json]:
    return {
        "limit": {**LIMIT, "description": f"How many items to show; {items} by default."},
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
RESOLVE = {
    "description": "How conflicts are decided: ours (the target), theirs, or a list of "
    "{table_key, row_id, take}; take is a side, or {property: ours, theirs or {value: …}}."
}


def text_argument(description: str) -> Json:
    return {"type": "string", "description": description}


def get_by_url(path: str, *names: str) -> Callable[[Json], Sent]:
    """A request whose arguments are parameters of the URL."""

    def build(given: Json) -> Sent:
        return Sent("GET", (path,), pick_arguments(given, names))

    return build


def post_body(path: str, *names: str, **fixed: Any) -> Callable[[Json], Sent]:
    """A request whose arguments are members of the body."""

    def build(given: Json) -> Sent:
        return Sent("POST", (path,), body={**pick_arguments(given, names), **fixed})

    return build


def peek(member: str, build: Callable[[Json], Sent]) -> Callable[[Json], Sent]:
    """A request for one item more than is shown: an answer says so when there are others."""

    def ask(given: Json) -> Sent:
        sent = build(given)
        wanted = {member: count_wanted(given, LIST_ITEMS)}
        if sent.body is None:
            return replace(sent, params={**sent.params, **wanted})
        return replace(sent, body={**sent.body, **wanted})

    return ask


def count_wanted(given: Json, items: int) -> int:
    """How many items to ask for, to show those that are wanted and to know of the next."""
    return int(given.get("skip", 0)) + int(given.get("limit", items)) + 1


def pick_arguments(given: Json, names: tuple[str, ...]) -> Json:
    return {name: given[name] for name in names if name in given}
