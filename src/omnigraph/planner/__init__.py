"""IR to plan: where a match starts, what it binds, what it only counts.

In: the typed query, the catalogue, the row counts of the snapshot. Out: frozen data that `explain`
prints and an engine runs. Each rewrite is one file.

    pattern.py         variables joined by steps, and what is required of them
    merge_filters.py   pipeline → pattern: each predicate beside the variable it is about
    choose_root.py     pattern → trees: where to start, what to bind, what to count
    push_limit.py      an order decided by the root lets the limit stop the match early
    point.py           which reads look up one node
    make_plan.py       all of it, in order
    plan.py            the result, and its text
"""

from omnigraph.planner.choose_root import Statistics
from omnigraph.planner.make_plan import make_plan
from omnigraph.planner.plan import Plan, format_plan

__all__ = ["Plan", "Statistics", "format_plan", "make_plan"]
