"""One merge of a table of wide vectors, in a process whose memory is watched. Prints JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import omnigraph as og
from omnigraph.storage.counters import counting
from tests.branch.bulk import appending, vectors, write_bulk
from tests.branch.people import merged


def main(path: str, rows: int, width: int) -> None:
    schema = f"node Doc {{ slug: String @key  vector: Vector({width})? }}"
    graph = og.init(Path(path), schema=schema, durability="process")
    write_bulk(graph, "node:Doc", appending(vectors(0, 16, width)))
    graph.create_branch("more")
    write_bulk(graph, "node:Doc", appending(vectors(16, rows, width)), "more")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with counting() as counters:
        result = merged(graph, "more")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "outcome": result.outcome.value,
        "rows": graph.snapshot().entries["node:Doc"].row_count,
        "rss_before_mib": before // 1024,
        "rss_after_mib": after // 1024,
        "stages": dict(counters.stages),
        "index_builds": counters.index_builds,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
