"""The text adapter's contract, over every store."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from omnigraph.errors import BadRequestError, ObjectMissing, StorageError, StoragePermissionDenied
from omnigraph.storage.counters import counting
from omnigraph.storage.location import graph_root
from omnigraph.storage.text import TextStore, open_text_store
from omnigraph.storage.text_local import LocalTextStore
from tests.storage.conftest import Store

HOSTILE = "line\r\nline\n\ttab 'quote' \"double\" \\ é 😀 \u2028 end"


@pytest.fixture
def texts(store: Store) -> TextStore:
    return open_text_store(store.root, store.storage_options)


def test_a_text_comes_back_as_it_was_written(store: Store, texts: TextStore) -> None:
    uri = store.root.child("__recovery/one.json")

    texts.write_text(uri, HOSTILE)

    assert texts.read_text(uri) == HOSTILE
    assert texts.read_text_if_exists(uri) == HOSTILE


def test_a_write_replaces_the_whole_object(store: Store, texts: TextStore) -> None:
    uri = store.root.child("_schema.pg")

    texts.write_text(uri, "a long first text")
    texts.write_text(uri, "short")
    texts.write_text(uri, "")

    assert texts.read_text(uri) == ""


@pytest.mark.accepts("S-143")
def test_what_is_missing_is_an_error_or_none(store: Store, texts: TextStore) -> None:
    uri = store.root.child("nowhere/x.json")

    with pytest.raises(ObjectMissing) as caught:
        texts.read_text(uri)
    assert caught.value.uri == uri
    assert isinstance(caught.value, StorageError)
    with pytest.raises(ObjectMissing):
        texts.read_text_versioned(uri)
    assert texts.read_text_if_exists(uri) is None
    assert not texts.exists(uri)


def test_only_the_first_creates(store: Store, texts: TextStore) -> None:
    uri = store.root.child("__init_claim.json")

    assert texts.write_text_if_absent(uri, "mine")
    assert not texts.write_text_if_absent(uri, "yours")

    assert texts.read_text(uri) == "mine"


def test_of_many_creators_one_wins(store: Store, texts: TextStore) -> None:
    uri = store.root.child("claim")
    won: list[int] = []

    def claim(number: int) -> None:
        if texts.write_text_if_absent(uri, str(number)):
            won.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [str(number) for number in won] == [texts.read_text(uri)]


@pytest.mark.accepts("S-144")
def test_only_objects_and_prefixes_with_objects_exist(store: Store, texts: TextStore) -> None:
    texts.write_text(store.root.child("a/b/c.json"), "x")

    assert texts.exists(store.root.child("a/b/c.json"))
    assert texts.exists(store.root.child("a/b"))
    assert texts.exists(store.root.child("a"))
    assert not texts.exists(store.root.child("a/b/c"))
    assert not texts.exists(store.root.child("a/b/c.json/d"))
    texts.delete(store.root.child("a/b/c.json"))
    assert not texts.exists(store.root.child("a"))


def test_a_rename_replaces_its_target(store: Store, texts: TextStore) -> None:
    source, target = store.root.child("_schema.pg.staging"), store.root.child("_schema.pg")
    texts.write_text(target, "old")
    texts.write_text(source, "new")

    texts.rename_text(source, target)

    assert texts.read_text(target) == "new"
    assert not texts.exists(source)
    with pytest.raises(ObjectMissing):
        texts.rename_text(source, target)


def test_deleting_nothing_is_success(store: Store, texts: TextStore) -> None:
    uri = store.root.child("__recovery/x.json")
    texts.write_text(uri, "x")

    texts.delete(uri)
    texts.delete(uri)
    texts.delete_prefix(store.root.child("nowhere"))

    assert not texts.exists(uri)


def test_a_listing_has_the_objects_directly_below(store: Store, texts: TextStore) -> None:
    base = store.root.child("__recovery")
    for name in ("a.json", "b.json", "deeper/c.json"):
        texts.write_text(f"{base}/{name}", name)

    found = texts.list_dir(base)

    assert sorted(found) == [f"{base}/a.json", f"{base}/b.json"]
    assert [texts.read_text(uri) for uri in sorted(found)] == ["a.json", "b.json"]
    assert texts.list_dir(store.root.child("nowhere")) == []


def test_a_prefix_goes_with_everything_below(store: Store, texts: TextStore) -> None:
    for name in ("tree/b/1", "tree/b/deep/2", "tree/bb/3"):
        texts.write_text(store.root.child(name), "x")

    texts.delete_prefix(store.root.child("tree/b"))

    assert not texts.exists(store.root.child("tree/b"))
    assert texts.exists(store.root.child("tree/bb/3"))


def test_a_write_goes_through_only_on_the_content_it_saw(store: Store, texts: TextStore) -> None:
    uri = store.root.child("state.json")
    texts.write_text(uri, "one")
    text, token = texts.read_text_versioned(uri)

    newer = texts.write_text_if_match(uri, "two", token)

    assert text == "one"
    assert newer is not None
    assert texts.write_text_if_match(uri, "three", token) is None
    assert texts.read_text(uri) == "two"
    assert texts.write_text_if_match(uri, "three", newer) is not None
    texts.delete(uri)
    assert texts.write_text_if_match(uri, "four", newer) is None


@pytest.mark.accepts("S-142")
def test_temporary_names_cannot_be_addressed(store: Store, texts: TextStore) -> None:
    uri = store.root.child("__recovery/x.json#123")

    for attempt in (texts.read_text, texts.exists, texts.delete, texts.list_dir):
        with pytest.raises(BadRequestError, match="temporary"):
            attempt(uri)
    with pytest.raises(BadRequestError, match="temporary"):
        texts.write_text(uri, "x")
    with pytest.raises(BadRequestError, match="temporary"):
        texts.write_text_if_absent(uri, "x")


@pytest.mark.accepts("S-135")
def test_every_access_is_counted(store: Store, texts: TextStore) -> None:
    uri = store.root.child("__recovery/x.json")

    with counting() as counters:
        texts.write_text(uri, "x")
        texts.read_text(uri)
        texts.read_text_if_exists(store.root.child("nowhere"))
        texts.list_dir(store.root.child("__recovery"))
        texts.delete(uri)

    counted = (counters.text_writes, counters.text_reads, counters.text_lists)
    assert counted == (1, 1, 1)
    assert counters.text_deletes == 1


def test_bytes_that_are_not_text_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(StorageError, match="not UTF-8"):
        LocalTextStore().read_text(str(path))


# The local store


@pytest.mark.accepts("S-142")
def test_leftovers_of_a_crash_are_invisible(tmp_path: Path) -> None:
    recovery = tmp_path / "__recovery"
    recovery.mkdir()
    (recovery / "x.json#123").write_text("half")
    texts = LocalTextStore()

    assert texts.list_dir(str(recovery)) == []
    assert not texts.exists(str(recovery))
    (recovery / "x.json").write_text("whole")
    assert texts.list_dir(str(recovery)) == [f"{recovery}/x.json"]


def test_a_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    texts = LocalTextStore()
    target = tmp_path / "x"

    texts.write_text(str(target), "1")
    texts.write_text_if_absent(str(target), "2")
    with pytest.raises(UnicodeEncodeError):
        texts.write_text(str(target), "\ud800")

    assert os.listdir(tmp_path) == ["x"]
    assert target.read_text() == "1"


def test_a_reader_never_sees_a_torn_text(tmp_path: Path) -> None:
    texts = LocalTextStore("process")
    uri = str(tmp_path / "x")
    sizes = [10, 200_000]
    texts.write_text(uri, "a" * sizes[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for size in sizes:
                texts.write_text(uri, "a" * size)

    writer = threading.Thread(target=write)
    writer.start()
    seen = {len(texts.read_text(uri)) for _ in range(500)}
    stop.set()
    writer.join()

    assert seen <= set(sizes)


def test_a_file_uri_and_a_path_are_one_object(tmp_path: Path) -> None:
    texts = LocalTextStore()

    texts.write_text(f"file://{tmp_path}/a b", "x")

    assert texts.read_text(f"{tmp_path}/a b") == "x"


@pytest.mark.accepts("S-144")
def test_no_permission_is_an_error_and_not_absence(tmp_path: Path) -> None:
    """In a child without the powers of root, which permissions do not bind."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "x.json").write_text("secret")
    closed.chmod(0)
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)
    script = (
        "import os, sys\n"
        "from omnigraph.storage.text_local import LocalTextStore\n"
        "from omnigraph.errors import StoragePermissionDenied\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "texts = LocalTextStore('process')\n"
        "for attempt in (texts.exists, texts.read_text, texts.read_text_if_exists, texts.delete):\n"
        "    try: print(attempt(sys.argv[1])); sys.exit(1)\n"
        "    except StoragePermissionDenied: pass\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(closed / "x.json")], capture_output=True, check=False
    )
    closed.chmod(0o755)

    assert done.returncode == 0, done.stdout + done.stderr


