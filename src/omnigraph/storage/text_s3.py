"""S3 text store: one object per text, created and replaced with conditional puts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from omnigraph.errors import BadRequestError, ObjectMissing, StoragePermissionDenied
from omnigraph.nonblocking import may_block
from omnigraph.storage.counters import record
from omnigraph.storage.lance_errors import translate
from omnigraph.storage.location import GraphRoot
from omnigraph.storage.text import (
    TextStore,
    decode_text,
    is_temporary,
    refuse_larger,
    refuse_temporary,
)


class S3TextStore(TextStore):
    """Text objects of one bucket. Takes `s3://` URIs below the bucket of the graph."""

    def __init__(self, root: GraphRoot, storage_options: Mapping[str, str]) -> None:
        self._bucket = root.uri.removeprefix("s3://").partition("/")[0]
        self._store = _s3_store(self._bucket, storage_options)

    def read_text_if_exists(self, uri: str, *, bytes_max: int | None = None) -> str | None:
        found = self._get(uri, bytes_max)
        return None if found is None else found[0]

    def write_text(self, uri: str, text: str, *, after: Collection[str] = ()) -> None:
        self._put(uri, text)

    def write_text_if_absent(self, uri: str, text: str) -> bool:
        try:
            self._put(uri, text, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def exists(self, uri: str) -> bool:
        key = self._key(uri)
        with _s3_errors("looking for", uri):
            try:
                obstore.head(self._store, key)
            except FileNotFoundError:
                return any(
                    not is_temporary(item["path"])
                    for page in obstore.list(self._store, prefix=key)
                    for item in page
                )
        return True

    def rename_text(self, source: str, target: str) -> None:
        old, new = self._key(source), self._key(target)
        with _s3_errors("renaming", source):
            try:
                obstore.copy(self._store, old, new)
            except FileNotFoundError as error:
                raise ObjectMissing(source) from error
            obstore.delete(self._store, old)
        record(text_writes=1)

    def delete(self, uri: str, *, is_lasting: bool = True) -> None:
        key = self._key(uri)
        with _s3_errors("deleting", uri):
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError:
                return
        record(text_deletes=1)

    def list_dir(self, uri: str) -> list[str]:
        names = (item["path"].rpartition("/")[2] for item in self._list(uri)["objects"])
        return [f"{uri.rstrip('/')}/{name}" for name in names if not is_temporary(name)]

    def list_folders(self, uri: str) -> list[str]:
        prefixes = self._list(uri)["common_prefixes"]
        return [prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes]

    def delete_prefix(self, uri: str) -> None:
        key = self._key(uri)
        with _s3_errors("deleting", uri):
            for page in obstore.list(self._store, prefix=key):
                obstore.delete(self._store, [item["path"] for item in page])
        record(text_deletes=1)

    def read_text_versioned(self, uri: str) -> tuple[str, str]:
        found = self._get(uri)
        if found is None:
            raise ObjectMissing(uri)
        return found

    def write_text_if_match(self, uri: str, text: str, token: str) -> str | None:
        try:
            return self._put(uri, text, mode={"e_tag": token})
        except (PreconditionError, FileNotFoundError):
            return None

    def _list(self, uri: str) -> obstore.ListResult[Sequence[obstore.ObjectMeta]]:
        key = self._key(uri)
        with _s3_errors("listing", uri):
            found = obstore.list_with_delimiter(self._store, prefix=key)
        record(text_lists=1)
        return found

    def _get(self, uri: str, bytes_max: int | None = None) -> tuple[str, str] | None:
        key = self._key(uri)
        with _s3_errors("reading", uri):
            try:
                result = obstore.get(self._store, key)
                refuse_larger(uri, result.meta["size"], bytes_max)
                data = bytes(result.bytes())
            except FileNotFoundError:
                return None
        record(text_reads=1)
        return decode_text(data, uri), result.meta["e_tag"] or ""

    def _put(self, uri: str, text: str, mode: object = "overwrite") -> str:
        key = self._key(uri)
        with _s3_errors("writing", uri):
            # A multipart upload would drop the condition.
            result = obstore.put(
                self._store,
                key,
                text.encode(),
                mode=mode,  # type: ignore[arg-type]
                use_multipart=False,
            )
        record(text_writes=1)
        return result["e_tag"] or ""

    def _key(self, uri: str) -> str:
        refuse_temporary(uri)
        prefix = f"s3://{self._bucket}/"
        if not uri.startswith(prefix):
            raise BadRequestError(f"'{uri}' is not in the bucket '{self._bucket}' of this graph")
        return uri.removeprefix(prefix).rstrip("/")


def s3_bucket(uri: str, options: Mapping[str, str]) -> tuple[S3Store, str]:
    """The bucket that an `s3://` URI names, opened, and the key within it."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return _s3_store(bucket, options), key


def _s3_store(bucket: str, options: Mapping[str, str]) -> S3Store:
    config = {name.lower(): value for name, value in options.items()}
    # Lance takes this client setting among its store options, and from the environment.
    allow_http = config.pop("allow_http", os.environ.get("AWS_ALLOW_HTTP", "false"))
    return S3Store(
        bucket,
        config=config,  # type: ignore[arg-type]
        client_options={"allow_http": allow_http.lower() == "true"},
    )


@contextmanager
def _s3_errors(action: str, uri: str) -> Iterator[None]:
    may_block()
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoragePermissionDenied(
            f"access denied while {action} '{uri}' — check the credentials"
        ) from error
    except (AlreadyExistsError, PreconditionError):
        raise
    except BaseError as error:
        raise translate(error, action=action, location=uri) from error
