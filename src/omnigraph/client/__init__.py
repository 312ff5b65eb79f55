"""The client: calls a served graph over HTTP. In: a call; out: the JSON of the response.

http.py        one request and its response; failures become typed errors
remote.py      `RemoteGraph`: one method per route
                (remote_requests.py: merge requests; errors.py: its errors as those of the library)
jobs.py        start upkeep on a server and wait for its outcome
load_text.py   files of records → the strict text that a server accepts
uploads.py     files of any format → the parts of a form
"""

from omnigraph.client.remote import RemoteGraph, connect

__all__ = ["RemoteGraph", "connect"]
