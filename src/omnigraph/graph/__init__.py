"""`Graph`: open, query, mutate, load, branch, merge. This package alone knows every part.

open_graph.py        `init` and `open`: settings.py, store.py, relocation.py
graph.py             `Graph`: its parts by subject, and its life
arguments.py         checks what a call is given against its annotations
session.py           what the calls work on: store, schema, known states, caches, policy
calls/               the public calls, one file per subject: signature, docstring, permission

What the calls do, beyond what the packages below do for them:

query_source.py, bound_params.py, reads.py, algorithms.py       a read, from its text to rows
subgraph.py, state_view.py, picture.py, picture_widget.py       rows as nodes and edges to look at
arrays.py, conversions.py, overview.py, schema_text.py          a graph as arrays, and at a glance
mutations.py, loads.py, merges.py, blob_reader.py, blob_writer.py, results.py    writes
undo_requests.py, merge_requests.py, check_files.py             undo, review, checks
commit_observers.py  readers that are made ready for a commit before it is published
transfers.py         exchange with other stores: clone, restore a backup, fetch, push
verify_at.py         verification of a graph that may not open
"""

from omnigraph.graph.graph import Graph
from omnigraph.graph.open_graph import init, open  # noqa: A004 — the word of the API
from omnigraph.graph.results import EmbedResult, LoadResult, MutationResult
from omnigraph.manifest import GraphCommit as Commit

__all__ = [
    "Commit",
    "EmbedResult",
    "Graph",
    "LoadResult",
    "MutationResult",
    "init",
    "open",
]
