"""Run: an algorithm by its name. Parameters are checked before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms.blocks import Blocks, Numbers
from omnigraph.algorithms.counts import count_degrees, find_triangles
from omnigraph.algorithms.distances import NOT_REACHED, find_distances
from omnigraph.algorithms.labels import find_communities, find_components
from omnigraph.algorithms.rank import pagerank
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, did_you_mean


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_ids(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


@dataclass(frozen=True, slots=True)
class _Param:
    """What a parameter has to be, in words and as a test."""

    expected: str
    is_right: Callable[[object], bool]
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Algorithm:
    """`labels` says that values are nodes, shown by their ids."""

    function: Callable[..., dict[str, Numbers]]
    params: Mapping[str, _Param]
    labels: bool = False


_COUNT = _Param("a whole number of 0 or more", _is_count)
_SHARE = _Param("a number from 0 to 1", _is_share)

ALGORITHMS: Mapping[str, Algorithm] = {
    "pagerank": Algorithm(pagerank, {"damping": _SHARE, "iterations": _COUNT, "tolerance": _SHARE}),
    "components": Algorithm(find_components, {}, labels=True),
    "communities": Algorithm(find_communities, {"rounds": _COUNT}, labels=True),
    "degrees": Algorithm(count_degrees, {}),
    "triangles": Algorithm(find_triangles, {}),
    "distances": Algorithm(
        find_distances,
        {
            "from": _Param("a list of ids", _is_ids, is_required=True),
            "direction": _Param("out, in or both", lambda v: v in ("out", "in", "both")),
            "max_hops": _COUNT,
        },
    ),
}


def check_params(name: str, params: Mapping[str, Any]) -> Algorithm:
    """The algorithm of this name, if it takes these parameters.

    Raises:
        BadRequestError: It is not known, or a parameter is not one of its own or is wrong.
    """
    found = ALGORITHMS.get(name)
    if found is None:
        hint = did_you_mean(name, list(ALGORITHMS)) or f"expected one of {', '.join(ALGORITHMS)}"
        raise BadRequestError(f"there is no algorithm '{name}' — {hint}")
    for key, value in params.items():
        if key not in found.params:
            known = ", ".join(found.params) or "none"
            raise BadRequestError(f"'{name}' has no parameter '{key}' — it takes {known}")
        if not found.params[key].is_right(value):
            expected = found.params[key].expected
            raise BadRequestError(f"{key} of '{name}' is {value!r}, expected {expected}")
    for key, param in found.params.items():
        if param.is_required and key not in params:
            raise BadRequestError(f"'{name}' needs the parameter '{key}', {param.expected}")
    return found


def run_algorithm(name: str, params: Mapping[str, Any], blocks: Blocks, ids: pa.Array) -> pa.Table:
    """The values of every node by its id, in the order of `ids`, which is that of the vertices."""
    algorithm = check_params(name, params)
    given = dict(params)
    if "from" in given:
        given["starts"] = _find(ids, given.pop("from"))
    values = algorithm.function(blocks, **given)
    columns = {
        column: ids.take(pa.array(numbers)) if algorithm.labels else pa.array(numbers)
        for column, numbers in values.items()
    }
    table = pa.table({"id": ids, **columns})
    if name == "distances":
        table = table.filter(pa.array(values["distance"] != NOT_REACHED))
    return table


def _find(ids: pa.Array, wanted: list[str]) -> Numbers:
    places = pc.index_in(pa.array(wanted, pa.utf8()), value_set=ids)
    if places.null_count:
        missing = wanted[places.is_null().index(True).as_py()]
        raise BadRequestError(f"there is no node '{missing}' to start from")
    return np.asarray(places.to_numpy(), dtype=np.int64)
