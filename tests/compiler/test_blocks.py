"""Optional, either and interfaces: where they may stand, and what they bind."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypeCheckError
from tests.compiler.papers import compiled

NESTED = "optional { $a wrote $p optional { $p cites $q optional { $q cites $r } } }"
TWO = "either { $a wrote $p } or { $p: Paper }"
DIFFERENT = "either { $a wrote $x } or { $a mentors $x } or { $a.born = 1 }"


def read(clauses: str, returned: str = "$a") -> str:
    return f"query q() {{ match {{ $a: Author {clauses} }} return {{ {returned} }} }}"


@pytest.mark.parametrize(
    ("code", "said", "source"),
    [
        ("T35", "mentions no variable from outside", read("optional { $p: Paper }")),
        ("T35", "one more level", read(NESTED)),
        ("T35", "inside `not`", read("not { $a wrote $p optional { $p cites $q } }")),
        ("T35", "inside `either`", read("either { optional { $a wrote $p } } or { $a.born = 1 }")),
        ("T41", "mentions no variable", read("either { $x: Paper } or { $y: Venue }")),
        ("T41", "Paper and Author", read(DIFFERENT)),
        ("T41", "inside another", read(f"either {{ not {{ {TWO} }} }} or {{ $a.born = 1 }}")),
        ("T6", "not bound", read("either { $a wrote $p } or { $a mentors $b }", "$p.doi")),
        ("T6", "bind the concrete type to use slug", read("$x: Named", "$x.slug")),
        ("T2", "bind the concrete type to use slug", read('$x: Named { slug: "a" }')),
        ("T5", "does not fit", read("$x: Named $x cites $p")),
        ("T7", "is a node", read("$a is null")),
        ("T40", "interface Named", f'{read("$x: Named")[:-2]} order {{ bm25($x.name, "a") }} }}'),
        (None, "already bound to Named", read("$x: Named $x: Author")),
        (None, "already bound to Venue", read("$v: Venue $v: Named")),
    ],
)  # fmt: skip
def test_a_broken_rule_is_reported_with_its_code(code: str | None, said: str, source: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        compiled(source)

    assert caught.value.code == code
    assert said in caught.value.render()


@pytest.mark.parametrize(
    "source",
    [
        # What a mandatory clause binds is not optional, wherever the block stands.
        read("optional { $a wrote $p } $p cites $q", "$p, $q"),
        read(
            "optional { $a wrote $p } $p is null or $p.year > 3", "$p is null as n, type($p) as t"
        ),
        read("either { $b wrote $p } or { $b: Author }  $b.born = 1", "$b.slug"),
        # A variable that a traversal binds first keeps its type.
        read('$p: Paper $b wrote $p $b: Named { name: "x" }', "$b.slug"),
        read('optional { type($a) = "Author" }'),
    ],
)
def test_a_kept_rule_compiles(source: str) -> None:
    assert compiled(source).name == "q"


@pytest.mark.parametrize(
    "clauses",
    [
        'either { not { not { type($a) = "Author" } } } or { $a.born = 1 }',
        'either { not { type($a) = "Author" } } or { not { type($a) = "Paper" } }',
        'optional { not { type($a) = "Paper" } }',
    ],
)
def test_a_type_asked_for_deep_inside_connects_the_blocks_around_it(clauses: str) -> None:
    """The type of a concrete variable is known before any row, and is mentioned all the same."""
    assert compiled(read(clauses)).name == "q"
