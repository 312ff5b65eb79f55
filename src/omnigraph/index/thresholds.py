"""Thresholds: from which sizes and how many uses on it pays to decode, rank or index.

Read as `thresholds.NAME`, so that one assignment changes them for every module.
"""

from __future__ import annotations

SMALL_TABLE_ROWS = 16_384
"""Up to here a column is decoded and ranked when it is first used."""
FEW_ROWS = 256
"""So few rows are compared with one value as quickly as it is found by rank."""
FEW_IDS = 1_024
"""So few entities are looked up one by one in a table that is not decoded."""
EDGES_LOOKED_UP_AGAIN = 16_384
"""Up to here a look-up is so quick that it is done again, while the adjacency is being made."""
NEW_ROWS_RANKED_MAX = 65_536
"""How many rows added since a column was ranked are ranked themselves, with every commit."""
ROWS_RANKED_AT_ONCE = 131_072
"""Up to here a decoded column is ranked when a filter first uses it."""
RANKS_FOR_POSTINGS = 16
"""With fewer distinct values each of them is so common that a mask is as good."""
USES_BEFORE_DECODING = 2
USES_BEFORE_RANKING = 16
ROWS_DECODED_PER_LOOKUP = 2_000
"""How many rows are decoded and ranked in the time of one look-up by an index."""
MANY_VALUES = 4_096
"""A column that is to be among so many values is decoded at once: storage would read each."""
FEW_COMPARISONS = 8
"""So many values are compared with a column one after the other, rather than by a set."""
