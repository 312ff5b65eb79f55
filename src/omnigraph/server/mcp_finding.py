"""Tools that find: search a type by its texts, and the neighbours of an entity.

Both write a query for the schema that the graph has, so an agent needs no `.gq` to begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.catalog import Catalog, EdgeType, NodeType
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.server.catalogs import read_catalog
from omnigraph.server.mcp_tool import LIST_ITEMS, Json, Sent, Tool, count_wanted

SEARCH_ROWS = 10


def find_tools(schema: str) -> tuple[Tool, ...]:
    """The tools for a graph of this schema."""
    catalog = read_catalog(schema)
    branch = {"type": "string", "description": "The branch; main by default."}
    type_ = {"type": "string", "description": f"A node type: {', '.join(catalog.nodes)}."}
    return (
        Tool(
            "search",
            "The nodes of a type whose texts fit some words best, by full text and, where the type "
            "has vectors of its texts, by meaning.",
            "query",
            _built(catalog, write_search),
            {
                "type": type_,
                "text": {"type": "string", "description": "The words to look for."},
                "branch": branch,
            },
            ("type", "text"),
            items=SEARCH_ROWS,
            is_peek=True,
        ),
        Tool(
            "neighbours",
            "What one node is linked to, edge by edge, in both directions.",
            "query",
            _built(catalog, write_neighbours),
            {
                "type": type_,
                "id": {"type": "string", "description": "The key of the node."},
                "edge": {
                    "type": "string",
                    "description": "Which edge to follow; needed where the type has several: "
                    f"{', '.join(catalog.edges)}.",
                },
                "branch": branch,
            },
            ("type", "id"),
            items=LIST_ITEMS,
            is_peek=True,
        ),
    )


def _built(
    catalog: Catalog, write: Callable[[Catalog, Json], tuple[str, Json]]
) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        text, params = write(catalog, given)
        body: Json = {"query": text, "params": params}
        if "branch" in given:
            body["branch"] = given["branch"]
        return Sent("POST", ("query",), body=body)

    return build


def write_search(catalog: Catalog, given: Json) -> tuple[str, Json]:
    """A query for the best nodes, and its parameters.

    Raises:
        BadRequestError: There is no such type, or it has no indexed text.
    """
    node = _find_node(catalog, given["type"])
    ranking = _choose_ranking(node)
    shown = ", ".join(f"$x.{name}" for name in _list_shown(node))
    text = (
        f"query search($text: String) {{ match {{ $x: {node.name} }} return {{ {shown} }} "
        f"order {{ {ranking} }} limit {count_wanted(given, SEARCH_ROWS)} }}"
    )
    return text, {"text": given["text"]}


def _choose_ranking(node: NodeType) -> str:
    indexed = {columns[0] for columns in node.indexes}
    properties = node.properties.values()
    texts = [each.name for each in properties if each.type.is_text and each.name in indexed]
    vectors = [each.name for each in properties if each.embed is not None]
    if texts and vectors:
        return f"rrf(nearest($x.{vectors[0]}, $text), bm25($x.{texts[0]}, $text)) desc"
    if texts:
        return f"bm25($x.{texts[0]}, $text) desc"
    if vectors:
        return f"nearest($x.{vectors[0]}, $text)"
    raise BadRequestError(
        f"{node.name} has no text with @index and no vector with @embed to search — use query"
    )


def write_neighbours(catalog: Catalog, given: Json) -> tuple[str, Json]:
    """A query for what a node is linked to, and its parameters.

    Raises:
        BadRequestError: There is no such type or edge, or the type has no key of one text.
    """
    node = _find_node(catalog, given["type"])
    key = _find_key(node)
    edge = _choose_edge(catalog, node, given.get("edge"))
    is_out = edge.source == node.name
    other = catalog.nodes[edge.target if is_out else edge.source]
    word = _word_of(edge)
    step = f"$x {word} $y" if is_out else f"$y {word} $x"
    if edge.source == edge.target:
        step = f"$x <{word}> $y"
    shown = ", ".join(f"$y.{name}" for name in _list_shown(other))
    order = f" order {{ {', '.join(f'$y.{name}' for name in other.key)} }}" if other.key else ""
    text = (
        f"query neighbours($id: String) {{ match {{ $x: {node.name} {{ {key}: $id }} {step} }} "
        f"return {{ {shown} }}{order} limit {count_wanted(given, LIST_ITEMS)} }}"
    )
    return text, {"id": given["id"]}


def _choose_edge(catalog: Catalog, node: NodeType, wanted: str | None) -> EdgeType:
    touching = [each for each in catalog.edges.values() if node.name in (each.source, each.target)]
    named = {name: each for each in touching for name in (each.name, _word_of(each))}
    if wanted is not None and wanted in named:
        return named[wanted]
    listed = ", ".join(each.name for each in touching)
    if wanted is not None:
        text = f"{node.name} has no edge '{wanted}'"
        raise BadRequestError(with_suggestion(text, wanted, named))
    if len(touching) != 1:
        raise BadRequestError(
            f"{node.name} has the edges {listed} — say which one with `edge`"
            if touching
            else f"{node.name} has no edges"
        )
    return touching[0]


def _find_node(catalog: Catalog, name: str) -> NodeType:
    if name not in catalog.nodes:
        raise BadRequestError(
            with_suggestion(f"there is no node type '{name}'", name, catalog.nodes)
        )
    return catalog.nodes[name]


def _find_key(node: NodeType) -> str:
    key = node.key or ()
    if len(key) != 1 or not node.properties[key[0]].type.is_text:
        raise BadRequestError(f"{node.name} has no key of one text — use query")
    return key[0]


def _word_of(edge: EdgeType) -> str:
    """An edge as queries spell it."""
    return edge.name[:1].lower() + edge.name[1:]


def _list_shown(node: NodeType) -> Iterator[str]:
    """The properties that can be read at a glance: no vectors, no blobs."""
    for each in node.properties.values():
        if not each.type.is_vector and not each.type.is_blob:
            yield each.name
