"""Check files: checks as people keep them, in `.gq` files beside the schema.

checks/papers.gq      each query is a check, by its name: it has to return no rows
checks/checks.yaml    optional
    every_commit: [every_paper_has_an_author]      hold after every commit, not only merges
    expect:
      one_editor: [{"n": 1}]                       the rows that a check returns instead of none
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.manifest.checks import Check
from omnigraph.syntax import parse_query
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.query_tree import QueryTree
from omnigraph.yaml_fields import to_plain
from omnigraph.yaml_text import Problems, read_yaml

SETTINGS_FILE = "checks.yaml"


def read_checks(paths: Sequence[str | Path]) -> list[Check]:
    """The checks of `.gq` files, and of all such files of directories with their settings.

    Raises:
        BadRequestError: A file cannot be read, is no list of reads, or two checks have one name.
    """
    found: dict[str, Check] = {}
    for path in map(Path, paths):
        files = sorted(path.glob("*.gq")) if path.is_dir() else [path]
        settings = _read_settings(path / SETTINGS_FILE) if path.is_dir() else {}
        names = [check.name for file in files for check in _list_checks(file, settings)]
        _require_known(settings, names, path)
        for file in files:
            for check in _list_checks(file, settings):
                if check.name in found:
                    raise BadRequestError(f"{file}: there is another check '{check.name}'")
                found[check.name] = check
    return list(found.values())


def _list_checks(file: Path, settings: dict[str, Any]) -> Iterator[Check]:
    tree = parse_query(_read(file), name=str(file))
    for query in tree.queries:
        if query.is_mutation:
            raise BadRequestError(f"{file}: '{query.name}' writes — a check is a read")
        yield Check(
            query.name,
            print_query(QueryTree((query,))),
            tuple(settings.get("expect", {}).get(query.name, ())),
            query.name in settings.get("every_commit", ()),
        )


def _read_settings(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    problems = Problems(str(file), lambda lines: BadRequestError("\n".join(lines)))
    value = to_plain(read_yaml(_read(file), problems))
    problems.raise_if_any()
    is_right = (
        isinstance(value, dict)
        and value.keys() <= {"every_commit", "expect"}
        and isinstance(value.get("every_commit", []), list)
        and isinstance(value.get("expect", {}), dict)
        and all(
            isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
            for rows in value.get("expect", {}).values()
        )
    )
    if not is_right:
        raise BadRequestError(
            f"{file}: expected `every_commit`, a list of checks, and `expect`, rows by check"
        )
    return dict(value)


def _require_known(settings: dict[str, Any], names: Sequence[str], path: Path) -> None:
    for name in [*settings.get("every_commit", ()), *settings.get("expect", {})]:
        if name not in names:
            message = f"{path / SETTINGS_FILE}: there is no check '{name}'"
            raise BadRequestError(with_suggestion(message, str(name), names))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadRequestError(f"cannot read '{file}': {error}") from None
