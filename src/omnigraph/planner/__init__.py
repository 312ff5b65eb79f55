"""IR to plan: where a match starts, what it binds, what it only counts.

In: the typed query, the catalogue, the row counts of the snapshot. Out: frozen data that `explain`
prints and an engine runs.

    make_plan.py        the rewrites, in order
    read_pipeline.py    the query as a first plan
    sort_clauses.py     one plan for one pattern, in whatever order it was written
    merge_filters.py    each predicate beside the variable it is about
    mask_negations.py   a `not` on one variable, once per node
    bind_variables.py   what rows hold, and what is only counted
    choose_root.py      where to start, and in which order to go on
    drop_variables.py   what has been read for the last time leaves the rows
    push_limit.py       an order decided by the root lets the limit stop the match early
    point.py            which reads look up one node
    pattern.py          variables joined by hops, and what is required of them
    trees.py            hops grown outwards from a root, and where they close
    estimate.py         how many nodes a variable may be bound to, and a hop leads to
    order_joins.py      the cheapest order of a pattern with cycles
    plan.py             the result, and its text

Each rewrite is one file, which shows the plan before and after it for a query over this schema,
with 100,000 persons in 50 towns who know ten others each:

    node Person { name: String @key  age: I32? }
    node Town { name: String @key  size: I64? }
    edge Knows: Person -> Person { weight: I32? }
    edge LivesIn: Person -> Town
"""

from omnigraph.planner.make_plan import make_plan
from omnigraph.planner.plan import Plan, Statistics, format_plan

__all__ = ["Plan", "Statistics", "format_plan", "make_plan"]
