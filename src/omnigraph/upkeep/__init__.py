"""Upkeep: what keeps a graph fast as it grows. Never changes what a query answers.

`self_care.py` compacts on the way: small pieces that many small writes left, when a cheap counter
says so.
"""
