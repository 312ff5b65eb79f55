"""The typed query.

In: nothing but the catalogue's names. Out: `QueryIR` and `MutationIR`, which the planner and the
write path read.

    expressions.py   what is computed and required
    query.py         what runs: the pipeline of a read
    mutations.py     the statements of a mutation, and what it gives back
    wide.py          keys and aggregates that are computed for each row
    arithmetic.py    the types that computing gives
    variables.py     which variables a predicate reads
    print.py         all of it as text, for `explain` and tests
"""

from omnigraph.ir.mutations import MutationIR
from omnigraph.ir.print import format_ir
from omnigraph.ir.query import QueryIR

__all__ = ["MutationIR", "QueryIR", "format_ir"]
