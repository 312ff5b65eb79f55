"""The glossary is true: its terms are used, its references exist, and banned words stay out."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import syntax_trees
from tests.docs_blocks import PAGES, ROOT
from tests.syntax_trees import list_nodes, parse

pytestmark = syntax_trees.GROUP

GLOSSARY = ROOT / "docs" / "explain" / "glossary.md"
SOURCES = sorted((ROOT / "src" / "omnigraph").rglob("*.py"))

# Names that were replaced by the field's own words.
BANNED = (
    "lane_of",
    "at_once",
    "takes_time",
    "TakesTime",
    "LooseRows",
    "of_alias",
    "read_asked",
    "foresee",
    "derive_ahead",
    "settle",
    "set_aside",
    "the one door",
    "candidates_of_one",
    "_puts_aside",
    "whatever came",
    "source goes afterwards",
    "stopped coming",
)
# Comments and pages name the actor (caller, client, writer, reader) instead.
VAGUE = ("nobody", "somebody", "whoever", "anybody")

PARTICIPLE = re.compile(
    r"\w{2,}ed|built|brought|chosen|done|found|given|gone|held|hidden|kept|known|left|lost|made|seen"
    r"|sent|shown|taken|thrown|told|torn|written"
)
VERBS_IN_ED = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "succeed"}

_ROW = re.compile(r"(?m)^\| (?P<term>[^|]+?) \| (?P<meaning>[^|]+?) \| `(?P<code>[\w.]+)` \|")


class Entry(NamedTuple):
    term: str
    meaning: str
    code: str


ENTRIES = [Entry(**row.groupdict()) for row in _ROW.finditer(GLOSSARY.read_text(encoding="utf-8"))]


@cache
def text_of_everything_else() -> str:
    pages = [path for path in PAGES if path != GLOSSARY]
    return "\n".join(path.read_text(encoding="utf-8") for path in (*SOURCES, *pages))


def resolve(reference: str) -> object:
    """Import a module, or the attribute of one, by its dotted name."""
    try:
        return importlib.import_module(reference)
    except ModuleNotFoundError:
        module, _, name = reference.rpartition(".")
        return getattr(importlib.import_module(module), name)


def test_every_row_is_an_entry_and_terms_are_sorted() -> None:
    page = GLOSSARY.read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (?!term \|)", page)
    terms = [entry.term for entry in ENTRIES]

    assert len(rows) == len(ENTRIES)
    assert terms == sorted(terms, key=lambda term: (term.lower(), term))
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.term)
def test_a_term_is_used_and_its_code_exists(entry: Entry) -> None:
    words = r"[\s_-]+".join(map(re.escape, entry.term.split()))

    assert re.search(rf"(?i)\b{words}", text_of_everything_else()), f"{entry.term} is not used"
    assert resolve(entry.code) is not None
    assert entry.meaning.endswith("."), f"{entry.term}: the meaning is a sentence"


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def find_uses(word: str, files: Iterable[Path]) -> list[str]:
    pattern = re.compile(rf"(?i)\b{re.escape(word)}\b(?!\w)")
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        if pattern.search(read(path))
        for number, line in enumerate(read(path).splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("name", BANNED)
def test_a_replaced_name_does_not_return(name: str) -> None:
    assert not find_uses(name, SOURCES)


@pytest.mark.parametrize("word", VAGUE)
def test_comments_and_pages_name_the_actor(word: str) -> None:
    assert not find_uses(word, [*SOURCES, *PAGES])


@pytest.mark.slow
def test_functions_are_named_by_verbs() -> None:
    """A past participle is a name for data; fewer than 3 % of all functions have one."""
    names = [
        node.name
        for path in SOURCES
        for node in list_nodes(parse(read(path)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    first_words = Counter(name.strip("_").partition("_")[0] for name in names)
    participles = {
        word: count
        for word, count in first_words.items()
        if PARTICIPLE.fullmatch(word) and word not in VERBS_IN_ED
    }

    assert sum(participles.values()) < 0.03 * len(names), participles
