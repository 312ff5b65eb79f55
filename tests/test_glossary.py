"""The glossary is true: its terms are used, its references exist, and banned words stay out."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

import pytest

from tests.docs_blocks import PAGES, ROOT

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
)
# Comments name the actor (caller, client, writer, reader). These packages are still to be reworded.
VAGUE = ("nobody", "somebody", "whoever", "anybody")
STILL_VAGUE = {"executor", "manifest"}

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


def uses_of(word: str, exempt: Collection[str] = ()) -> list[str]:
    pattern = re.compile(rf"(?i)\b{re.escape(word)}\b")
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        if path.relative_to(ROOT / "src" / "omnigraph").parts[0] not in exempt
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("name", BANNED)
def test_a_replaced_name_does_not_return(name: str) -> None:
    assert not uses_of(name)


@pytest.mark.parametrize("word", VAGUE)
def test_a_comment_names_the_actor(word: str) -> None:
    assert not uses_of(word, exempt=STILL_VAGUE)
