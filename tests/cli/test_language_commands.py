"""`version`, `lint`, `schema check` and `schema plan`: what a person types and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__
from tests.cli.running import EXAMPLES, run

TEAM = EXAMPLES / "team.pg"
NEXT = EXAMPLES / "team-next.pg"
PEOPLE = EXAMPLES / "people.gq"
TYPO = EXAMPLES / "typo.gq"


@pytest.mark.parametrize("arguments", [("version",), ("--version",), ("-v",)])
def test_version_names_the_package_and_the_format(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)

    expected = f"omnigraph {__version__}\ninternal-schema {INTERNAL_SCHEMA_VERSION}\n"
    assert (outcome.code, outcome.out) == (0, expected)


def test_version_as_json() -> None:
    assert json.loads(run("version", "--json").out) == {
        "version": __version__,
        "internal_schema_version": INTERNAL_SCHEMA_VERSION,
    }


def test_a_good_schema_is_counted() -> None:
    outcome = run("schema", "check", TEAM)

    assert outcome.code == 0
    assert outcome.out == f"OK    {TEAM}: 2 node types, 2 edge types, 0 interfaces\n"


def test_a_bad_schema_is_shown_with_its_line_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "bad.pg"
    path.write_text("node Person {\n    slug: Strng @key\n}\n")

    outcome = run("schema", "check", path)

    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: parse error: ")
    assert f"{path}:2:11" in outcome.err
    assert "^^^^^" in outcome.err


def test_a_missing_file_is_named() -> None:
    outcome = run("schema", "check", "nowhere.pg")

    assert outcome.code == 1
    assert outcome.err == "error: cannot read 'nowhere.pg': no such file\n"


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes.pg"
    path.write_bytes(b"node A { \xff }")

    assert "not UTF-8 at byte 9" in run("schema", "check", path).err


def test_a_plan_lists_its_steps() -> None:
    outcome = run("schema", "plan", "--from", TEAM, "--to", NEXT)

    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[:2] == [f"schema plan for {TEAM} → {NEXT}", "supported: yes"]
    assert all(line.startswith("- ") for line in lines[2:])
    assert len(lines) > 3


def test_a_plan_between_equal_schemas_has_no_steps() -> None:
    plan = json.loads(run("schema", "plan", "--from", TEAM, "--to", TEAM, "--json").out)

    assert (plan["supported"], plan["step_count"], plan["steps"]) == (True, 0, [])
    assert "no schema changes" in run("schema", "plan", "--from", TEAM, "--to", TEAM).out


def test_lint_reports_each_query_and_a_summary() -> None:
    outcome = run("lint", "--schema", TEAM, "--query", PEOPLE)

    assert outcome.code == 0
    assert "OK    query `colleagues` (read)" in outcome.out
    assert "OK    query `add_person` (mutation)" in outcome.out
    assert "INFO  Lint complete: 4 queries processed" in outcome.out


def test_lint_exits_1_when_a_query_cannot_run() -> None:
    outcome = run("lint", "--schema", TEAM, "--query", TYPO)

    assert outcome.code == 1
    assert "ERROR query `colleagues`: type error: T6" in outcome.out


def test_lint_as_json_has_the_same_facts() -> None:
    report = json.loads(run("lint", "--schema", TEAM, "--query", TYPO, "--json").out)

    assert (report["status"], report["errors"], report["queries_processed"]) == ("error", 1, 1)


def test_the_old_name_of_lint_works_and_says_so() -> None:
    outcome = run("check", "--schema", TEAM, "--query", PEOPLE)

    assert outcome.code == 0
    assert "`omnigraph check` is deprecated; use `omnigraph lint` instead" in outcome.err


@pytest.mark.parametrize(
    "arguments", [("nope",), ("lint",), ("lint", "--nope"), ("schema", "plan", "--from", "x")]
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)

    assert outcome.code == 2
    assert outcome.out == ""
    assert "omnigraph" in outcome.err


def test_the_language_is_listed_for_editors() -> None:
    listed = json.loads(run("language", "--json").out)

    assert {"upsert", "optional", "shortest"} <= set(listed["keywords"]["gq"])
    assert {"node", "interface"} <= set(listed["keywords"]["pg"])
    assert {"coalesce", "hops", "nearest"} <= {each["name"] for each in listed["functions"]}
    assert "DateTime" in json.dumps(listed["types"])


@pytest.mark.accepts("S-006")
def test_there_is_no_run_command() -> None:
    outcome = run("run", "list")

    assert outcome.code == 2
    assert "run" not in run("--help").out.partition("Commands:")[2].split()
