"""Short ways from schema text to catalogues and plans, for the tests of this directory."""

from __future__ import annotations

from omnigraph.catalog import Catalog, MigrationPlan, build_catalog, plan_migration
from omnigraph.syntax import parse_schema


def catalog(text: str, accepted: Catalog | None = None) -> Catalog:
    return build_catalog(parse_schema(text, "test.pg"), accepted)


def plan(accepted: str | Catalog, desired: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    before = catalog(accepted) if isinstance(accepted, str) else accepted
    tree = parse_schema(desired, "test.pg")
    return plan_migration(before, tree, allow_data_loss=allow_data_loss)
