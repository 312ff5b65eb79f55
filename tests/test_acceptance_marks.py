"""The acceptance marks name rows that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.acceptance import promised_rows

TESTS = Path(__file__).parent


def test_every_mark_names_a_promised_row() -> None:
    marked = {
        row
        for path in TESTS.rglob("test_*.py")
        for call in re.findall(r"mark\.accepts\(([^)]*)\)", path.read_text(encoding="utf-8"))
        for row in re.findall(r"S-\d+", call)
    }

    assert marked <= set(promised_rows())


def test_the_list_is_whole() -> None:
    assert list(promised_rows()) == [f"S-{number:03d}" for number in range(1, 185)]
