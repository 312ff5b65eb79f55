"""One small schema for every compiler test, and short ways to compile against it."""

from __future__ import annotations

from functools import cache

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler import CompiledQuery, compile_query
from omnigraph.ir import format_ir
from omnigraph.syntax.parse_schema import parse_schema

SCHEMA = """
interface Named { name: String }
node Author implements Named {
  slug: String @key
  country: String?
  born: I32?
  tags: [String]?
}
node Paper {
  doi: String @key
  title: String
  year: I32
  pages: I64?
  score: F32?
  status: enum(draft, published, retracted)?
  keywords: [String]?
  counts: [I32]?
  released: Date?
  seen: DateTime?
  open: Bool?
}
node Venue { code: String @key  name: String }
node Doc {
  slug: String @key
  body: String
  note: String?
  vec: Vector(3) @embed("body")
}
node File { slug: String @key  body: Blob? }
edge Wrote: Author -> Paper { role: String?  position: I32? }
edge Cites: Paper -> Paper { reason: String? }
edge Mentors: Author -> Author
edge AppearedIn: Paper -> Venue @card(0..1) { pages: I32 }
"""


@cache
def catalog() -> Catalog:
    return build_catalog(parse_schema(SCHEMA, "papers.pg"))


def compiled(source: str, name: str | None = None) -> CompiledQuery:
    return compile_query(source, catalog(), name)


def read_text(match: str, tail: str = "return { $p }", params: str = "") -> str:
    """The source of one read."""
    return f"query q({params}) {{ match {{ {match} }} {tail} }}"


def pipeline(match: str, tail: str = "return { $p }", params: str = "") -> str:
    """The operators of a read, one a line, without header and projections."""
    text = format_ir(compiled(read_text(match, tail, params)).ir)
    kept = [line[2:] for line in text.splitlines()[1:]]
    return "\n".join(line for line in kept if not line.startswith("return "))
