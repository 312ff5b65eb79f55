"""Make a plan: read the pipeline, then apply every rewrite in order."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from omnigraph.catalog.model import Catalog
from omnigraph.ir.query import QueryIR
from omnigraph.planner.bind_variables import bind_variables
from omnigraph.planner.choose_root import choose_root
from omnigraph.planner.drop_variables import drop_variables
from omnigraph.planner.mask_negations import mask_negations
from omnigraph.planner.merge_filters import merge_filters
from omnigraph.planner.plan import Plan, Rewrite, Statistics
from omnigraph.planner.point import mark_point_read
from omnigraph.planner.push_limit import push_limit
from omnigraph.planner.read_pipeline import read_pipeline
from omnigraph.planner.sort_clauses import sort_clauses

REWRITES: tuple[Rewrite, ...] = (
    sort_clauses,
    merge_filters,
    mask_negations,
    bind_variables,
    choose_root,
    drop_variables,
    push_limit,
    mark_point_read,
)
"""Each relies on those before it: what is bound depends on the masks, the root on what is bound."""


def make_plan(ir: QueryIR, catalog: Catalog, statistics: Statistics) -> Plan:
    """Plan a read. Each stage is planned by itself: what follows does not change its rows."""

    def rewrite(plan: Plan) -> Plan:
        return reduce(lambda plan, change: change(plan, catalog, statistics), REWRITES, plan)

    plan = read_pipeline(ir)
    stages = tuple(replace(stage, plan=rewrite(stage.plan)) for stage in plan.stages)
    return rewrite(replace(plan, stages=stages))
