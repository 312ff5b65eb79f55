"""Lint reports: exact JSON, what counts as an error, and what a query is said to touch."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.compiler.lint import LintReport, lint
from tests.compiler.papers import catalog


def report(source: str) -> LintReport:
    return lint(
        catalog(),
        source,
        query_path="people.gq",
        schema_source={"kind": "file", "path": "papers.pg"},
    )


def findings(source: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(source).to_json()["findings"]
    return found


def operation(source: str) -> dict[str, Any]:
    (result,) = report(source).to_json()["results"]
    found: dict[str, Any] = result["operation"]
    return found


def test_a_clean_file_gives_a_whole_report() -> None:
    assert report("query names() { match { $v: Venue } return { $v.name as n } }").to_json() == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "papers.pg"},
        "query_path": "people.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "names",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [{"name": "n", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Venue"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }


def test_an_empty_file_is_clean() -> None:
    found = report("")

    assert (found.status, found.queries_processed) == ("ok", 0)


def test_a_file_that_does_not_parse_is_one_finding() -> None:
    found = report("query u( { }").to_json()

    assert (found["status"], found["errors"], found["queries_processed"]) == ("error", 1, 0)
    assert found["results"] == []
    assert [(f["severity"], f["code"]) for f in found["findings"]] == [("error", "Q000")]
    assert "people.gq:1" in found["findings"][0]["message"]


def test_a_type_error_belongs_to_its_query_and_the_others_go_on() -> None:
    found = report(
        "query bad() { match { $x: Ghost } return { $x } }\n"
        "query good() { match { $v: Venue } return { $v.code } }"
    ).to_json()

    assert (found["status"], found["errors"], found["queries_processed"]) == ("error", 1, 2)
    assert found["findings"] == []
    bad, good = found["results"]
    assert bad["status"] == "error"
    assert "T1: there is no node type Ghost" in bad["error"]
    assert "operation" not in bad
    assert good["status"] == "ok"


def test_a_property_that_no_update_sets_is_a_warning() -> None:
    source = """
    query b($d: String) { update Author set { name: "n", country: "c" } where slug = $d }
    query a($d: String) { update Author set { country: "c", born: 1 } where slug = $d }
    query v($d: String) { update Venue set { name: "x" } where code = $d }
    """

    found = report(source)

    assert found.status == "ok"
    assert found.warnings == 1
    assert [finding.to_json() for finding in found.findings] == [
        {
            "severity": "warning",
            "code": "L201",
            "message": "Author.tags exists in schema but no update query sets it",
            "type_name": "Author",
            "property": "tags",
            "query_names": ["a", "b"],
        }
    ]


def test_an_embedded_vector_and_a_key_need_no_update() -> None:
    """Doc has `slug` (key), `body` (required) and `vec` (embedded): only `note` is left."""
    found = findings('query u($d: String) { update Doc set { body: "b" } where slug = $d }')

    assert [finding["property"] for finding in found] == ["note"]


def test_a_query_that_cannot_run_updates_nothing() -> None:
    source = 'query u($d: String) { update Author set { slug: "x", born: 1 } where slug = $d }'

    assert [finding["code"] for finding in findings(source)] == ["L302"]


def test_a_mutation_with_fixed_values_is_a_warning_of_its_query() -> None:
    found = report('query u() { insert Venue { code: "x", name: "y" } }').to_json()

    assert (found["status"], found["warnings"], found["findings"]) == ("ok", 1, [])
    assert found["results"][0]["warnings"] == ["mutation declares no params"]


def test_a_repeated_name_is_a_warning_of_the_later_query() -> None:
    one = "query q() { match { $v: Venue } return { $v } }\n"

    first, second = report(one + one).results

    assert first.warnings == ()
    assert second.warnings == ("query 'q' is declared before; only the first one can be run",)


@pytest.mark.parametrize(
    ("code", "source", "text"),
    [
        (
            "L301",
            "query q($x: String) { delete File where slug = $x insert File { slug: $x } }",
            "mixes inserts/updates and deletes",
        ),
        (
            "L302",
            'query q($x: String) { update Venue set { code: "y", name: "n" } where code = $x }',
            "cannot update @key property",
        ),
        (
            "L303",
            "query q() { match { $v: Venue } return { $v.name as n } order { m } }",
            "no projection has the alias `m`",
        ),
        (
            "L304",
            'query q() { match { $v: Venue } return { search($v.name, "x") } }',
            "unsupported projection expression",
        ),
    ],
)
def test_what_type_checks_but_cannot_run_is_an_error_with_a_code(
    code: str, source: str, text: str
) -> None:
    found = report(source)

    assert (found.status, found.errors) == ("error", 1)
    (finding,) = found.findings
    assert (finding.severity, finding.code, finding.query_names) == ("error", code, ("q",))
    assert text in finding.message
    (result,) = found.results
    assert result.status == "error"
    assert result.error is not None
    assert text in result.error
    assert result.operation is None


def test_every_refusal_of_a_query_is_listed() -> None:
    source = """
    query q($x: String) {
      delete File where slug = $x
      update Venue set { code: "y" } where code = $x
      update Paper set { doi: "y" } where doi = $x
    }
    """

    found = report(source)

    assert found.errors == 3
    assert [(f.code, f.type_name) for f in found.findings] == [
        ("L301", None),
        ("L302", "Paper"),
        ("L302", "Venue"),
    ]


def test_findings_are_sorted_by_severity_type_and_property() -> None:
    source = """
    query u($d: String) { update Paper set { title: "t" } where doi = $d }
    query v($d: String) { update Author set { country: "c" } where slug = $d }
    query w() { match { $v: Venue } return { $v } order { x } }
    """

    found = [(f["severity"], f.get("type_name"), f.get("property")) for f in findings(source)]

    assert found == [
        ("error", None, None),
        ("warning", "Author", "born"),
        ("warning", "Author", "tags"),
        *[
            ("warning", "Paper", name)
            for name in ("counts", "keywords", "open", "pages", "released", "score", "seen")
        ],
        ("warning", "Paper", "status"),
    ]


def test_result_fields_carry_kinds() -> None:
    found = operation(
        """
        query q($x: Vector(2), $y: [Date]?) {
          match { $p: Paper $d: Doc }
          return { $p, $p.year, $p.pages, $p.score, $p.open, $p.status, $p.keywords, $p.released,
                   $p.seen, $d.vec, $x, $y, now(), 1 as one, [1.5] as list }
        }
        """
    )

    assert found["result"] == [
        {"name": "p", "kind": "object", "nullable": False},
        {"name": "p.year", "kind": "int", "nullable": False},
        {"name": "p.pages", "kind": "bigint", "nullable": True},
        {"name": "p.score", "kind": "float", "nullable": True},
        {"name": "p.open", "kind": "bool", "nullable": True},
        {"name": "p.status", "kind": "string", "nullable": True},
        {"name": "p.keywords", "kind": "list", "nullable": True, "item_kind": "string"},
        {"name": "p.released", "kind": "date", "nullable": True},
        {"name": "p.seen", "kind": "datetime", "nullable": True},
        {"name": "d.vec", "kind": "vector", "nullable": False, "vector_dim": 3},
        {"name": "x", "kind": "vector", "nullable": False, "vector_dim": 2},
        {"name": "y", "kind": "list", "nullable": True, "item_kind": "date"},
        {"name": "now", "kind": "datetime", "nullable": False},
        {"name": "one", "kind": "bigint", "nullable": False},
        {"name": "list", "kind": "list", "nullable": False, "item_kind": "float"},
    ]


def test_aggregates_are_nullable_fields() -> None:
    found = operation(
        "query q() { match { $p: Paper } "
        "return { count($p) as n, sum($p.year) as s, avg($p.year) as a, max($p.year) as y } }"
    )

    assert found["result"] == [
        {"name": "n", "kind": "bigint", "nullable": True},
        {"name": "s", "kind": "float", "nullable": True},
        {"name": "a", "kind": "float", "nullable": True},
        {"name": "y", "kind": "int", "nullable": True},
    ]


def uses(found: list[dict[str, str]]) -> list[str]:
    return [f"{use['kind']}:{use['type_name']}" for use in found]


def test_a_read_names_every_type_it_walks_also_inside_not() -> None:
    found = operation(
        "query q() { match { $p: Paper $p cites $c not { $p appearedIn $_ } } return { $c } }"
    )

    assert uses(found["reads"]) == ["node:Paper", "node:Venue", "edge:AppearedIn", "edge:Cites"]
    assert found["writes"] == []


@pytest.mark.parametrize(
    ("statement", "reads", "writes"),
    [
        ('insert Venue { code: $x, name: "n" }', ["node:Venue"], ["node:Venue"]),
        (
            "insert Wrote { from: $x, to: $x }",
            ["node:Author", "node:Paper", "edge:Wrote"],
            ["edge:Wrote"],
        ),
        ('update Venue set { name: "n" } where code = $x', ["node:Venue"], ["node:Venue"]),
        ("delete Wrote where from = $x", ["edge:Wrote"], ["edge:Wrote"]),
        (
            "delete Author where slug = $x",
            ["node:Author", "edge:Mentors", "edge:Wrote"],
            ["node:Author", "edge:Mentors", "edge:Wrote"],
        ),
    ],
)
def test_a_mutation_names_what_it_reads_and_writes(
    statement: str, reads: list[str], writes: list[str]
) -> None:
    found = operation(f"query q($x: String) {{ {statement} }}")

    assert found["result"] == []
    assert uses(found["reads"]) == reads
    assert uses(found["writes"]) == writes


@pytest.mark.parametrize(
    ("clauses", "returned", "codes"),
    [
        ("optional { $a wrote $p }  $p.year > 2000", "$a.slug", ["L305"]),
        ("optional { $a wrote $p }  not ($p.year > 2000)", "$a.slug", ["L305"]),
        ("optional { $a wrote $p }  $p is not null and $a.born > 3", "$a.slug", ["L305"]),
        ("optional { $a wrote $p  $p.year > 2000 }", "$a.slug", []),
        ("optional { $a wrote $p }  $p.year > 2000 or $p is null", "$a.slug", []),
        ("optional { $a wrote $p }  coalesce($p.year, 2020) > 2000", "$a.slug", []),
        ("optional { $a wrote $p }  $p.year > 2000 or $a.born > 3", "$a.slug", []),
        ("optional { $a wrote $p } optional { $a mentors $b }", "count($p) as n", ["L306"]),
        ("optional { $a wrote $p } optional { $a mentors $b }", "max($p.year) as n", []),
        ("optional { $a wrote $p } optional { $a mentors $b }", "count(distinct $p) as n", []),
        ("optional { $a wrote $p } optional { $a mentors $b }", "collect($p) as n", ["L306"]),
        ("optional { $a wrote $p } optional { $a mentors $b }", "collect(distinct $p) as n", []),
        ("optional { $a mentors $b } optional { $b wrote $p }", "count($p) as n", []),
    ],
)
def test_an_optional_that_is_undone_or_multiplied_is_found(
    clauses: str, returned: str, codes: list[str]
) -> None:
    source = f"query q() {{ match {{ $a: Author {clauses} }} return {{ {returned} }} }}"

    assert [finding["code"] for finding in findings(source)] == codes
    assert {finding["severity"] for finding in findings(source)} <= {"warning"}


@pytest.mark.parametrize(
    ("clauses", "params", "codes"),
    [
        ("$p.year = $x", "$x: I32?", ["L307"]),
        ("$p.year in $x", "$x: [I32]?", ["L307"]),
        ("not { $p.year > $x }", "$x: I32?", ["L307"]),
        ("$x is null or $p.year = $x", "$x: I32?", []),
        ("$p.year = coalesce($x, 2020)", "$x: I32?", []),
        ("$p.year = $x", "$x: I32", []),
        ("$p.pages != 3", "", ["L309"]),
        ("not ($p.pages > 3 and $p.year > 3)", "", ["L309"]),
        ("$p.year > 3 or $p.pages != 3", "", ["L309"]),
        ("optional { $p cites $q  $q.pages != 3 }", "", ["L309"]),
        ("$p.pages != 3 or $p.pages is null", "", []),
        ("not ($p.pages is null)", "", []),
        ("not { $p.pages != 3 }", "", []),
        ("$p.year != 3", "", []),
    ],
)
def test_a_null_that_finds_or_drops_rows_unseen_is_told(
    clauses: str, params: str, codes: list[str]
) -> None:
    source = f"query q({params}) {{ match {{ $p: Paper  {clauses} }} return {{ $p.doi }} }}"

    assert [finding["code"] for finding in findings(source)] == codes
    assert {finding["severity"] for finding in findings(source)} <= {"info"}


def test_a_mutation_that_compares_a_null_parameter_is_told() -> None:
    source = "query q($x: String?) { delete Author where slug = $x }"

    assert [finding["code"] for finding in findings(source)] == ["L307"]


def test_what_is_read_covers_blocks_and_every_type_of_an_interface() -> None:
    source = """query q() {
        match {
            $x: Named
            optional { $x wrote $p  either { $p cites $c } or { $p appearedIn $v } }
        }
        return { $x, $p, $p.year, type($p) as kind }
    }"""

    found = operation(source)

    assert [use["type_name"] for use in found["reads"]] == [
        "Author", "Paper", "Venue", "AppearedIn", "Cites", "Wrote",
    ]  # fmt: skip
    assert [field["nullable"] for field in found["result"]] == [False, True, True, True]


def test_findings_quote_a_query_as_it_is_written() -> None:
    source = """query q($x: String?) {
        top 5 by $a.slug { $a wrote $p }
        match { $a.country != $x  $p.title = " :x" or $a.country != " :x" }
        return { $p.doi }
    }"""

    told = "\n".join(finding["message"] for finding in findings(source))

    assert "`$x` may be null" in told
    assert "`$a.country != $x` drops rows" in told
    assert '`($p.title = " :x" or $a.country != " :x")` drops rows' in told
    assert "stage 1 keeps rows of $a, $p" in told
