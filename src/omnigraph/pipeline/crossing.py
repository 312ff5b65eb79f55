"""Crossing: from which size on Spark loads files faster than the calling process.

    in process   input bytes / rate / gain of threads
    on Spark     start + input bytes / rate · overhead / workers

Input is cut so that every thread has its share of it, also where that is less than a whole part.
Rows that are in this process already would first have to leave it, so they never cross. A machine
with one core, an input of one part, and one without memory for the workers have nothing to gain.
"""

from __future__ import annotations

import sys

from omnigraph.dataclass import dataclass
from omnigraph.machine import count_cores, measure_memory

RATE_BYTES = 50 * 1024 * 1024
"""Records that one core parses, checks and writes per second. Measured: benchmarks/load.py."""
OVERHEAD = 1.2
"""CPU time of a load on Spark over that of the same load in one process."""
START_SECONDS = 8.0
"""Until a new session with its workers has finished a first small load."""
WORKERS_SECONDS = 2.0
"""What a session that is running needs beyond the work: its workers and jobs."""

THREADS_MAX = 4
"""Threads of a load in this process: what is neither Arrow's nor Lance's takes turns."""
THREAD_GAIN = 0.7
"""How much of a core each thread but the first is worth. Measured: benchmarks/files.py."""

PARTS_PER_THREAD = 4
"""Into how many parts a thread's share is cut: the last of them is what other threads wait for."""
PART_BYTES_MIN = 4 * 1024 * 1024
"""What a part has at least: each one becomes a file of its own."""

JAVA_BYTES = 1024**3
WORKER_BYTES_PER_PART_BYTE = 15
MEMORY_SHARE = 2
"""Spark is given at most one half of the machine's memory."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is to run on."""

    cores: int
    memory_bytes: int
    is_spark_running: bool

    @classmethod
    def here(cls) -> Machine:
        return cls(count_cores(), measure_memory(), _is_spark_running())

    def count_threads(self, part_bytes: int) -> int:
        """How many parts of an input this process loads at a time."""
        fitting = self.memory_bytes // (MEMORY_SHARE * WORKER_BYTES_PER_PART_BYTE * part_bytes)
        return max(1, min(self.cores, THREADS_MAX, fitting))


def share_bytes(file_bytes: int, part_bytes: int, machine: Machine) -> int:
    """How large the parts of this much input are, up to `part_bytes`: each thread gets several."""
    threads = machine.count_threads(part_bytes)
    share = file_bytes // (PARTS_PER_THREAD * threads)
    return min(part_bytes, max(share, PART_BYTES_MIN)) if threads > 1 else part_bytes


def is_faster_on_spark(file_bytes: int, parts: int, part_bytes: int, machine: Machine) -> bool:
    """Whether to load this much input from files on Spark. `parts` can be read side by side."""
    workers = min(machine.cores, parts)
    needed = JAVA_BYTES + machine.cores * WORKER_BYTES_PER_PART_BYTE * part_bytes
    if needed > machine.memory_bytes / MEMORY_SHARE:
        return False
    start = WORKERS_SECONDS if machine.is_spark_running else START_SECONDS
    alone = file_bytes / RATE_BYTES
    threads = max(1, min(machine.count_threads(part_bytes), parts))
    here = alone / (1 + THREAD_GAIN * (threads - 1))
    return start + alone * OVERHEAD / max(workers, 1) < here


def _is_spark_running() -> bool:
    if "pyspark" not in sys.modules:
        return False
    from omnigraph.pipeline.session import is_running

    return is_running()
