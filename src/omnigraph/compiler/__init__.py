"""The compiler: query text and a catalogue in, a typed query out.

compile.py            the entry point, and the caches: parse → check → lower
check.py              parameters, then the constructs below; `typed.py` holds what comes out
  scope.py            the names a clause can see
  check_match.py      bindings and `not`; check_traversals.py, check_filters.py
  check_paths.py      what a path variable may be, and path_calls.py be asked
  check_blocks.py     `optional` and `either`; rejects_null.py when the first is no option
  check_stages.py     `top … by` before `match`; check_counts.py for `top`, `limit`, `offset`
  check_params.py     types and defaults of parameters
  check_values.py     literals, parameters and now() against a property
  check_expressions.py  computed values; functions.py what each function takes and gives
  check_search.py     search, fuzzy, match_text, nearest, bm25, rrf
  check_returns.py    projections and aggregates; check_order.py
  check_groups.py     aggregates beside keys; check_having.py; check_objects.py (`$p { * }`)
  check_mutations.py  insert, update, delete
  check_assignments.py, check_where.py, match_columns.py, check_mutation_return.py
walk.py               every node of a tree or typed expression
lower.py              a checked read to a pipeline of operators
params.py             JSON values to declared parameters, when a query is about to run
describe.py           what a query returns, reads and writes
check_file.py         each query of a file on its own
lint.py               all of a file's queries, with everything that is wrong with them
                      (lint_nulls.py, lint_patterns.py, lint_stages.py)
trace.py              the same read, with what its pattern matched
codes.py              what each code means
language.py           what there is to write: words, functions, types, annotations, codes
"""

from omnigraph.compiler.compile import CompiledQuery, compile_query, require_mutation, require_read
from omnigraph.compiler.params import ParamValue, bind_params

__all__ = [
    "CompiledQuery",
    "ParamValue",
    "bind_params",
    "compile_query",
    "require_mutation",
    "require_read",
]
