"""`Graph`: open, query, mutate, load, branch, merge. This package alone knows every part.

graph.py         the class, `init` and `open`
arguments.py     what a call is given, held to its annotations
store.py         the parts of a graph in storage
handle.py        an open graph from the inside: contract, environment, life and death
reading.py       queries, scans, exports, snapshots, history
writing.py       mutations and loads
branching.py     branches: make, compare, merge, delete
maintaining.py   schema changes, indexes, clean-up, verification
query_source.py  a query given as text or as a file
commit_observers.py  readers that are made ready for a commit before it is published
results.py       what writes return
verify_at.py     verification of a graph that may not open
"""

from omnigraph.graph.graph import Graph, init, open  # noqa: A004 — the word of the API
from omnigraph.graph.results import LoadResult, MutationResult
from omnigraph.graph.verify_at import verify_at
from omnigraph.manifest import GraphCommit as Commit

__all__ = ["Commit", "Graph", "LoadResult", "MutationResult", "init", "open", "verify_at"]
