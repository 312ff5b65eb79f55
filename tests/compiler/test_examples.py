"""The example blocks of the language: valid, or refused with the code and text they name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler import compile_query
from omnigraph.errors import TypeCheckError
from omnigraph.syntax import parse_query, parse_schema
from omnigraph.syntax.print_query import print_query

PAGE = (Path(__file__).parents[1] / "conformance" / "examples.md").read_text("utf-8")
SCHEMA = re.findall(r"^```pg\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
VALID = re.findall(r"^```gq\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
REFUSED = re.findall(r"^```gq error\n(.*?)^```\n`(T\d+)`: ([^\n]*)", PAGE, re.DOTALL | re.MULTILINE)


@cache
def catalog() -> Catalog:
    return build_catalog(parse_schema(SCHEMA, "papers.pg"))


def test_every_block_was_found() -> None:
    assert (len(VALID), len(REFUSED)) == (PAGE.count("```gq\n"), PAGE.count("```gq error\n"))


@pytest.mark.parametrize("text", VALID, ids=range(len(VALID)))
def test_a_valid_block_compiles_and_reads_back(text: str) -> None:
    tree = parse_query(text)

    for query in tree.queries:
        compile_query(text, catalog(), query.name)
    assert parse_query(print_query(tree)) == tree


@pytest.mark.parametrize(("text", "code", "says"), REFUSED, ids=[code for _, code, _ in REFUSED])
def test_a_refused_block_is_told_its_code_and_what_to_write(
    text: str, code: str, says: str
) -> None:
    with pytest.raises(TypeCheckError) as refused:
        compile_query(text, catalog())

    assert refused.value.code == code
    for fragment in re.findall(r"`([^`]+)`", says):
        assert fragment in refused.value.render()
