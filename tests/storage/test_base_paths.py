"""Which base paths are not where the dataset is, and where they belong."""

from __future__ import annotations

import pytest

from omnigraph.storage.base_paths import stale_bases

HERE = "/new/home/nodes/0a1b"


@pytest.mark.parametrize(
    ("branch", "path", "right"),
    [
        (None, "/old/nodes/0a1b", HERE),
        ("a/b", "/old/nodes/0a1b/tree/a/b", f"{HERE}/tree/a/b"),
        ("tree/0a1b", "/old/nodes/0a1b/tree/tree/0a1b", f"{HERE}/tree/tree/0a1b"),
        (None, "s3://bucket/old/nodes/0a1b", HERE),
    ],
)
def test_a_base_path_from_before_a_move_is_relocated_beside_the_fork(
    branch: str | None, path: str, right: str
) -> None:
    assert stale_bases(HERE, [(branch, path)]) == {path: right}


@pytest.mark.parametrize(
    ("branch", "path"),
    [
        (None, HERE),
        ("b", f"{HERE}/tree/b"),
        (None, "/old/nodes/ffff"),
        (None, "/old/nodes/x0a1b"),
        ("b", "/old/nodes/0a1b/tree/c"),
    ],
)
def test_a_base_that_is_right_or_not_of_this_dataset_stays(branch: str | None, path: str) -> None:
    assert stale_bases(HERE, [(branch, path)]) == {}
