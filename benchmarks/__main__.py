"""`make bench`: run every benchmark, or those named, and show the last recorded figures beside.

python -m benchmarks [--record] [NAME...]
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.harness import Figure, report

HERE = Path(__file__).parent
NAMES = sorted(
    path.stem
    for path in HERE.glob("*.py")
    if path.stem not in ("__init__", "__main__", "harness", "social")
)


def main(arguments: list[str]) -> None:
    record = "--record" in arguments
    wanted = [name for name in arguments if not name.startswith("--")] or NAMES
    figures: list[Figure] = []
    for name in wanted:
        figures += importlib.import_module(f"benchmarks.{name}").run()
    report(figures, record=record)


if __name__ == "__main__":
    main(sys.argv[1:])
