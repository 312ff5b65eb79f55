"""Infer: a first schema for files that a user has, from a sample of each.

    files ─ sample ─► columns ─ guess ─► types, keys ─ relate ─► edges ─ write ─► .pg, mapping

    infer.py    the whole way
    sample.py   the first rows of a file, as Arrow columns
    written.py  dates and numbers of CSV that a load has to be told how to read
    guess.py    what one column holds: its property, and whether it could be a key
    relate.py   which files are edges: two of their columns hold the keys of other files
    write.py    the schema and the mapping as text, with what was seen as comments

What comes out is a proposal to be read and edited. It is a valid schema, and says where it guessed.
"""

from omnigraph.infer.infer import InferredSchema, infer_schema

__all__ = ["InferredSchema", "infer_schema"]
