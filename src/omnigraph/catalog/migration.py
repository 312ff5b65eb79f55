"""Migration: from the accepted schema to a desired one, as a plan that can be read before it runs.

A plan is a pure function of both schemas: it reads no data and has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.build import build_catalog
from omnigraph.catalog.compare import compare
from omnigraph.catalog.model import Catalog, EntityType, InterfaceType
from omnigraph.catalog.names import kind_of, owner_of
from omnigraph.catalog.steps import DropMode, Json, MigrationStep, UnsupportedChange
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.errors import MigrationError
from omnigraph.syntax.schema_tree import Annotation, Declaration, InterfaceDecl, SchemaTree


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps to a desired schema. No steps: the schemas mean the same.

    `catalog` is the schema once the plan is applied; a plan that is not supported has none.
    `diagnostics` are remarks for the reader, such as rename hints that are no longer needed.
    """

    steps: tuple[MigrationStep, ...]
    catalog: Catalog | None
    diagnostics: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        return not any(isinstance(step, UnsupportedChange) for step in self.steps)

    def make_sheet(self) -> Sheet:
        title = f"schema plan: {'supported' if self.supported else 'not supported'}"
        steps = [(str(step),) for step in self.steps]
        notes = "; ".join(self.diagnostics) or None
        return Sheet(title, {"note": notes, "steps": len(steps)}, [Grid(("step",), steps)])

    __repr__ = show_text
    _repr_html_ = show_html

    def require_supported(self) -> Catalog:
        """Return the schema that applying the plan leads to.

        Raises:
            MigrationError: A step is unsupported; the first one is the reason given.
        """
        for step in self.steps:
            if isinstance(step, UnsupportedChange):
                raise MigrationError(step.reason, code=step.code)
        assert self.catalog is not None
        return self.catalog

    def to_json(self) -> Json:
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}


def plan_migration(
    accepted: Catalog, desired: SchemaTree, *, allow_data_loss: bool = False
) -> MigrationPlan:
    """Plan the way from `accepted` to `desired`; with `allow_data_loss` every drop is hard.

    Raises:
        ParseError, CatalogError: The desired schema is not valid.
        IdentityError: A rename hint cannot be followed.
    """
    catalog = build_catalog(desired, accepted)
    mode = DropMode.HARD if allow_data_loss else DropMode.SOFT
    steps = compare(accepted, catalog, mode)
    refused = any(isinstance(step, UnsupportedChange) for step in steps)
    diagnostics = tuple(_inert_hints(desired, accepted))
    return MigrationPlan(steps, None if refused else catalog, diagnostics)


def _inert_hints(tree: SchemaTree, accepted: Catalog) -> Iterator[str]:
    """Remarks on hints of renames that are done: their declaration is accepted by its name."""
    known = accepted.types_by_kind()
    for declaration in tree.declarations:
        previous = known[kind_of(declaration)].get(declaration.name)
        for subject in _inert_in(declaration, previous) if previous is not None else ():
            yield f"@rename_from on {subject} has no effect: that name is accepted already"


def _inert_in(declaration: Declaration, previous: InterfaceType | EntityType) -> Iterator[str]:
    owner = owner_of(declaration)
    if not isinstance(declaration, InterfaceDecl) and _has_hint(declaration.annotations):
        yield owner
    for each in declaration.properties:
        if each.name in previous.properties and _has_hint(each.annotations):
            yield f"property `{each.name}` of {owner}"


def _has_hint(written: tuple[Annotation, ...]) -> bool:
    return any(each.name == "rename_from" for each in written)
