"""Words: what a grammar spells out, read from the terminals themselves.

A terminal is written as a word or a few (`in`, `(asc|desc)`, `is\\s+(not\\s+)?null`), followed by
look-aheads that say where it counts. One that stands only before `(` is a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omnigraph.dataclass import dataclass

_LOOK_AHEAD = re.compile(r"\(\?[=!](?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)")
_GROUP = re.compile(r"\(([^()]*)\)(\??)")
_BEFORE_PARENTHESIS = r"(?=\s*\()"
_WORDS = re.compile(r"@?[A-Za-z_][A-Za-z0-9_]*(?: [A-Za-z_]+)*")


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language. `phrases` gives each terminal that spells some the ways it does.

    `keywords`, `calls` and `annotations` are single words, sorted; an annotation has no `@`.
    """

    keywords: tuple[str, ...]
    calls: tuple[str, ...]
    annotations: tuple[str, ...]
    phrases: Mapping[str, tuple[str, ...]]


def read_words(patterns: Mapping[str, str]) -> Words:
    """Sort the words of terminals by what they are; the names of types are none of these."""
    phrases = {name: tuple(spell(pattern)) for name, pattern in patterns.items()}
    calls = {name for name, pattern in patterns.items() if pattern.endswith(_BEFORE_PARENTHESIS)}
    spelled = {name: set(" ".join(each).split()) for name, each in phrases.items()}
    annotations = {word[1:] for words in spelled.values() for word in words if word[0] == "@"}
    keywords = {
        word
        for name, words in spelled.items()
        for word in words
        if name not in calls and word[0].islower()
    }
    called = {word for name in calls for word in spelled[name] if word[0].islower()} - keywords
    return Words(
        tuple(sorted(keywords)),
        tuple(sorted(called)),
        tuple(sorted(annotations)),
        {name: each for name, each in phrases.items() if each},
    )


def spell(pattern: str) -> Iterator[str]:
    """Every spelling of a terminal that is made of words; none for one of many spellings."""
    text = _LOOK_AHEAD.sub("", pattern).replace(r"\s+", " ").replace(r"\s*", "")
    return filter(_WORDS.fullmatch, _expand(text))


def _expand(text: str) -> Iterator[str]:
    group = _GROUP.search(text)
    if group is None:
        yield text
        return
    for choice in [*([""] if group[2] else []), *group[1].split("|")]:
        yield from _expand(text[: group.start()] + choice + text[group.end() :])
