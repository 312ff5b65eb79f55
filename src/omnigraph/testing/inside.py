"""Inside: the parts of an open graph that its public face does not show.

Tests reach them through this name alone; `tests/test_privacy.py` holds them to it.
"""

from __future__ import annotations

from omnigraph.graph import Graph
from omnigraph.graph.graph import get_session
from omnigraph.graph.session import Session


def inside(graph: Graph) -> Session:
    """What every call of `graph` works on: its store, coordinator, cache and write environment."""
    return get_session(graph)
