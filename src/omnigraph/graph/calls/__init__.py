"""The public calls of `Graph`, one file per subject; `graph/graph.py` lists them."""
