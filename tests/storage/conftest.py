"""What storage tests share: a table over each store, and a real S3 server."""

from __future__ import annotations

import threading
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage.handles import CommittedVersion, StagedTransaction, TableHandle
from omnigraph.storage.location import GraphRoot, TableLocation, graph_root
from omnigraph.storage.tables import TableStorage

BUCKET = "graphs"

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("name", pa.utf8()),
        pa.field("age", pa.int64()),
        pa.field("camelCase", pa.utf8()),
        pa.field("photo", pa.large_binary()),
        pa.field("vector", pa.list_(pa.field("item", pa.float32()), 4)),
    ]
)


def people(first: int, last: int, *, age: int | None = None) -> pa.Table:
    """Rows `p<first>` to `p<last - 1>`; the age is the number unless it is given."""
    numbers = range(first, last)
    return pa.table(
        {
            "id": [f"p{number}" for number in numbers],
            "name": [f"name {number}" for number in numbers],
            "age": [number if age is None else age for number in numbers],
            "camelCase": [f"c{number % 3}" for number in numbers],
            "photo": [None if number % 3 == 0 else b"x" * number for number in numbers],
            "vector": [[float(number), 0.0, 0.0, 1.0] for number in numbers],
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True)
class Store:
    """Where a graph of the test lies, and how to reach it."""

    root: GraphRoot
    storage_options: dict[str, str] = field(default_factory=dict)

    def client(self) -> Any:
        """A client for the objects of an S3 store."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.storage_options["aws_endpoint"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )


@dataclass(frozen=True)
class People:
    """One table, driven the way a writer drives it."""

    storage: TableStorage
    location: TableLocation

    def head(self) -> TableHandle:
        return self.storage.open_at(self.location, self.storage.head_version(self.location))

    def commit(self, staged: StagedTransaction | None) -> CommittedVersion:
        assert staged is not None
        return self.storage.commit_staged(staged)

    def append(self, first: int, last: int) -> CommittedVersion:
        return self.commit(self.storage.rows.stage_append(self.head(), people(first, last)))

    def ids(self, handle: TableHandle | None = None) -> list[str]:
        rows = self.storage.reads.scan(handle or self.head(), ["id"])
        return sorted(rows.column("id").to_pylist())

    def row_ids(self, *ids: str) -> np.ndarray:
        """The row ids of these rows at HEAD, in this order."""
        rows = self.storage.reads.scan(self.head(), ["id"], with_row_id=True).to_pylist()
        known = {row["id"]: row["_rowid"] for row in rows}
        return np.array([known[each] for each in ids], dtype=np.uint64)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A real S3 server with one bucket in this process, for the whole session."""
    # Not with the file: every worker imports this file, few start the server.
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from moto.s3.responses import S3Response
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):  # type: ignore[misc]
        """Keeps connections open, and prints no line per request."""

        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Response, "_key_response_put", _one_at_a_time(S3Response._key_response_put))
        app = create_backend_app("s3")
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        yield endpoint
        server.shutdown()
        server.server_close()


def _one_at_a_time(put: Callable[..., Any]) -> Callable[..., Any]:
    """S3 decides "if there is none" and puts in one step; this server looks, then puts."""
    lock = threading.Lock()

    def put_in_turn(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return put(*args, **kwargs)

    return put_in_turn


@pytest.fixture
def s3_store(s3_endpoint: str) -> Store:
    """A fresh prefix in the bucket of that server."""
    options = {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_region": "us-east-1",
        "aws_endpoint": s3_endpoint,
        "allow_http": "true",
    }
    return Store(graph_root(f"s3://{BUCKET}/{uuid.uuid4().hex}"), options)


class _Denying(BaseHTTPRequestHandler):
    """Answers every request the way S3 answers one without permission."""

    def _deny(self) -> None:
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _deny  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def denying_s3() -> Iterator[Store]:
    """An S3 server that denies every request."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Denying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "wrong",
        "aws_region": "us-east-1",
        "aws_endpoint": f"http://127.0.0.1:{server.server_port}",
        "allow_http": "true",
    }
    yield Store(graph_root("s3://closed/graph"), options)
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each store in turn: the same tests run over all of them."""
    if request.param == "s3":
        found: Store = request.getfixturevalue("s3_store")
        return found
    return Store(graph_root(str(tmp_path / "graph")))


@pytest.fixture
def table(tmp_path: Path) -> People:
    """An empty table on the local disk."""
    return new_table(Store(graph_root(str(tmp_path / "graph"))))


@pytest.fixture
def any_table(store: Store) -> People:
    """An empty table on each store."""
    return new_table(store)


def new_table(store: Store) -> People:
    storage = TableStorage(store.root, store.storage_options)
    location = store.root.table("nodes/people")
    storage.create_table(location, SCHEMA)
    return People(storage, location)
