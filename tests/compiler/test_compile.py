"""The front door: which query runs, what is refused, and what is not done twice."""

from __future__ import annotations

import re
import threading

import pytest

from omnigraph.catalog import build_catalog
from omnigraph.compiler import CompiledQuery, compile_query, require_mutation, require_read
from omnigraph.compiler.compile import parse_file
from omnigraph.errors import BadRequestError, ParseError, PlanError, TypeCheckError
from omnigraph.ir import MutationIR, QueryIR
from omnigraph.syntax.parse_schema import parse_schema
from tests.compiler.papers import SCHEMA, catalog, compiled

TWO = """
query titles() @description("All titles") @instruction("Ask for these first") {
  match { $p: Paper } return { $p.title }
}
query names() { match { $v: Venue } return { $v.name } }
query titles() { match { $v: Venue } return { $v.code } }
"""


def test_the_first_declaration_of_a_name_is_compiled() -> None:
    query = compiled(TWO, "titles")

    assert isinstance(query.ir, QueryIR)
    assert [item.column for item in query.ir.returns] == ["p.title"]
    assert (query.kind, query.params) == ("read", ())
    assert (query.description, query.instruction) == ("All titles", "Ask for these first")


def test_an_error_in_another_query_of_the_file_does_not_matter() -> None:
    broken = "query bad() { match { $x: Ghost } return { $x } }"

    assert compiled(TWO + broken, "names").name == "names"


def test_a_single_query_needs_no_name() -> None:
    assert compiled("query only() { match { $p: Paper } return { $p } }").name == "only"


@pytest.mark.parametrize(
    ("source", "name", "text"),
    [
        (TWO, "title", "query 'title' not found — did you mean `titles`?"),
        (TWO, "zzz", "query 'zzz' not found"),
        (TWO, None, "declares 3 queries — name one of titles, names, titles"),
        ("// nothing here", None, "declares no query"),
    ],
)
def test_a_query_that_is_not_there_is_a_bad_request(
    source: str, name: str | None, text: str
) -> None:
    with pytest.raises(BadRequestError, match=re.escape(text)):
        compiled(source, name)


def test_a_mutation_that_adds_and_deletes_is_refused() -> None:
    source = """
    query tidy() {
      insert Venue { code: "X", name: "x" }
      delete Paper where doi = "p1"
    }
    """

    with pytest.raises(BadRequestError) as caught:
        compiled(source)

    assert str(caught.value) == (
        "mutation 'tidy' on the same query mixes inserts/updates and deletes; split into separate "
        "mutations: (1) inserts and updates, then (2) deletes."
    )


def test_a_key_member_is_not_updated() -> None:
    with pytest.raises(BadRequestError, match="cannot update @key property `doi` of Paper"):
        compiled('query q() { update Paper set { doi: "zz" } where doi = "p1" }')


@pytest.mark.parametrize(
    "projection",
    ['search($p.title, "x")', "title"],
)
def test_a_projection_without_a_value_is_refused(projection: str) -> None:
    source = f"query q() {{ match {{ $p: Paper }} return {{ {projection} }} }}"

    with pytest.raises(BadRequestError, match="unsupported projection expression"):
        compiled(source)


def test_a_type_error_comes_before_a_refusal() -> None:
    with pytest.raises(TypeCheckError, match="T6"):
        compiled("query q() { match { $p: Paper } return { title, $p.nope } }")


def test_a_read_is_not_run_as_a_mutation_nor_the_reverse() -> None:
    read = compiled("query r() { match { $p: Paper } return { $p } }")
    mutation = compiled('query m() { delete Paper where doi = "x" }')

    assert isinstance(require_read(read), QueryIR)
    assert isinstance(require_mutation(mutation), MutationIR)
    with pytest.raises(PlanError, match=r"'m' is a mutation .*`mutate`"):
        require_read(mutation)
    with pytest.raises(PlanError, match=r"'r' is a read .*`query`"):
        require_mutation(read)


def test_a_query_is_compiled_once() -> None:
    """The same text, name and shape give the very same value, and the text is parsed once."""
    source = "query cached() { match { $p: Paper } return { $p.title } }"
    before = parse_file.cache_info()

    first = compile_query(source, catalog(), "cached")
    again = compile_query(source, catalog(), "cached")
    # Equal text in a new object, and an equal schema built anew.
    anew = compile_query("".join(list(source)), build_catalog(parse_schema(SCHEMA)), "cached")

    after = parse_file.cache_info()
    assert first is again is anew
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 0)


def test_another_query_of_a_parsed_file_is_not_parsed_again() -> None:
    source = TWO + "// a text of its own\n"
    before = parse_file.cache_info()

    compile_query(source, catalog(), "titles")
    compile_query(source, catalog(), "names")

    after = parse_file.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)


def test_a_changed_schema_compiles_anew() -> None:
    source = "query q() { match { $v: Venue } return { $v.name } }"
    changed_text = SCHEMA.replace("code: String @key  name: String", "code: String @key  name: I32")
    changed = build_catalog(parse_schema(changed_text))
    assert changed.next_id == catalog().next_id

    old, new = compile_query(source, catalog()), compile_query(source, changed)

    assert old.ir != new.ir


def test_an_error_is_reported_every_time_under_the_name_of_its_file() -> None:
    source = "query q() { match { $p: Paper } return { $p.nope } }"

    for source_name in ("first.gq", "second.gq", "second.gq"):
        with pytest.raises(TypeCheckError, match="T6") as caught:
            compile_query(source, catalog(), source_name=source_name)
        assert caught.value.source is not None
        assert caught.value.source.name == source_name
        assert caught.value.location == (1, 45)


def test_a_parse_error_is_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(ParseError):
            compiled("query q( {")


def test_many_threads_compile_alike() -> None:
    found: list[CompiledQuery] = []

    def compile_all() -> None:
        found.extend(
            compiled(f"query q() {{ match {{ $p: Paper }} return {{ {number} }} }}")
            for number in range(20)
        )

    threads = [threading.Thread(target=compile_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 160
    assert len({repr(query) for query in found}) == 20
