"""Reads on Spark: the planner's plan as DataFrames, over the same tables at the same snapshot.

In: the typed query, its parameters, one snapshot. Out: a DataFrame in the shape of `return`, or
the same Arrow table that the local engine gives.

    execute.py    the whole way: plan, match, group or order, project
    session.py    settings that reads need, apart from those of the session they run in
    run.py        what one execution reads through; tables and pairs as frames
    columns.py    names of columns, and values from Arrow to Spark and back
    source.py     a table as a frame: parts of a version, read and filtered by tasks
    values.py     a literal or parameter as a column
    interface.py  the nodes of every type that implements one
    pairs.py      which pairs of ends several edges have, found once for each version
    checks.py     predicates on Arrow batches, by the rules of the local engine
    row_filters.py  predicates over several variables, on rows that bind them all
    texts.py      tokens of texts in a batch: what matches, and how relevant it is
    rows.py       matches as a frame: bindings, weights, sums
    needs.py      which properties rows have to carry
    match.py      trees and branches → joins; counted variables → pre-aggregated messages
    negate.py     `not { … }` → anti-joins
    blocks.py     `optional` and `either` → joins with what they add
    identity.py   which columns tell entities apart, null and interfaces included
    walk.py       `{m,n}` → frontiers: looked up while they are small, joined when they are not
    paths.py      walks that keep what they followed; shortest paths
    stages.py     the best rows of a first match, from which the next goes on
    computed.py   expressions as columns, by the functions of the local engine
    shown.py      whatever is projected, as a column of a frame
    group.py      groups by keys; aggregates.py and lists.py say what each of them has
    list_sizes.py  how large lists would be; result_size.py the rows of the result
    finish.py     `having`, columns over groups, distinct rows
    order.py      order, ties, limit
    result.py     the rows, brought here when they are first looked at
    rank.py       rows in the order of a search, and scores as columns
    explain.py    Spark's plan below ours
    failures.py   what Spark says when it fails, in our words

Every step gives the rows of the local engine: tests run both and compare.
"""
