"""Migration plans: every kind of change, the steps it becomes, and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omnigraph.catalog import MigrationPlan
from omnigraph.catalog.step_text import describe_step
from omnigraph.errors import CatalogError, IdentityError, MigrationError
from tests.catalog.reading import catalog, plan

ACCEPTED = """
interface Named { name: String?  nick: String? }
node Author implements Named {
    slug: String @key
    age: I32?
    level: enum(junior, senior)?
    tags: [String]?
    bio: String
    vec: Vector(4)? @embed(bio, model="m")
    mail: String? @unique
    city: String? @index
    pay: F64?
    @range(pay, 0..10)
    @check(slug, "^[a-z]+$")
}
node Paper @owner("team") { doi: String @key @note("n")  year: I32? }
edge Wrote: Author -> Paper { pos: I32? }
"""


def changed(*changes: tuple[str, str]) -> str:
    text = ACCEPTED
    for written, rewritten in changes:
        assert written in text, written
        text = text.replace(written, rewritten)
    return text


def steps(planned: MigrationPlan) -> list[dict[str, Any]]:
    document: dict[str, Any] = planned.to_json()
    found: list[dict[str, Any]] = document["steps"]
    return found


SUPPORTED: list[tuple[tuple[str, str], list[dict[str, Any]]]] = [
    (
        ("interface Named", "interface Dated { at: Date }\ninterface Named"),
        [{"kind": "add_type", "type_kind": "interface", "name": "Dated"}],
    ),
    (
        ("node Paper", "node Venue { code: String @key }\nnode Paper"),
        [{"kind": "add_type", "type_kind": "node", "name": "Venue"}],
    ),
    (
        ("edge Wrote", "edge Cites: Paper -> Paper\nedge Wrote"),
        [{"kind": "add_type", "type_kind": "edge", "name": "Cites"}],
    ),
    (
        ("edge Wrote: Author -> Paper", 'edge Penned: Author -> Paper @rename_from("Wrote")'),
        [{"kind": "rename_type", "type_kind": "edge", "from": "Wrote", "to": "Penned"}],
    ),
    (
        ("year: I32?", "year: I32?  pages: U32?"),
        [
            {
                "kind": "add_property",
                "type_kind": "node",
                "type_name": "Paper",
                "property_name": "pages",
                "property_type": "U32?",
            }
        ],
    ),
    (
        ("pos: I32?", "pos: I32?  role: enum(b, a)?"),
        [
            {
                "kind": "add_property",
                "type_kind": "edge",
                "type_name": "Wrote",
                "property_name": "role",
                "property_type": "enum(a, b)?",
            }
        ],
    ),
    (
        ("nick: String?", "nick: String?  born: Date?"),
        [
            {
                "kind": "add_property",
                "type_kind": "interface",
                "type_name": "Named",
                "property_name": "born",
                "property_type": "Date?",
            },
            {
                "kind": "add_property",
                "type_kind": "node",
                "type_name": "Author",
                "property_name": "born",
                "property_type": "Date?",
            },
        ],
    ),
    (
        ("year: I32?", 'published: I32? @rename_from("year")'),
        [
            {
                "kind": "rename_property",
                "type_kind": "node",
                "type_name": "Paper",
                "from": "year",
                "to": "published",
            }
        ],
    ),
    (
        ("level: enum(junior, senior)?", "level: enum(staff, senior, fellow, junior)?"),
        [
            {
                "kind": "extend_enum",
                "type_kind": "node",
                "type_name": "Author",
                "property_name": "level",
                "added_values": ["fellow", "staff"],
            }
        ],
    ),
    (
        ("level: enum(junior, senior)?", "rank: enum(junior, senior, staff)? @rename_from(level)"),
        [
            {
                "kind": "rename_property",
                "type_kind": "node",
                "type_name": "Author",
                "from": "level",
                "to": "rank",
            },
            {
                "kind": "extend_enum",
                "type_kind": "node",
                "type_name": "Author",
                "property_name": "rank",
                "added_values": ["staff"],
            },
        ],
    ),
    (("enum(junior, senior)", "enum(senior, junior)"), []),
    (
        ("year: I32?", "year: I32? @index  @index(year)"),
        [
            {
                "kind": "add_constraint",
                "type_kind": "node",
                "type_name": "Paper",
                "constraint": "@index(year)",
            }
        ],
    ),
    (
        ("pos: I32?", "pos: I32?  @index(src, pos)"),
        [
            {
                "kind": "add_constraint",
                "type_kind": "edge",
                "type_name": "Wrote",
                "constraint": "@index(src, pos)",
            }
        ],
    ),
    (
        ("year: I32?", "year: I32?  pages: U32? @index"),
        [
            {
                "kind": "add_property",
                "type_kind": "node",
                "type_name": "Paper",
                "property_name": "pages",
                "property_type": "U32?",
            },
            {
                "kind": "add_constraint",
                "type_kind": "node",
                "type_name": "Paper",
                "constraint": "@index(pages)",
            },
        ],
    ),
    (
        ("node Paper", 'node Paper @instruction("cite it") @description("a paper")'),
        [
            {
                "kind": "update_type_metadata",
                "type_kind": "node",
                "name": "Paper",
                "annotations": [
                    {"name": "description", "value": "a paper"},
                    {"name": "instruction", "value": "cite it"},
                ],
            }
        ],
    ),
    (
        ("pos: I32?", 'pos: I32? @description("place")'),
        [
            {
                "kind": "update_property_metadata",
                "type_kind": "edge",
                "type_name": "Wrote",
                "property_name": "pos",
                "annotations": [{"name": "description", "value": "place"}],
            }
        ],
    ),
    (
        ("edge Wrote: Author -> Paper { pos: I32? }", ""),
        [
            {
                "kind": "drop_type",
                "type_kind": "edge",
                "name": "Wrote",
                "mode": "soft",
                "code": "OG-DS-103",
                "tier": "destructive",
            }
        ],
    ),
    (
        ("{ pos: I32? }", ""),
        [
            {
                "kind": "drop_property",
                "type_kind": "edge",
                "type_name": "Wrote",
                "property_name": "pos",
                "mode": "soft",
                "code": "OG-DS-104",
                "tier": "destructive",
            }
        ],
    ),
    (
        ("nick: String?", ""),
        [
            {
                "kind": "drop_property",
                "type_kind": kind,
                "type_name": name,
                "property_name": "nick",
                "mode": "soft",
                "code": "OG-DS-104",
                "tier": "destructive",
            }
            for kind, name in (("interface", "Named"), ("node", "Author"))
        ],
    ),
    (
        ("    city: String? @index\n", ""),
        [
            {
                "kind": "drop_property",
                "type_kind": "node",
                "type_name": "Author",
                "property_name": "city",
                "mode": "soft",
                "code": "OG-DS-104",
                "tier": "destructive",
            }
        ],
    ),
    (
        ('    vec: Vector(4)? @embed(bio, model="m")\n', ""),
        [
            {
                "kind": "drop_property",
                "type_kind": "node",
                "type_name": "Author",
                "property_name": "vec",
                "mode": "soft",
                "code": "OG-DS-104",
                "tier": "destructive",
            }
        ],
    ),
]

UNSUPPORTED = [
    (("year: I32?", "year: I32?  pages: U32"), "node:Paper.pages", "OG-MF-103"),
    (("age: I32?", "age: [I32]?"), "node:Author.age", "OG-MF-106"),
    (("tags: [String]?", "tags: String?"), "node:Author.tags", "OG-MF-106"),
    (("Vector(4)", "Vector(8)"), "node:Author.vec", "OG-MF-106"),
    (("age: I32?", "age: enum(old, young)?"), "node:Author.age", "OG-MF-106"),
    (("@embed(bio,", "@embed(slug,"), "node:Author.vec", None),
    (('model="m"', 'model="n"'), "node:Author.vec", None),
    (('@embed(bio, model="m")', ""), "node:Author.vec", None),
    (('@owner("team")', '@owner("other")'), "node:Paper", None),
    (('@owner("team")', ""), "node:Paper", None),
    (('@note("n")', '@note("m")'), "node:Paper.doi", None),
    (("Author -> Paper", "Paper -> Author"), "edge:Wrote", None),
]


ONE_LINERS = [
    (("age: I32?", "age: I64?"), ["change property age of node Author from I32? to I64?"]),
    (("age: I32?", "age: I32"), ["change property age of node Author from I32? to I32"]),
    (
        ("bio: String", "bio: String?"),
        ["change property bio of node Author from String to String?"],
    ),
    (("pos: I32?", "pos: F64?"), ["change property pos of edge Wrote from I32? to F64?"]),
    (
        ("enum(junior, senior)", "enum(junior, elder)"),
        ["change property level of node Author from enum(junior, senior)? to enum(elder, junior)?"],
    ),
    (
        ("enum(junior, senior)", "String"),
        ["change property level of node Author from enum(junior, senior)? to String?"],
    ),
    (("year: I32?", "year: I32? @unique"), ["add @unique(year) to node Paper"]),
    (
        ("year: I32?", "year: I32?  pages: U32 @unique @backfill(year)"),
        [
            "add property pages: U32 to node Paper, year for rows that exist",
            "add @unique(pages) to node Paper",
        ],
    ),
    (
        ("year: I32?", "year: I32?  pages: U32 @default(3)"),
        ["add property pages: U32 to node Paper, 3 for rows that exist"],
    ),
    (
        ("year: I32?", "year: I32?  @range(year, 0..3000)"),
        ["add @range(year, 0..3000) to node Paper"],
    ),
    (("doi: String @key", "doi: String"), ["drop @key(doi) of node Paper"]),
    (("mail: String? @unique", "mail: String?"), ["drop @unique(mail) of node Author"]),
    (("city: String? @index", "city: String?"), ["drop @index(city) of node Author"]),
    (("    @range(pay, 0..10)\n", ""), ["drop @range(pay, 0..10) of node Author"]),
    (
        ("    mail: String? @unique\n", ""),
        [
            "drop property mail of node Author (soft) [OG-DS-104, destructive]",
            "drop @unique(mail) of node Author",
        ],
    ),
    (
        ("Author -> Paper", "Author -> Paper @card(0..1)"),
        ["change @card of edge Wrote from 0.. to 0..1"],
    ),
    (("{ pos: I32? }", "{ pos: I32?  @key(src, dst) }"), ["add @key(src, dst) to edge Wrote"]),
]


@pytest.mark.parametrize(("change", "lines"), ONE_LINERS)
def test_a_change_that_rows_have_to_fit_is_planned(
    change: tuple[str, str], lines: list[str]
) -> None:
    planned = plan(ACCEPTED, changed(change))

    assert [str(step) for step in planned.steps] == lines
    assert [describe_step(step) for step in steps(planned)] == lines
    assert planned.supported
    assert plan(planned.require_supported(), changed(change)).steps == ()


@pytest.mark.parametrize(
    ("before", "after", "tier"),
    [
        ("I32", "I64", "safe"),
        ("U32", "I64", "safe"),
        ("F32", "F64", "safe"),
        ("I32", "F64", "safe"),
        ("I32", "I64?", "safe"),
        ("I64", "I32", "validated"),
        ("I32", "U32", "validated"),
        ("F64", "F32", "validated"),
        ("F64", "I64", "validated"),
        ("I32?", "I64", "validated"),
        ("String?", "String", "validated"),
        ("String", "enum(a, b)", "validated"),
        ("enum(a)", "enum(a, b)?", "safe"),
    ],
)
def test_a_change_of_type_says_whether_rows_have_to_be_looked_at(
    before: str, after: str, tier: str
) -> None:
    (step,) = steps(plan(f"node A {{ p: {before} }}", f"node A {{ p: {after} }}"))

    assert (step["kind"], step["from"], step["to"]) == ("change_type", before, after)
    assert step["tier"] == tier
    assert ("code" in step) == (tier == "validated")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("String", "I32"),
        ("I32", "String"),
        ("I32", "[I32]"),
        ("Date", "DateTime"),
        ("[I32]", "[I64]"),
    ],
)
def test_values_that_cannot_be_kept_are_not_converted(before: str, after: str) -> None:
    (step,) = steps(plan(f"node A {{ p: {before} }}", f"node A {{ p: {after} }}"))

    assert (step["kind"], step["code"]) == ("unsupported_change", "OG-MF-106")


@pytest.mark.parametrize(("change", "expected"), SUPPORTED)
def test_a_supported_change_becomes_exactly_these_steps(
    change: tuple[str, str], expected: list[dict[str, Any]]
) -> None:
    planned = plan(ACCEPTED, changed(change))

    assert planned.supported
    assert steps(planned) == expected
    assert planned.catalog is planned.require_supported()


@pytest.mark.parametrize("change", [change for change, _ in SUPPORTED])
def test_an_applied_plan_leaves_nothing_to_do(change: tuple[str, str]) -> None:
    desired = changed(change)

    applied = plan(ACCEPTED, desired).require_supported()

    assert applied.shape_hash == catalog(desired).shape_hash
    assert plan(applied, desired).steps == ()


@pytest.mark.parametrize(("change", "entity", "code"), UNSUPPORTED)
def test_an_unsupported_change_refuses_the_plan_and_says_why(
    change: tuple[str, str], entity: str, code: str | None
) -> None:
    planned = plan(ACCEPTED, changed(change))

    refusals = [step for step in steps(planned) if step["kind"] == "unsupported_change"]
    assert not planned.supported
    assert planned.catalog is None
    assert [(step["entity"], step.get("code")) for step in refusals] == [(entity, code)]
    with pytest.raises(MigrationError) as caught:
        planned.require_supported()
    prefix = f"[{code}] " if code else ""
    assert str(caught.value) == prefix + refusals[0]["reason"]


@pytest.mark.parametrize(
    ("accepted", "desired", "entities"),
    [
        ("interface I { }", "", ["interface:I"]),
        (
            "interface I { }\nnode A implements I { }",
            "interface I { }\nnode A { }",
            ["node:A"],
        ),
        (
            "interface I { s: String? }\nnode A implements I { }",
            "interface I { s: String? }\nnode A implements I { s: String? }",
            ["node:A.s"],
        ),
        ("node A { s: String @n(1) }", "node A { s: String @n(true) }", ["node:A.s"]),
        (
            "node A { a: F32 @key }",
            "node A { a: F64 @key }",
            ["node:A.a"],
        ),
        (
            "node A { a: String }",
            "node A { a: String  b: String?  c: String @backfill(b) }",
            ["node:A.c"],
        ),
    ],
)
def test_other_unsupported_changes(accepted: str, desired: str, entities: list[str]) -> None:
    planned = plan(accepted, desired)

    refusals = [step for step in steps(planned) if step["kind"] == "unsupported_change"]
    assert [step["entity"] for step in refusals] == entities


def test_an_index_over_dropped_properties_only_goes_with_them() -> None:
    planned = plan("node A { a: I32?  b: I32?  c: I32?  @index(a, b) }", "node A { c: I32? }")

    assert planned.supported
    assert [step["kind"] for step in steps(planned)] == ["drop_property", "drop_property"]


def test_a_renamed_node_is_followed_by_its_edges() -> None:
    planned = plan(
        "node Author { s: String @key }\nedge Knows: Author -> Author",
        'node Writer @rename_from("Author") { s: String @key }\nedge Knows: Writer -> Writer',
    )

    assert [str(step) for step in planned.steps] == ["rename node Author to Writer"]
    assert planned.catalog is not None
    assert planned.catalog.edges["Knows"].source == "Writer"


def test_a_renamed_property_is_followed_by_constraints_and_embeds() -> None:
    planned = plan(
        "node A { k: String  t: String  n: I32?  v: Vector(2)? @embed(t)\n"
        '  @key(k, t)  @unique(n, t)  @index(n)  @range(n, 0..)  @check(t, "x") }',
        "node A { zk: String @rename_from(k)  zt: String @rename_from(t)"
        "  zn: I32? @rename_from(n)  v: Vector(2)? @embed(zt)\n"
        '  @key(zk, zt)  @unique(zn, zt)  @index(zn)  @range(zn, 0..)  @check(zt, "x") }',
    )

    assert planned.supported
    assert [step["kind"] for step in steps(planned)] == ["rename_property"] * 3


def test_a_rename_without_a_hint_is_a_drop_and_an_addition() -> None:
    planned = plan("node A { s: String? }", "node B { s: String? }")

    assert [str(step) for step in planned.steps] == [
        "add node B",
        "drop node A (soft) [OG-DS-102, destructive]",
    ]


def test_a_rename_hint_already_applied_changes_nothing_and_is_reported() -> None:
    text = 'node A @rename_from("Z") { s: String @rename_from("t") }\nedge E: A -> A'

    planned = plan(text, text)

    assert planned.steps == ()
    assert planned.diagnostics == (
        "@rename_from on node A has no effect: that name is accepted already",
        "@rename_from on property `s` of node A has no effect: that name is accepted already",
    )


def test_no_difference_is_no_step_and_the_same_catalogue() -> None:
    accepted = catalog(ACCEPTED)

    planned = plan(accepted, "// again\n" + ACCEPTED)

    assert planned.to_json() == {"supported": True, "steps": []}
    assert planned.catalog == accepted


def test_with_data_loss_allowed_every_drop_is_hard() -> None:
    desired = "node Author { slug: String @key }"
    accepted = "node Author { slug: String @key  a: I32? }\nnode B { }\nedge E: B -> B"

    modes = [step["mode"] for step in steps(plan(accepted, desired, allow_data_loss=True))]

    assert modes == ["hard", "hard", "hard"]


def test_a_node_type_that_an_edge_still_ends_at_cannot_be_removed_alone() -> None:
    with pytest.raises(CatalogError, match="Paper"):
        plan("node A { }\nnode Paper { }\nedge E: A -> Paper", "node A { }\nedge E: A -> Paper")


def test_a_hint_that_cannot_be_followed_fails_the_plan() -> None:
    with pytest.raises(IdentityError, match="Ghost"):
        plan("node A { }", 'node B @rename_from("Ghost") { }')


def test_a_difference_that_no_step_covers_refuses_the_plan() -> None:
    accepted = replace(catalog("node A { }"), shape_hash="of another meaning")

    planned = plan(accepted, "node A { }")

    assert [(step["kind"], step["entity"]) for step in steps(planned)] == [
        ("unsupported_change", "schema")
    ]


def test_steps_come_by_kind_then_type_then_in_the_order_they_build_on_each_other() -> None:
    planned = plan(
        "interface I { a: I32? }\nnode N { z: I32?  d: I32?  c: I32? }\nnode Gone { }\n"
        "node Zed { }\nedge E: N -> N { x: I32? }\nedge Gone: N -> N",
        "edge F: M -> M\n"
        'edge E: M -> M @description("e") { y: I32? @rename_from(x) @description("y") @index }\n'
        'node Zed @instruction("z") { }\nnode Aaa { }\n'
        'node M @rename_from("N") @description("m") { z: I32? @index  b: I32?  @index(b, z) }\n'
        "interface I { a: I32?  b: I32? }\ninterface H { }",
    )

    assert [str(step) for step in planned.steps] == [
        "add interface H",
        "add property b: I32? to interface I",
        "add node Aaa",
        "rename node N to M",
        "update metadata of node M",
        "add property b: I32? to node M",
        "drop property c of node M (soft) [OG-DS-104, destructive]",
        "drop property d of node M (soft) [OG-DS-104, destructive]",
        "add @index(b, z) to node M",
        "add @index(z) to node M",
        "update metadata of node Zed",
        "drop node Gone (soft) [OG-DS-102, destructive]",
        "update metadata of edge E",
        "rename property x of edge E to y",
        "update metadata of property y of edge E",
        "add @index(y) to edge E",
        "add edge F",
        "drop edge Gone (soft) [OG-DS-103, destructive]",
    ]


def test_a_refused_step_reads_as_one_line_with_its_code() -> None:
    planned = plan("node A { s: String }", "node A { s: String  t: I32 }")

    assert [str(step) for step in planned.steps] == [
        "unsupported: [OG-MF-103] property `t` of node A is required, but rows that exist have no "
        "value for it — give it a @default or a @backfill, or declare it `I32?`"
    ]


def test_a_rename_does_not_reorder_the_key_of_an_edge() -> None:
    """Its order spells the ids of the edges that are there."""
    accepted = "node A { }\nedge E: A -> A { a: I32  b: I32  @key(b, dst, a, src) }"
    renamed = accepted.replace("a: I32", 'z: I32 @rename_from("a")').replace("dst, a,", "dst, z,")

    planned = plan(accepted, renamed)

    assert planned.require_supported().edges["E"].key == ("src", "dst", "z", "b")
    assert [str(step) for step in planned.steps] == ["rename property a of edge E to z"]
