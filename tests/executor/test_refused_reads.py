"""Bad input to a read: a typed error in our words, at once and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ALIENS = ("lance", "Lance", "DataFusion", "Arrow", "pyarrow", "lark", "Traceback", ".rs:", "numpy")
MIB_MAX = 256
HANGS_AFTER_SECONDS = 300


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("refused")
    done = subprocess.run(
        [sys.executable, "-m", "tests.executor.refused_reads", str(folder)],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_bad_read_is_refused_with_a_typed_error(outcomes: list[dict[str, Any]]) -> None:
    assert len(outcomes) > 40
    raw = [each for each in outcomes if each["kind"] == "nothing" or each["kind"].startswith("raw")]
    assert raw == []


def test_no_refusal_speaks_in_the_words_of_a_library(outcomes: list[dict[str, Any]]) -> None:
    strange = [each for each in outcomes if any(alien in each["text"] for alien in ALIENS)]
    assert strange == []
    assert all(each["text"].strip() for each in outcomes)


def test_no_refusal_takes_much_memory(outcomes: list[dict[str, Any]]) -> None:
    assert [each for each in outcomes if each["mib"] > MIB_MAX] == []
