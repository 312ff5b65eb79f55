"""Checks: queries with the rows that they have to return, kept with the state that they hold for.

A commit notes the checks that it changes, and the publish that makes it visible brings the row
`checks` of the manifest up to date, as with `vector_models.py`. So the checks of a branch go where
its rows go: through recovery, into new branches, into merges, and back in time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.manifest.model import GraphCommit

NOTED = "checks"
"""The property of a commit; null takes a check away."""


@dataclass(frozen=True, slots=True)
class Check(JsonForm):
    """A read without parameters, and the rows that it has to return: none, unless some are given.

    Every check holds after a merge. With `every_commit` it holds after every commit.
    """

    name: str
    query: str
    expected: tuple[Mapping[str, Any], ...] = ()
    every_commit: bool = False


Checks: TypeAlias = Mapping[str, Check]


def note_checks(changed: Mapping[str, Check | None]) -> dict[str, Any]:
    """The properties of a commit that changes these checks."""
    noted = {name: None if each is None else each.to_json() for name, each in changed.items()}
    return {NOTED: noted} if noted else {}


def apply_check_notes(checks: Checks, commits: Iterable[GraphCommit]) -> Checks:
    """The checks after some commits, in their order."""
    for commit in commits:
        for name, noted in commit.properties.get(NOTED, {}).items():
            checks = {each: check for each, check in checks.items() if each != name}
            if noted is not None:
                checks[name] = _from_json(noted)
    return checks


def list_changes(before: Checks, after: Checks) -> dict[str, Check | None]:
    """What differs, by name; None where a check is gone."""
    return {
        name: after.get(name)
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def checks_to_text(checks: Checks) -> str:
    return json.dumps([checks[name].to_json() for name in sorted(checks)])


def checks_from_text(text: str) -> Checks:
    return {each["name"]: _from_json(each) for each in json.loads(text)}


def _from_json(value: Mapping[str, Any]) -> Check:
    return Check(
        value["name"], value["query"], tuple(value["expected"]), bool(value["every_commit"])
    )
