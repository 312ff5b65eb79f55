"""Interfaces: the properties a node has in effect, its own and those its interfaces inject."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.catalog.annotations import PropertyDraft
from omnigraph.errors import ParseError, did_you_mean
from omnigraph.syntax.schema_tree import NodeDecl


def effective_properties(
    node: NodeDecl,
    own: Mapping[str, PropertyDraft],
    interfaces: Mapping[str, Mapping[str, PropertyDraft]],
) -> dict[str, PropertyDraft]:
    """Return every property of `node` in name order.

    A property that the node declares itself keeps its own annotations; any other comes with those
    of the interface, and all interfaces that contribute it must agree.

    Raises:
        ParseError: An interface is unknown, or a contract is not kept.
    """
    injected: dict[str, PropertyDraft] = {}
    for name in interface_names(node):
        if name not in interfaces:
            raise _unknown_interface(node, name, interfaces)
        for contract in interfaces[name].values():
            if contract.name in own:
                _check_kept(node, own[contract.name], contract, name)
            else:
                earlier = injected.get(contract.name)
                injected[contract.name] = _merge(node, earlier, contract, name)
    return dict(sorted({**own, **injected}.items()))


def interface_names(node: NodeDecl) -> tuple[str, ...]:
    """The interfaces of a node, each once, in name order: order carries no meaning."""
    return tuple(sorted({reference.name for reference in node.implements}))


def _check_kept(node: NodeDecl, own: PropertyDraft, contract: PropertyDraft, name: str) -> None:
    if own.type != contract.type:
        raise ParseError(
            f"node {node.name} declares `{own.name}: {own.type}`, but interface {name} promises "
            f"`{contract.name}: {contract.type}` — the types must be identical",
            span=own.declaration.type_span,
        )


def _merge(
    node: NodeDecl, earlier: PropertyDraft | None, contract: PropertyDraft, name: str
) -> PropertyDraft:
    if earlier is None:
        return contract.with_interface(name)
    if not earlier.same_semantics(contract):
        raise ParseError(
            f"node {node.name}: interfaces {', '.join((*earlier.injected_by, name))} give "
            f"incompatible property semantics to `{contract.name}` — make them agree, "
            "or declare the property on the node",
            span=node.span,
        )
    return earlier.with_interface(name, contract.hints)


def _unknown_interface(
    node: NodeDecl, name: str, interfaces: Mapping[str, Mapping[str, PropertyDraft]]
) -> ParseError:
    reference = next(each for each in node.implements if each.name == name)
    return ParseError(
        f"node {node.name} implements unknown interface `{name}`",
        span=reference.span,
        hint=did_you_mean(name, interfaces),
    )
