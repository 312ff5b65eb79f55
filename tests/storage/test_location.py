"""Two spellings of one place are one graph, and a type's table path never changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import BadRequestError
from omnigraph.storage.location import TableLocation, graph_root, table_path


@pytest.mark.parametrize(
    "spelling",
    [
        "/data/g",
        "/data/g/",
        "/data/./g",
        "/data/x/../g",
        "file:///data/g",
        "file://localhost/data/g/",
    ],
)
def test_every_spelling_of_a_local_directory_is_the_same_root(spelling: str) -> None:
    assert graph_root(spelling) == graph_root("/data/g")


def test_a_relative_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert graph_root("team.omni").uri == os.path.join(os.getcwd(), "team.omni")


def test_a_file_uri_is_decoded_and_a_path_is_not() -> None:
    assert graph_root("file:///a%20b").uri == "/a b"
    assert graph_root("/a%20b").uri == "/a%20b"


@pytest.mark.parametrize("spelling", ["s3://b/p", "s3://b/p/", "s3://b//p"])
def test_every_spelling_of_a_prefix_is_the_same_root(spelling: str) -> None:
    root = graph_root(spelling)

    assert root.uri == "s3://b/p"
    assert not root.is_local


@pytest.mark.parametrize(
    "spelling", ["", "a\0b", "gs://b/p", "file://host/p", "s3://", "s3:///p", "s3://b/../p"]
)
def test_a_location_that_is_none_is_refused(spelling: str) -> None:
    with pytest.raises(BadRequestError):
        graph_root(spelling)


def test_a_fork_is_opened_below_its_dataset() -> None:
    root = graph_root("/data/g")

    assert root.table("nodes/x").physical_uri == "/data/g/nodes/x"
    assert root.table("nodes/x", "feat/y") == TableLocation("/data/g/nodes/x", "feat/y")
    assert root.table("nodes/x", "feat/y").physical_uri == "/data/g/nodes/x/tree/feat/y"


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        ("node", "", "nodes/cbf29ce484222325"),
        ("node", "a", "nodes/af63dc4c8601ec8c"),
        ("edge", "foobar", "edges/85944171f73967e8"),
    ],
)
def test_a_table_path_is_the_published_fnv1a_of_its_name(kind: str, name: str, path: str) -> None:
    """Against the reference values of FNV-1a 64."""
    assert table_path(kind, name) == path  # type: ignore[arg-type]