# The S3 store


def test_a_server_that_cannot_be_reached_is_an_error_and_not_absence(s3_store: Store) -> None:
    unreachable = {**s3_store.storage_options, "aws_endpoint": "http://127.0.0.1:9"}
    texts = open_text_store(s3_store.root, unreachable)

    with pytest.raises(StorageError):
        texts.exists(s3_store.root.child("x"))


def test_a_server_that_denies_is_an_error_and_not_absence(denying_s3: Store) -> None:
    texts = open_text_store(denying_s3.root, denying_s3.storage_options)

    for attempt in (texts.exists, texts.read_text_if_exists, texts.list_dir, texts.delete):
        with pytest.raises(StoragePermissionDenied):
            attempt(denying_s3.root.child("x"))


def test_an_object_of_another_bucket_is_refused(s3_store: Store) -> None:
    texts = open_text_store(s3_store.root, s3_store.storage_options)

    with pytest.raises(BadRequestError, match="not in the bucket"):
        texts.read_text("s3://other/x")


def test_the_environment_alone_is_enough(
    s3_endpoint: str, s3_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_store.storage_options.items():
        monkeypatch.setenv(name.upper() if name.startswith("aws") else f"AWS_{name.upper()}", value)
    texts = open_text_store(graph_root(s3_store.root.uri))

    texts.write_text(s3_store.root.child("x"), "from the environment")

    with_options = open_text_store(s3_store.root, s3_store.storage_options)
    assert with_options.read_text(s3_store.root.child("x")) == "from the environment"
