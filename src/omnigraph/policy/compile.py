"""Compile: a checked bundle → Cedar schema, policies and entities, as text.

One permit per (rule, action), in the order of the bundle, so that the position Cedar reports
leads back to the rule. Names of people never become syntax: literals escape every character that
is not plainly harmless.
"""

from __future__ import annotations

import json
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.policy.model import (
    BRANCH_SCOPE,
    TARGET_BRANCH_SCOPE,
    Action,
    Bundle,
    Kind,
    Scope,
    TypeScope,
)

NAMESPACE = "Omnigraph"
SERVER_ID = "root"

_HARMLESS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@ ")
_PREFIXES = {BRANCH_SCOPE: "branch", TARGET_BRANCH_SCOPE: "target_branch"}
_RESOURCE_TYPES = {Kind.GRAPH: "Graph", Kind.SERVER: "Server"}


@dataclass(frozen=True, slots=True)
class CedarText:
    """A bundle in Cedar's words. `rule_ids[n]` is the rule of the n-th permit."""

    policies: str
    entities: str
    rule_ids: tuple[str, ...]
    resource: dict[str, str]


def compile_bundle(bundle: Bundle, resource: str) -> CedarText:
    """The bundle over one resource: the id of its graph, or the server."""
    subject = (_RESOURCE_TYPES[bundle.kind], well_formed(resource))
    pairs = [(rule, action) for rule in bundle.rules for action in rule.actions]
    permits = [
        _permit(rule.id, rule.group, action, subject, _condition(action, scope, rule.types))
        for rule, action in pairs
        for scope in [_scope_of(action, rule.branch_scope, rule.target_branch_scope)]
    ]
    return CedarText(
        policies="\n".join(permits),
        entities=json.dumps(_entities(bundle, subject)),
        rule_ids=tuple(rule.id for rule, _ in pairs),
        resource=uid(*subject),
    )


def uid(entity_type: str, entity_id: str) -> dict[str, str]:
    """An entity by name, in the form that needs no escaping."""
    return {"type": f"{NAMESPACE}::{entity_type}", "id": entity_id}


def well_formed(text: str) -> str:
    """The text without what UTF-8 cannot say: lone surrogates, as of undecodable file names."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _scope_of(action: Action, branch: Scope, target_branch: Scope) -> Scope:
    match action.scope_key:
        case None:
            return Scope.ANY
        case "branch_scope":
            return branch
        case _:
            return target_branch


def _condition(action: Action, scope: Scope, types: TypeScope | None) -> str:
    return _branch_condition(action, scope) + _type_condition(types)


def _branch_condition(action: Action, scope: Scope) -> str:
    if action.scope_key is None or scope is Scope.ANY:
        return ""
    prefix = _PREFIXES[action.scope_key]
    negation = "!" if scope is Scope.UNPROTECTED else ""
    return f" when {{ context.has_{prefix} && {negation}context.{prefix}_is_protected }}"


def _type_condition(types: TypeScope | None) -> str:
    """Limit a rule to types. A request about no type passes: each type is asked for by itself."""
    if types is None:
        return ""
    listed = ", ".join(map(_literal, sorted(types.names)))
    negation = "!" if types.is_except else ""
    named = f"{negation}([{listed}].contains(context.type_name))"
    return f" when {{ !context.has_type || {named} }}"


def _permit(
    rule_id: str, group: str, action: Action, subject: tuple[str, str], condition: str
) -> str:
    return (
        f"@id({_literal(f'{rule_id}:{action}')})\n"
        f"permit (principal in {_entity('Group', group)}, "
        f"action == {_entity('Action', action)}, "
        f"resource == {_entity(*subject)}){condition};"
    )


def _entity(entity_type: str, entity_id: str) -> str:
    return f"{NAMESPACE}::{entity_type}::{_literal(entity_id)}"


def _literal(text: str) -> str:
    return '"' + "".join(c if c in _HARMLESS else f"\\u{{{ord(c):x}}}" for c in text) + '"'


def _entities(bundle: Bundle, subject: tuple[str, str]) -> list[dict[str, Any]]:
    groups_of: dict[str, list[str]] = {actor: [] for actor in bundle.actors}
    for group, members in bundle.groups.items():
        for actor in members:
            groups_of[actor].append(group)
    return [
        _entity_json(uid(*subject)),
        *(_entity_json(uid("Group", group)) for group in bundle.groups),
        *(
            _entity_json(uid("Actor", actor), [uid("Group", group) for group in groups])
            for actor, groups in groups_of.items()
        ),
    ]


def _entity_json(name: dict[str, str], parents: list[dict[str, str]] | None = None) -> Any:
    return {"uid": name, "attrs": {}, "parents": parents or []}


def _schema() -> str:
    facts = "\n".join(
        f"        {name}: {kind},"
        for name, kind in [
            ("has_branch", "Bool"),
            ("branch", "String"),
            ("has_target_branch", "Bool"),
            ("target_branch", "String"),
            ("branch_is_protected", "Bool"),
            ("target_branch_is_protected", "Bool"),
            ("has_type", "Bool"),
            ("type_name", "String"),
        ]
    )
    actions = "\n".join(
        f'    action "{action}" appliesTo {{ principal: [Actor], '
        f"resource: [{_RESOURCE_TYPES[action.kind]}], context: RequestContext }};"
        for action in Action
    )
    return (
        f"namespace {NAMESPACE} {{\n"
        "    entity Group;\n    entity Actor in [Group];\n    entity Graph;\n    entity Server;\n"
        f"    type RequestContext = {{\n{facts}\n    }};\n{actions}\n}}\n"
    )


SCHEMA = _schema()
