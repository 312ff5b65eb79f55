"""Retention: the history that self-care may remove on its own. Nothing, unless a setting says so.

    keep=10                  the newest ten commits of every branch stay readable
    older_than=7d            so do all that are younger than seven days
    keep=10,older_than=7d    only what is outside both goes

What a branch, a tag, a merge or an unfinished write needs stays whatever the setting is, as with
`cleanup`; and so does a version that was shown within the last hour, for readers that hold it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.manifest import MAIN

if TYPE_CHECKING:
    from omnigraph.storage.control import ControlTable
    from omnigraph.write.environment import WriteEnvironment

VARIABLE = "OMNIGRAPH_RETENTION"
EVERY_VERSIONS = 64
"""A cleanup is due after so many publishes on main since the last one."""
GRACE = timedelta(hours=1)
"""How long a version stays after another one has replaced it."""
MARKER = "__cleanup.json"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_FORM = "'keep=10', 'older_than=7d' or both with a comma between them"


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays readable. At least one of the two is given."""

    keep: int | None = None
    older_than: timedelta | None = None


def parse_duration(text: str) -> timedelta:
    """Parse `30`, `45s`, `10m`, `6h`, `7d` or `2w`."""
    match = re.fullmatch(r"(\d{1,9})([smhdw]?)", text.strip())
    if match is None:
        raise BadRequestError(f"'{text}' is not a duration — a number and s, m, h, d or w")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def read_retention(given: Any, where: str) -> Retention | None:
    """A setting as text or as a map; None when there is none.

    Raises:
        BadRequestError: It is neither, or says nothing that can be kept to.
    """
    if given is None or given == "":
        return None
    fields = dict(given) if isinstance(given, Mapping) else _split(given, where)
    unknown = set(fields) - {"keep", "older_than"}
    if unknown or not fields:
        raise BadRequestError(f"{where} is {given!r}, expected {_FORM}")
    return Retention(_keep(fields.get("keep"), where), _age(fields.get("older_than"), where))


def _split(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, str):
        raise BadRequestError(f"{where} is {given!r}, expected {_FORM}")
    parts = (part.partition("=") for part in given.split(","))
    return {name.strip(): value.strip() for name, _, value in parts}


def _keep(given: Any, where: str) -> int | None:
    if given is None:
        return None
    text = str(given)
    if isinstance(given, bool) or not text.isdecimal() or int(text) < 1:
        raise BadRequestError(f"{where} has keep {given!r}, expected a number of commits from 1 on")
    return int(text)


def _age(given: Any, where: str) -> timedelta | None:
    if given is None or isinstance(given, timedelta):
        return given
    if isinstance(given, str):
        return parse_duration(given)
    raise BadRequestError(f"{where} has older_than {given!r}, expected a duration such as '7d'")


def is_cleanup_due(environment: WriteEnvironment) -> bool:
    """Whether main was published to often enough since the last cleanup by any process."""
    version = environment.coordinator.last_seen(MAIN).version
    return version - _read_marker(environment) >= EVERY_VERSIONS


def clean_if_due(
    environment: WriteEnvironment, projections: Sequence[ControlTable], retention: Retention
) -> None:
    """Remove what is outside the retention. A process that dies on the way leaves it due."""
    from omnigraph.upkeep.cleanup import cleanup

    if not is_cleanup_due(environment):
        return
    version = environment.coordinator.last_seen(MAIN).version
    cleanup(
        environment,
        projections,
        keep=retention.keep,
        older_than=retention.older_than,
        confirm=True,
        grace=GRACE,
    )
    environment.texts.write_text(MARKER, json.dumps({"manifest_version": version}) + "\n")


def _read_marker(environment: WriteEnvironment) -> int:
    try:
        text = environment.texts.read_text_if_exists(MARKER)
        return 0 if text is None else int(json.loads(text)["manifest_version"])
    except (ValueError, TypeError, KeyError):
        return 0  # damaged: a cleanup writes it again
