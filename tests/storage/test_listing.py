"""Listing files while writers work beside it."""

from __future__ import annotations

from pathlib import Path

from omnigraph.storage.listing import Files


def test_a_name_without_a_file_is_left_out_of_a_listing(tmp_path: Path) -> None:
    """Lance renames its temporary files, so one may be gone before its size is asked."""
    (tmp_path / "data").write_text("rows")
    (tmp_path / ".tmp").symlink_to(tmp_path / "gone")

    found = Files(str(tmp_path), {}).list()

    assert list(found) == ["data"]
