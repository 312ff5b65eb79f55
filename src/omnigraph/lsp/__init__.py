"""The language server: what an editor asks about `.gq` and `.pg` files, answered by the compiler.

In go texts as they are being typed, out come diagnostics, completions, hovers and definitions. Only
`server.py` knows the protocol, and only it imports pygls; the rest are functions over texts.

server.py      the protocol over standard input and output
schemas.py     which schema the queries of a file are written for
diagnose.py    everything that is wrong with a text, and where
scan.py        tokens of a text that may be half typed, and where its queries begin
outline.py     the variables of a query, as far as they can be told
place.py       what stands at a position
complete.py    what may stand there: complete_query.py, complete_schema.py
hover.py       what is to be known of it
define.py      where it is declared
positions.py   offsets of characters, and the lines and units of the protocol
"""
