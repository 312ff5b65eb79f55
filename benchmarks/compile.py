"""What it costs to get from text to a typed query."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure, median_of
from omnigraph.catalog import build_catalog
from omnigraph.compiler import compile_query
from omnigraph.syntax import parse_query, parse_schema

EXAMPLES = Path(__file__).parent.parent / "examples" / "team"
WIDE_SCHEMA = """
node Author { slug: String @key  name: String }
node Paper { doi: String @key  title: String @index  status: String?  v: Vector(3)? }
edge Wrote: Author -> Paper
edge Mentors: Author -> Author
"""
WIDE = """
query around($q: Vector(3), $me: String, $k: I32 = 10) {
    top $k by nearest($p.v, $q) as $distance {
        $p: Paper
        $p.status = "published" or $p.status is null
    }
    match {
        $a wrote $p
        $me_: Author { slug: $me }
        optional { $me_ $way:shortest <mentors> $a }
    }
    return {
        $a.name,
        count(distinct $p) as papers,
        min($distance) as best,
        min(hops($way)) as steps,
        collect($p { doi, title } order $distance) as found
    }
    having { papers > 0 }
    order { best, $a.name }
    limit 20
}
"""
"""One query with most of what the language has."""


def run() -> Iterator[Figure]:
    catalog = build_catalog(parse_schema((EXAMPLES / "team.pg").read_text()))
    source = (EXAMPLES / "people.gq").read_text().partition("\n\n")[0]
    texts = iter(f"{source}\n// {number}" for number in range(10_000))
    parse_query(source)
    yield from median_of(lambda: parse_query(next(texts)), repeat=200, name="parse one query")
    yield from median_of(
        lambda: compile_query(next(texts), catalog), repeat=200, name="compile one query, new text"
    )
    yield from median_of(
        lambda: compile_query(source, catalog), repeat=1_000, name="compile one query, seen before"
    )
    wide = build_catalog(parse_schema(WIDE_SCHEMA))
    texts = iter(f"{WIDE}\n// {number}" for number in range(10_000))
    compile_query(WIDE, wide)
    yield from median_of(
        lambda: compile_query(next(texts), wide),
        repeat=200,
        name="compile a query of nearly everything, new text",
    )
    command = [sys.executable, "-c", "import omnigraph"]
    empty = [sys.executable, "-c", ""]
    # The work is done by children, so only wall time says anything here.
    yield from _wall_of(empty, "start Python")
    yield from _wall_of(command, "start Python, import omnigraph")


def _wall_of(command: list[str], name: str) -> Iterator[Figure]:
    figures = median_of(lambda: subprocess.run(command, check=True), repeat=10, name=name)
    yield from (figure for figure in figures if figure.unit == "wall ms")
