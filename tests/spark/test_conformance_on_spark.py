"""The conformance cases, their data loaded by Spark: a sample, or all of them in `make torture`.

A master in the environment sends every load there, also one of a few records.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from omnigraph.pipeline.engine import MASTER_VARIABLE
from omnigraph.pipeline.runner import InlineRunner
from tests import test_conformance as conformance
from tests.depth import IS_TORTURE
from tests.test_conformance import graphs

__all__ = ["graphs"]

pytestmark = pytest.mark.xdist_group("spark")

LOADING = [case for case in conformance.CASES if case.get("data")]
RUN = [
    case
    for number, case in enumerate(LOADING)
    if IS_TORTURE or case["kind"] == "load" or number % 14 == 0
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in RUN])
def test_a_case_holds_with_data_that_spark_loaded(
    case: conformance.Case, spark: Any, graphs: conformance.Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the load stayed in this process")

    monkeypatch.setenv(MASTER_VARIABLE, "local[2,4]")
    monkeypatch.setattr(InlineRunner, "map", refuse)

    conformance.test_case(case, graphs)


def test_the_sample_has_every_kind_of_case_that_loads() -> None:
    assert {case["kind"] for case in RUN} == {case["kind"] for case in LOADING}
