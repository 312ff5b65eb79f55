"""A small reader of TextMate grammars: line by line, the leftmost match, the first of equals.

It knows what the grammars of `editors/` use: `match`, `begin` and `end`, captures, includes.
Their patterns are such that Oniguruma and `re` agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Rule = dict[str, Any]
Scopes = list[str]
"""The innermost scope of each character; the empty text where there is none."""


@dataclass(frozen=True)
class TextMate:
    """One grammar file."""

    path: Path

    @cached_property
    def grammar(self) -> Rule:
        found: Rule = json.loads(self.path.read_text("utf-8"))
        return found

    @cached_property
    def compiled(self) -> dict[str, re.Pattern[str]]:
        return {pattern: re.compile(pattern) for pattern in self.list_patterns()}

    def list_patterns(self) -> list[str]:
        """Every regular expression of the grammar."""
        return [
            rule[key]
            for rule in _walk(self.grammar)
            for key in ("match", "begin", "end")
            if isinstance(rule.get(key), str)
        ]

    def scope(self, text: str) -> Scopes:
        """The scope of every character of a text."""
        scopes = [""] * len(text)
        inside: list[Rule] = []
        start = 0
        for line in text.splitlines(keepends=True):
            self._scope_line(line, start, inside, scopes)
            start += len(line)
        return scopes

    def _scope_line(self, line: str, start: int, inside: list[Rule], scopes: Scopes) -> None:
        at = 0
        while at <= len(line):
            found = self._next(line, at, inside)
            until = found[1].start() if found else len(line)
            if inside:
                _paint(scopes, start + at, start + until, inside[-1].get("name", ""))
            if found is None:
                return
            rule, match = found
            _paint(scopes, start + match.start(), start + match.end(), rule.get("name", ""))
            if inside and rule is inside[-1]:
                inside.pop()
            else:
                _paint_groups(scopes, start, rule, match)
                inside += [rule] if "begin" in rule else []
            at = max(match.end(), at + (match.end() == match.start()))

    def _next(self, line: str, at: int, inside: list[Rule]) -> tuple[Rule, re.Match[str]] | None:
        """The match that begins first; the end of what is open before what is inside of it."""
        best: tuple[Rule, re.Match[str]] | None = None
        closing = [(inside[-1], inside[-1]["end"])] if inside else []
        patterns = (inside[-1] if inside else self.grammar).get("patterns", [])
        for rule, pattern in [*closing, *self._rules(patterns)]:
            match = self.compiled[pattern].search(line, at)
            if match is not None and (best is None or match.start() < best[1].start()):
                best = rule, match
        return best

    def _rules(self, patterns: list[Rule]) -> Iterator[tuple[Rule, str]]:
        for rule in patterns:
            if "include" in rule:
                yield from self._rules([self.grammar["repository"][rule["include"][1:]]])
            elif "match" in rule or "begin" in rule:
                yield rule, rule.get("match") or rule["begin"]
            else:
                yield from self._rules(rule["patterns"])


def _paint(scopes: Scopes, start: int, end: int, scope: str) -> None:
    if scope and end > start:
        scopes[start:end] = [scope] * (end - start)


def _paint_groups(scopes: Scopes, start: int, rule: Rule, match: re.Match[str]) -> None:
    for group, scope in (rule.get("captures") or rule.get("beginCaptures") or {}).items():
        first, last = match.span(int(group))
        _paint(scopes, start + first, start + last, scope["name"])


def _walk(rule: Any) -> Iterator[Rule]:
    if isinstance(rule, dict):
        yield rule
        for each in rule.values():
            yield from _walk(each)
    elif isinstance(rule, list):
        for each in rule:
            yield from _walk(each)
