"""The text of the steps of a schema change, from their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXTS = {
    "add_type": "add {type_kind} {name}",
    "rename_type": "rename {type_kind} {from} to {to}",
    "add_property": (
        "add property {property_name}: {property_type} to {type_kind} {type_name}{filled}"
    ),
    "change_type": "change property {property_name} of {type_kind} {type_name} from {from} to {to}",
    "change_cardinality": "change @card of {type_kind} {type_name} from {from} to {to}",
    "drop_constraint": "drop {constraint} of {type_kind} {type_name}",
    "rename_property": "rename property {from} of {type_kind} {type_name} to {to}",
    "add_constraint": "add {constraint} to {type_kind} {type_name}",
    "extend_enum": "extend enum {property_name} of {type_kind} {type_name} with {values}",
    "update_type_metadata": "update metadata of {type_kind} {name}",
    "update_property_metadata": (
        "update metadata of property {property_name} of {type_kind} {type_name}"
    ),
    "drop_type": "drop {type_kind} {name} ({mode}){lint}",
    "drop_property": "drop property {property_name} of {type_kind} {type_name} ({mode}){lint}",
    "unsupported_change": "unsupported: {entity}: {reason}",
}


def describe_step(step: Mapping[str, Any]) -> str:
    """Describe a step in one line; an unknown kind is described by its name."""
    text = _TEXTS.get(str(step.get("kind")))
    if text is None:
        return str(step.get("kind"))
    lint = f" [{step['code']}, {step['tier']}]" if {"code", "tier"} <= step.keys() else ""
    values = ", ".join(step.get("added_values", ()))
    given = step.get("backfill", step.get("default"))
    filled = "" if given is None else f", {given} for rows that exist"
    return text.format(**step, lint=lint, values=values, filled=filled)
