"""Views: every type of a graph as a table of Spark SQL, all at one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.graph import Graph


def create_views(spark: Any, graph: Graph, *, prefix: str = "", branch: str = "main") -> list[str]:
    """Make a temporary view of every type, named after it behind `prefix`; their names.

    Raises:
        BadRequestError: Two views would have one name, for Spark has no upper and lower case.
    """
    snapshot = graph.snapshot(branch)
    keys = sorted(snapshot.entries)
    names = {key: prefix + key.partition(":")[2] for key in keys}
    _require_distinct(names)
    for key, name in names.items():
        scan = graph.scan(key, branch=branch, version=snapshot.manifest_version)
        scan.to_spark(spark).createOrReplaceTempView(f"`{name}`")
    return list(names.values())


def _require_distinct(names: dict[str, str]) -> None:
    seen: dict[str, str] = {}
    for key, name in names.items():
        other = seen.setdefault(name.lower(), key)
        if other != key:
            raise BadRequestError(
                f"'{other}' and '{key}' would both be the view `{name}`: Spark has no upper and "
                "lower case — make a view of each with "
                f"`graph.scan({key!r}).to_spark(spark).createOrReplaceTempView(...)`"
            )
