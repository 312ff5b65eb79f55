"""The client: a served graph, called over HTTP. In: a call; out: the JSON of the answer.

http.py        one request and its answer; what can go wrong becomes a typed error
remote.py      `RemoteGraph`: one method a route
load_text.py   files of records → the strict text that a server takes
"""

from omnigraph.client.remote import RemoteGraph, connect

__all__ = ["RemoteGraph", "connect"]
