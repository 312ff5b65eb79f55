"""Catalog: a schema tree → checked types, identities, and the plan of a migration.

What goes in is a tree; what comes out is a `Catalog`, its JSON, or a plan:

    tree ─ validate ─► draft ─ identity ─► Catalog ─ accepted ─► `_schema.ir.json`
                                              │
                            accepted Catalog ─┴─ compare ─► MigrationPlan

    model.py        the catalogue itself: frozen values, no behaviour
    validate.py     every rule of one schema file, in this order:
      names.py        distinct, free to use, endpoints declared
      annotations.py  what `@embed`, `@description`, `@rename_from` say
        index_language.py  `@index(language: "de")`
      interfaces.py   the properties a node has in effect
      constraints.py  `@key`, `@unique`, `@index`, `@range`, `@check`
      patterns.py     the regular expressions of `@check`
      defaults.py     the value of `@default`
      backfill.py     the columns that `@backfill` names
    identity.py     which accepted declaration each one continues; new numbers for new ones
    build.py        all of the above: `build_catalog`
    shape.py        the canonical meaning of a schema and its hash
    accepted.py     the catalogue as JSON and back
    labels.py       the property that a person would know a node by
    layout.py       the table of a type: columns, Arrow schema, indexes
    migration.py    accepted catalogue + desired tree → plan: `plan_migration`
      compare.py      the differences, paired by identity, as steps
      type_changes.py which values keep their meaning in another type
      steps.py        the steps: what each means, its JSON, its line of text
      step_text.py    the line of text of a step, from its JSON
    merge_schemas.py  two schemas that come from a third become one: `merge_schemas`
      declared_types.py  what is compared: the types of a text, by identity
    aliases.py        identities that a merge found to be the same
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from omnigraph.catalog.accepted import catalog_from_json, catalog_to_json
from omnigraph.catalog.model import (
    FIRST_ID,
    Backfill,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    EntityKind,
    EntityType,
    IndexKind,
    InterfaceType,
    NodeType,
    OpaqueAnnotation,
    Property,
    Range,
    TypeKind,
)

if TYPE_CHECKING:
    from omnigraph.catalog.aliases import unify
    from omnigraph.catalog.build import build_catalog
    from omnigraph.catalog.compare import list_differences
    from omnigraph.catalog.layout import arrow_schema, index_kind, list_declared_indexes
    from omnigraph.catalog.migration import MigrationPlan, plan_migration
    from omnigraph.catalog.patterns import compile_pattern
    from omnigraph.catalog.steps import (
        AddConstraint,
        AddProperty,
        AddType,
        ChangeCardinality,
        ChangeType,
        DropConstraint,
        DropMode,
        DropProperty,
        DropType,
        ExtendEnum,
        MigrationStep,
        RenameProperty,
        RenameType,
        UnsupportedChange,
        UpdatePropertyMetadata,
        UpdateTypeMetadata,
    )
    from omnigraph.catalog.type_changes import Tier

# What makes and compares catalogues is imported on first use: a read has one that was accepted.
_NAMES = {
    "aliases": ("unify",),
    "build": ("build_catalog",),
    "compare": ("list_differences",),
    "layout": (
        "arrow_schema",
        "index_kind",
        "list_declared_indexes",
    ),
    "migration": (
        "MigrationPlan",
        "plan_migration",
    ),
    "patterns": ("compile_pattern",),
    "steps": (
        "AddConstraint",
        "AddProperty",
        "AddType",
        "ChangeCardinality",
        "ChangeType",
        "DropConstraint",
        "DropMode",
        "DropProperty",
        "DropType",
        "ExtendEnum",
        "MigrationStep",
        "RenameProperty",
        "RenameType",
        "UnsupportedChange",
        "UpdatePropertyMetadata",
        "UpdateTypeMetadata",
    ),
    "type_changes": ("Tier",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "FIRST_ID",
    "AddConstraint",
    "AddProperty",
    "AddType",
    "Backfill",
    "Cardinality",
    "Catalog",
    "ChangeCardinality",
    "ChangeType",
    "Check",
    "DropConstraint",
    "DropMode",
    "DropProperty",
    "DropType",
    "EdgeType",
    "Embed",
    "EntityKind",
    "EntityType",
    "ExtendEnum",
    "IndexKind",
    "InterfaceType",
    "MigrationPlan",
    "MigrationStep",
    "NodeType",
    "OpaqueAnnotation",
    "Property",
    "Range",
    "RenameProperty",
    "RenameType",
    "Tier",
    "TypeKind",
    "UnsupportedChange",
    "UpdatePropertyMetadata",
    "UpdateTypeMetadata",
    "arrow_schema",
    "build_catalog",
    "catalog_from_json",
    "catalog_to_json",
    "compile_pattern",
    "index_kind",
    "list_declared_indexes",
    "list_differences",
    "plan_migration",
    "unify",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'omnigraph.catalog' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"omnigraph.catalog.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
