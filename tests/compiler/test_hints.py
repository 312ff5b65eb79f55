"""What a type error says to write instead, for mistakes that people make."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypeCheckError
from tests.compiler.papers import compiled, read_text

PAPER = "$p: Paper "
HINTS = {
    read_text(PAPER + "($p.year + 1) in $xs", params="$xs: I32"): "in brackets: `in [1, 2]`",
    read_text(PAPER + "$x in $xs", params="$x: I32, $xs: [I32]"): "values: `($x) in $xs`",
    read_text(PAPER + "$x contains $y", params="$x: String, $y: String"): "`($x) contains $y`",
    read_text(PAPER + "$p.status = draft"): 'a text stands in quotes: "draft"',
    read_text(PAPER + '$p.seen > date("2024-01-01")'): "write date($p.seen) to compare days",
    read_text(PAPER + "$p.released > $t", params="$t: DateTime"): "write date($t) to",
    read_text(PAPER + "now() > $p.released"): "write date(now()) to compare days",
    read_text(PAPER + "$p.released > 2020-01-01"): 'the day as date("2024-01-31")',
    read_text(PAPER + "$p.seen - now() > days(1)"): "`$p.seen > now() - days(7)`",
    read_text(PAPER + "count($p) > 1"): "`having { n > 1 }`",
    read_text(
        "$d: Doc nearest($d.vec, $q) < 1.0", params="$q: Vector(3)"
    ): "`top 10 by … as $score",
    read_text(PAPER, "return { sum(count($p)) as n }"): "`sum($p.x) / count($p)`",
    read_text(PAPER, "return { $p.doi } limit $n", "$n: String"): "declare it as `$n: I64`",
    read_text(PAPER, "return { $p.doi } limit $n", "$n: I32?"): "a default: `= 10`",
    read_text(PAPER, "return { $p.doi } limit $n"): "declare it: `query name($n: I64)`",
    read_text(PAPER + "$p.keywords in $xs", params="$xs: [String]"): "`$p.keywords contains",
    read_text(PAPER + "$p.keywords = []"): "`length($p.list) = 0`",
    read_text(PAPER + "not { $p cites $q }", "return { $q.doi }"): "what `not` binds stays inside",
    read_text(
        "$a: Author either { $a wrote $p } or { $a wrote $q }", "return { $p }"
    ): "of `either`",
    read_text(
        "$p: Paper either { either { $p cites $_ } or { $_ cites $p } } or { $p.year = 1 }"
    ): ("alternatives beside the others"),
    'query q() { insert Named { name: "x" } }': "a type that implements it: Author",
}


@pytest.mark.parametrize(("text", "hint"), HINTS.items(), ids=range(len(HINTS)))
def test_a_mistake_is_answered_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(TypeCheckError) as refused:
        compiled(text)

    assert hint in (refused.value.hint or "")
