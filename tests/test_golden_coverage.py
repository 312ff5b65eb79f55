"""Golden cases for the whole language: what a query can say is in a tree, in IR, in a plan.

The lists come from the code: a class, a field, a word, a function or a code that is added without
a case fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import omnigraph.compiler
from omnigraph import build_catalog, compile_query, parse_query, parse_schema
from omnigraph.compiler.codes import LINT_CODES, TYPE_CODES
from omnigraph.compiler.functions import list_functions
from omnigraph.ir import expressions, mutations, query
from omnigraph.planner import Statistics, make_plan, pattern, plan, trees
from omnigraph.syntax import query_tree, statement_tree
from omnigraph.syntax.parse_query import QUERY_PARSER
from omnigraph.testing.format import is_default
from tests.test_golden import CASES, Sections, read_case


def list_cases(answer: str) -> list[Sections]:
    """The golden cases of a query with this kind of answer."""
    cases = (read_case(path) for path in CASES)
    return [case for case in cases if answer in case and "query" in case]


def walk(value: Any) -> Iterator[str]:
    """The classes of a value and of all in it, their fields that are not as by default, and members
    of enumerations."""
    if isinstance(value, Enum):
        yield f"{type(value).__name__}.{value.name}"
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__
        for item in fields(value):
            member = getattr(value, item.name)
            if not is_default(item, member):
                yield f"{type(value).__name__}.{item.name}"
            yield from walk(member)
    elif isinstance(value, Mapping):
        yield from walk(tuple(value.values()))
    elif isinstance(value, tuple | frozenset):
        for each in value:
            yield from walk(each)


def list_forms(*modules: ModuleType) -> set[str]:
    """What there is to see of the classes that these modules define."""
    found: set[str] = set()
    for module in modules:
        own = {name: each for name, each in vars(module).items() if name[0] != "_"}
        for name, each in own.items():
            if not isinstance(each, type) or each.__module__ != module.__name__:
                continue
            if issubclass(each, Enum):
                found |= {f"{name}.{member.name}" for member in each}
            elif is_dataclass(each):
                found |= {name, *(f"{name}.{item.name}" for item in fields(each) if item.compare)}
    return found


def see(values: Iterable[Any]) -> set[str]:
    return {form for value in values for form in walk(value)}


def compile_case(case: Sections) -> Any:
    catalog = build_catalog(parse_schema(case["schema"]))
    return catalog, compile_query(case["query"], catalog).ir


def plan_case(case: Sections) -> plan.Plan:
    catalog, ir = compile_case(case)
    counts = [line.split() for line in case.get("counts", "").splitlines()]
    return make_plan(ir, catalog, Statistics({table: int(rows) for table, rows in counts}))


def test_every_form_of_a_tree_has_a_case() -> None:
    texts = [case["query"] for case in list_cases("tree")]
    seen = see(parse_query(text) for text in texts)

    assert list_forms(query_tree, statement_tree) - seen == set()


def test_every_word_has_a_tree() -> None:
    words = set(re.findall(r"[a-z_]+", " ".join(case["query"] for case in list_cases("tree"))))

    assert set(QUERY_PARSER.list_words().keywords) - words == set()


def test_every_form_of_the_ir_has_a_case() -> None:
    seen = see(compile_case(case)[1] for case in list_cases("ir"))

    assert list_forms(query, expressions, mutations) - seen == set()


def test_every_function_has_a_case_of_ir() -> None:
    texts = " ".join(case["query"] for case in list_cases("ir"))

    assert {name for name in list_functions() if f"{name}(" not in texts} == set()


def test_every_form_of_a_plan_has_a_case() -> None:
    seen = see(plan_case(case) for case in list_cases("plan"))

    # What the planner reads and what it works with is not in the plan.
    parts = {
        form for form in list_forms(plan, trees) if form.startswith(("Statistics", "Component"))
    }
    modes = {form for form in list_forms(query) if form.startswith(("Direction.", "WalkMode."))}
    assert (list_forms(plan, pattern, trees) | modes) - seen == parts


def test_every_code_is_in_the_table_of_codes() -> None:
    """Which the tests below go by."""
    source = Path(omnigraph.compiler.__file__).parent.parent
    texts = [path.read_text() for path in source.rglob("*.py") if path.name != "codes.py"]
    used = set(re.findall(r'"(T[0-9]{1,2}|[LQ][0-9]{3})"', "".join(texts)))

    assert used - {*TYPE_CODES, *LINT_CODES} == set()


def test_every_code_of_lint_has_findings() -> None:
    texts = " ".join(case["findings"] for case in list_cases("findings"))

    assert {code for code in LINT_CODES if f"{code}:" not in texts} == set()


def test_every_code_has_an_error() -> None:
    """Beside the example in the table of codes, which has no text."""
    texts = " ".join(case["error"] for case in list_cases("error"))

    assert {code for code in TYPE_CODES if f"type error: {code}:" not in texts} == set()
