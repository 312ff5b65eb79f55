"""Print a schema tree as `.pg` text in canonical form.

Law: parsing the text gives an equal tree. Constraints follow the properties of their type, and the
variants of an enum are sorted, as in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintArgument,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    RangeBound,
    SchemaTree,
)
from omnigraph.syntax.write_literals import write_literal


def print_schema(tree: SchemaTree) -> str:
    """Return the canonical text of a schema."""
    return "\n".join(map(_declaration, tree.declarations))


def _declaration(declaration: Declaration) -> str:
    match declaration:
        case InterfaceDecl(name, properties):
            return f"interface {name} {_body(properties, ())}\n"
        case NodeDecl(name, annotations, implements, properties, constraints):
            words = ["node", name, *map(_annotation, annotations)]
            if implements:
                words += ["implements", ", ".join(interface.name for interface in implements)]
            return f"{' '.join(words)} {_body(properties, constraints)}\n"
        case EdgeDecl():
            return f"{_edge(declaration)}\n"
        case unreachable:
            assert_never(unreachable)


def _edge(edge: EdgeDecl) -> str:
    words = [f"edge {edge.name}: {edge.source.name} -> {edge.target.name}"]
    if edge.cardinality is not None:
        words.append(_cardinality(edge.cardinality))
    words += map(_annotation, edge.annotations)
    if edge.properties or edge.constraints:
        words.append(_body(edge.properties, edge.constraints))
    return " ".join(words)


def _cardinality(cardinality: CardinalityDecl) -> str:
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{maximum})"


def _body(properties: Iterable[PropertyDecl], constraints: Iterable[ConstraintDecl]) -> str:
    lines = [*map(_property, properties), *map(_constraint, constraints)]
    if not lines:
        return "{}"
    return "\n".join(["{", *(f"    {line}" for line in lines), "}"])


def _property(declared: PropertyDecl) -> str:
    words = [f"{declared.name}: {declared.type}", *map(_annotation, declared.annotations)]
    return " ".join(words)


def _annotation(annotation: Annotation) -> str:
    if annotation.value is None:
        options = [f"{name}: {write_literal(value)}" for name, value in annotation.kwargs]
        return f"@{annotation.name}" + (f"({', '.join(options)})" if options else "")
    arguments = [_argument(annotation.value)]
    arguments += [f"{name}={write_literal(value)}" for name, value in annotation.kwargs]
    return f"@{annotation.name}({', '.join(arguments)})"


def _constraint(constraint: ConstraintDecl) -> str:
    return f"@{constraint.name}({', '.join(map(_argument, constraint.arguments))})"


def _argument(argument: ConstraintArgument) -> str:
    match argument:
        case Identifier(name):
            return name
        case RangeBound(lower, upper):
            bounds = ["" if bound is None else write_literal(bound) for bound in (lower, upper)]
            return "..".join(bounds)
        case literal:
            return write_literal(literal)
