"""Matching: whether a `@check` pattern is found in each text of a column.

A pattern means what Python's `re` says (`catalog/patterns.py`). Where RE2 can be told to mean the
same, it does the work: a column at a time, and in linear time whatever the text. A pattern with a
construct that has no equal there is searched by `re`, once for each distinct text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.patterns import compile_pattern

_TOKEN = re.compile(
    r"""
      (?P<same>
          [^\\^$.|?*+()\[\]{}] | [.^|)] | \((?:\?:)?
        | \\[tnrfvA] | \\[^A-Za-z0-9\s\x80-\U0010ffff]
        | [*+?]\?? | \{[0-9]+(?:,[0-9]*)?\}\??
      )
    | (?P<end> \$\Z | \\Z )
    | (?P<category> \\[dwsDWS] )
    | (?P<set>
        \[ (?: \^(?!\]) | (?![\^\]]) )
        (?: \\[dwstnrfv] | \\[^A-Za-z0-9\s\x80-\U0010ffff] | [^\\\]\[] )+ \]
      )
    """,
    re.VERBOSE | re.DOTALL,
)


def find_matches(pattern: str, texts: pa.StringArray) -> pa.BooleanArray:
    """Whether `pattern` is found anywhere in each text; null where the text is null."""
    linear = to_re2(pattern)
    if linear is not None:
        try:
            return pc.match_substring_regex(texts, linear)
        except pa.ArrowInvalid:
            # RE2 has bounds of its own, on repeats and on size. `re` has the last word.
            pass
    search = compile_pattern(pattern).search
    distinct = pc.dictionary_encode(texts)
    verdicts = [search(text) is not None for text in distinct.dictionary.to_pylist()]
    return pc.take(pa.array(verdicts, pa.bool_()), distinct.indices)


@lru_cache(maxsize=256)
def to_re2(pattern: str) -> str | None:
    """The same pattern as RE2 spells it, or None when a part of it has no equal there."""
    spelled: list[str] = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            return None
        spelled.append(_spell(token))
        position = token.end()
    return "".join(spelled)


def _spell(token: re.Match[str]) -> str:
    text = token.group()
    match token.lastgroup:
        case "end":
            # For `re`, a final `$` also holds before a line feed that ends the text.
            return r"\n?\z" if text == "$" else r"\z"
        case "category":
            negation = "^" if text[1].isupper() else ""
            return f"[{negation}{_ranges(text[1].lower())}]"
        case "set":
            return re.sub(r"\\(.)", _in_set, text, flags=re.DOTALL)
        case _:
            return text


def _in_set(escape: re.Match[str]) -> str:
    letter = escape[1]
    return _ranges(letter) if letter in "dws" else escape[0]


@cache
def _ranges(category: str) -> str:
    r"""The code points `re` counts to `\d`, `\w` or `\s`, as ranges. RE2 only knows ASCII ones."""
    # Lone surrogates cannot occur in a text, and no run of characters spans their gap.
    below, above = np.arange(0xD800, dtype="<u4"), np.arange(0xE000, 0x110000, dtype="<u4")
    every = np.concatenate([below, above]).tobytes().decode("utf-32-le")
    runs = re.finditer(rf"\{category}+", every)
    return "".join(rf"\x{{{ord(run[0][0]):x}}}-\x{{{ord(run[0][-1]):x}}}" for run in runs)
