"""`make acceptance`: run the suite, then print the promises that no passing test names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import RESULTS_VARIABLE

LIST = Path(__file__).parent / "acceptance.md"


def promised_rows() -> dict[str, str]:
    """Row id → what it promises."""
    text = LIST.read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (S-\d{3}) \| (.+?) \|", text, re.MULTILINE))


def proved_rows(results: Path) -> set[str]:
    """Rows that at least one test names and no failing test names."""
    outcomes: dict[str, set[str]] = {}
    for line in results.read_text(encoding="utf-8").splitlines():
        _, outcome, rows = json.loads(line)
        for row in rows:
            outcomes.setdefault(row, set()).add(outcome)
    return {row for row, seen in outcomes.items() if seen == {"passed"}}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        results.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
        status = subprocess.run(
            command, env={**os.environ, RESULTS_VARIABLE: str(results)}, check=False
        ).returncode
        proved = proved_rows(results)
    promised = promised_rows()
    still_open = {row: text for row, text in promised.items() if row not in proved}
    for row, text in still_open.items():
        print(f"open  {row}  {text}")
    print(f"{len(promised) - len(still_open)} of {len(promised)} promises proved")
    return status


if __name__ == "__main__":
    sys.exit(main())
