"""Branches of the whole graph: `create.py` makes one, `delete.py` removes one and its forks."""
