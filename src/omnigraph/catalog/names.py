"""Names: declarations are distinct from each other and from the columns that storage adds.

Once these checks have passed, the rest of the catalogue may look types and properties up by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.catalog.model import TypeKind
from omnigraph.errors import CatalogError, ParseError, did_you_mean
from omnigraph.syntax.schema_tree import (
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    SchemaTree,
)

# Lance reserves these names: a stored column of that name could not be read back.
_LANCE_COLUMNS = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_RESERVED: Mapping[TypeKind, frozenset[str]] = {
    "interface": _LANCE_COLUMNS | {"id"},
    "node": _LANCE_COLUMNS | {"id"},
    "edge": _LANCE_COLUMNS | {"id", "src", "dst"},
}


def kind_of(declaration: Declaration) -> TypeKind:
    match declaration:
        case InterfaceDecl():
            return "interface"
        case NodeDecl():
            return "node"
        case EdgeDecl():
            return "edge"


def owner_of(declaration: Declaration) -> str:
    """What errors call a declaration: `node Author`."""
    return f"{kind_of(declaration)} {declaration.name}"


def check_names(tree: SchemaTree) -> None:
    """Check that names are distinct and free to use.

    Raises:
        CatalogError: Two types of one kind or two properties of one type share a name, or two
            edge names differ only in case.
        ParseError: A property has the name of a column that storage keeps for itself.
    """
    seen: set[tuple[TypeKind, str]] = set()
    folded: dict[str, str] = {}
    for declaration in tree.declarations:
        kind = kind_of(declaration)
        if (kind, declaration.name) in seen:
            raise CatalogError(
                f"duplicate {kind} `{declaration.name}` — each {kind} is declared once",
                span=declaration.span,
            )
        seen.add((kind, declaration.name))
        if isinstance(declaration, EdgeDecl):
            other = folded.setdefault(declaration.name.lower(), declaration.name)
            if other != declaration.name:
                raise CatalogError(
                    f"edge name collision after case folding: `{other}` and "
                    f"`{declaration.name}` — queries find edges in any case; rename one",
                    span=declaration.span,
                )
        _check_property_names(declaration.properties, kind, owner_of(declaration))


def check_endpoints(tree: SchemaTree) -> None:
    """Check that every edge connects declared node types.

    Raises:
        CatalogError: An endpoint is not a node type.
    """
    nodes = {d.name for d in tree.declarations if isinstance(d, NodeDecl)}
    interfaces = {d.name for d in tree.declarations if isinstance(d, InterfaceDecl)}
    for edge in tree.declarations:
        if not isinstance(edge, EdgeDecl):
            continue
        for role, endpoint in (("source", edge.source), ("target", edge.target)):
            if endpoint.name in nodes:
                continue
            what = "is an interface, not" if endpoint.name in interfaces else "is not"
            raise CatalogError(
                f"edge {edge.name}: {role} `{endpoint.name}` {what} a declared node type",
                span=endpoint.span,
                hint=did_you_mean(endpoint.name, nodes),
            )


def _check_property_names(properties: Iterable[PropertyDecl], kind: TypeKind, owner: str) -> None:
    seen: set[str] = set()
    for declaration in properties:
        if declaration.name in _RESERVED[kind]:
            raise ParseError(
                f"property name `{declaration.name}` of {owner} is reserved for a column that "
                "storage keeps for every row — choose another name",
                span=declaration.span,
            )
        if declaration.name in seen:
            raise CatalogError(
                f"duplicate property `{declaration.name}` of {owner} — declare it once",
                span=declaration.span,
            )
        seen.add(declaration.name)
