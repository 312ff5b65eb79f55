"""Transfer: graphs that travel between stores, by the files that are missing on the other side.

contents.py   everything that one state of a graph consists of, while others write to it
copying.py    the files that are missing, compared with their checksums
clone.py      a second store of a whole graph
backup.py     the same as objects named by their hash, with a list per backup
receive.py    a branch comes from another store: commits, states, one publish
  histories.py     which commits are missing
  table_import.py  versions of tables that were made there
  schemas.py       the schemas that they are in
  line.py          what the branch shows then, as one request
tags.py       names of commits come along
remotes.py    names for other stores
result.py     what a transfer returns
"""
