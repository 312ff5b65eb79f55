"""`Graph`: open, query, mutate, load, branch, merge. This package alone knows every part.

open_graph.py        `init` and `open`
graph.py             `Graph`: every public call
arguments.py         checks what a call is given against its annotations
session.py           what the calls work on: store, schema, known states, caches, policy
mutations.py         a mutation as one commit      loads.py  what a load needs around it
store.py             the parts of a graph in storage
settings.py          what `open` is given as `spark` and `config`
commit_observers.py  readers that are made ready for a commit before it is published
query_source.py      a query given as text or as a file
blob_reader.py       the bytes of a Blob
subgraph.py          what a read matched, as nodes and edges
picture.py           a subgraph to look at          picture_widget.py  with the renderer of `ui/`
results.py           what writes return
versions.py          the calls that name states, or bring them to another store
transfers.py         what needs no open graph: clone, restore a backup
relocation.py        what an open does with a graph that was moved or copied
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
