"""Listing files while writers work beside it."""

from __future__ import annotations

from pathlib import Path

from omnigraph.storage.listing import Files


def test_a_file_that_goes_while_files_are_listed_is_left_out(tmp_path: Path) -> None:
    """Lance renames its temporary files, so one may be gone before its size is asked."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    walk = Files(str(tmp_path), {})._walk("")
    first, _ = next(walk)

    gone, stays = sorted({"a", "b", "c"} - {first})
    (tmp_path / gone).unlink()

    assert [name for name, _ in walk] == [stays]
