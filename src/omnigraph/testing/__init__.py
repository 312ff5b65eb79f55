"""Testing: what tests of Omnigraph, and of programs that use it, may lean on.

    crash.py        work in a process of its own, which may be killed at a failpoint
    inside.py       the parts of an open graph that its public face does not show
    strategies.py   Hypothesis strategies for schema trees (needs `hypothesis`)
    query_strategies.py   … and for query trees
    evaluator.py    a reference for reads, changed.py for mutations: plain Python, one row at a time
                    (computed.py, walks.py, returned.py, ranked.py)
    together.py     calls of one graph as the members of one group, in a known order
    format.py       any frozen value as readable text

Nothing here is imported by the product.
"""
