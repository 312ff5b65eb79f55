"""Plan and snapshot to rows: masks, messages, and rows only after reduction.

In: the typed query, its parameters, one snapshot. Out: an Arrow table in the shape of `return`.

    execute.py    the whole way; plans are cached by query and table sizes
    run.py        what one execution reads through; the trace that `explain` prints
    values.py     literals and parameters as Arrow scalars
    filters.py    predicates over one variable → selections; over several → rows to keep
    evaluate.py   expressions → columns; conditions → where they are true, where known
    functions.py  arithmetic and the functions of the language, over columns
    compare.py    two columns row by row, by the rules of the language
    members.py    the values of an `in`, prepared once
    match.py      reduce → not → enumerate → apply (match_stages.py: where each is applied)
    stages.py     `top … by` before a match, by scores.py; blocks.py: `optional` and `either`
    views.py      what a variable is bound in, where that is several tables
    reduce.py     what each variable can still be bound to, before any row is made
    steps.py      rows along one branch, block by block: expand, intersect, count, drop
    closing.py    which pairs an edge joins, and where runs of neighbours meet
    folding.py    rows that bind the same become one
    hops.py       the pairs of nodes that a hop relates, its bounds included
    walks.py      walks of several hops; paths.py keeps those that are bound: shortest.py,
                  all_shortest.py, cheapest.py
    weights.py    messages: how many matches hang below a position, and what they sum to
    kernels.py    expansion, reach, sums along edges, bounded walks: plain functions over arrays
    rows.py       bindings as arrays of positions
    joins.py      rows that share no variable: equal values, else a cross product
    grouping.py   groups by value, aggregates
    wide_groups.py  keys and aggregates that are computed for each row
    finish.py     groups → rows of the result; counts.py limits
    shown.py      what is returned, in every row; objects.py `$p { * }`
    stream.py     a scan of a type too large to hold; stream_groups.py its aggregates
    sorting.py    rows in the order of several keys
    ranking.py    rows in the order of a search; calls search.py
    score_columns.py  its values as a column
    search.py     which rows match a text, and in which order rows answer a ranking
    relevance.py  the texts that answer a query best
    phrases.py    texts that have the words of a query one after the other
    result.py     `QueryResult`: JSON, Arrow, pandas, polars, notebooks
    explain.py    every stage as text, and what running it did
"""

from omnigraph.executor.execute import execute
from omnigraph.executor.result import QueryResult

__all__ = ["QueryResult", "execute"]
