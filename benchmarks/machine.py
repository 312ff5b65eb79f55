"""What a run was made on: without it no figure means anything."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from omnigraph.machine import count_cores, measure_memory

PACKAGES = ("omnigraph", "pylance", "pyarrow", "numpy", "pyspark", "duckdb", "kuzu", "lancedb")


def describe_machine() -> dict[str, object]:
    """Processor, memory, system, versions, and how busy the machine is now."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": count_cores(),
        "memory_gb": round(measure_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
