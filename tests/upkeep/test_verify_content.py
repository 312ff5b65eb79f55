"""Verify with content: one flipped byte, in any file, is found and named."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.upkeep.findings import Finding, Verification
from tests.upkeep.damage import files_below, flipped_byte, new_graph_of_all_kinds, without


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph with a file of every kind. Tests damage it and put it right again."""
    return new_graph_of_all_kinds(tmp_path_factory.mktemp("kinds") / "graph")


def named(report: Verification, path: Path) -> list[Finding]:
    """The errors that name a file."""
    return [each for each in report.errors if each.file == str(path) or str(path) in each.message]


def test_a_sound_graph_is_clean_to_the_last_byte(kinds: og.Graph) -> None:
    report = kinds.verify(content=True)

    assert report.errors == ()
    assert {each.check for each in report.warnings} <= {"indexes"}
    assert report.files_checked > 150
    assert report.bytes_compared > 300_000


def test_a_flipped_byte_in_any_file_is_found_and_named(kinds: og.Graph) -> None:
    root = Path(kinds.uri)
    missed = []
    for path in files_below(root):
        with flipped_byte(path):
            report = kinds.verify(content=True)
        if not named(report, path):
            missed.append(str(path.relative_to(root)))

    assert missed == []
    assert kinds.verify(content=True).errors == ()


def test_a_file_that_is_gone_is_found_without_reading_content(kinds: og.Graph) -> None:
    """Index files, large blobs, versions of older commits and refs included."""
    root = Path(kinds.uri)
    missed = []
    for path in files_below(root):
        with without(path):
            report = kinds.verify()
        if not (named(report, path) or report.errors):
            missed.append(str(path.relative_to(root)))

    # A branch of the graph whose ref is lost looks like one whose deletion was interrupted, and
    # what is only a record of others says nothing when it is gone.
    assert {each for each in missed if "_checksums" not in each} <= {
        "__manifest/_refs/branches/dev%2Fx.json"
    }
    assert kinds.verify(content=True).errors == ()
