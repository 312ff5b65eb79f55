"""`query` and `explain`: rows in every format, at every kind of target."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.running import EXAMPLES, run
from tests.ready import copy_ready

PEOPLE = EXAMPLES / "people.gq"
ALL = "query everyone() { match { $p: Person } return { $p.name, $p.title } order { $p.name } }"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    copy_ready("cli queries", _make_team, tmp_path / "team.omni")
    return tmp_path / "team.omni"


def _make_team(path: Path) -> og.Graph:
    graph = og.init(path, schema=(EXAMPLES / "team.pg").read_text(), durability="process")
    records: list[dict[str, object]] = [
        {"type": "Person", "data": {"slug": "ada", "name": "Ada", "title": "Fellow"}},
        {"type": "Person", "data": {"slug": "lin", "name": "Lin"}},
        {"edge": "Knows", "from": "ada", "to": "lin"},
    ]
    graph.load(records, mode="overwrite")
    return graph


def test_a_table_has_a_headline_and_aligned_columns(team: Path) -> None:
    outcome = run("query", "-e", ALL, "--store", team)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "2 rows from branch main via everyone\n"
        "p.name | p.title\n"
        "-------+--------\n"
        "Ada    | Fellow\n"
        "Lin    | null\n"
    )


def test_kv_prints_one_block_per_row(team: Path) -> None:
    assert run("query", "-e", ALL, "--store", team, "--format", "kv").out == (
        "2 rows from branch main via everyone\n"
        "row 1\np.name: Ada\np.title: Fellow\n\nrow 2\np.name: Lin\np.title: null\n"
    )


def test_kv_without_rows_says_so(team: Path) -> None:
    none = 'query none() { match { $p: Person { name: "x" } } return { $p.name } }'

    assert run("query", "-e", none, "--store", team, "--format", "kv").out.endswith("(no rows)\n")


def test_jsonl_starts_with_metadata(team: Path) -> None:
    lines = run("query", "-e", ALL, "--store", team, "--format", "jsonl").out.splitlines()

    assert json.loads(lines[0]) == {
        "kind": "metadata",
        "query_name": "everyone",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
    }
    assert json.loads(lines[2]) == {"p.name": "Lin", "p.title": None}


def test_json_is_the_read_envelope(team: Path) -> None:
    envelope = json.loads(run("query", "-e", ALL, "--store", team, "--json").out)

    head = json.loads(run("commit", "list", team, "--json").out)["commits"][0]
    assert envelope["columns"] == ["p.name", "p.title"]
    assert envelope["row_count"] == 2
    assert envelope["graph_commit_id"] == head["graph_commit_id"]


HOSTILE = ["=1+1", "+x", "@x", 'quo"te', "com,ma", "line\nbreak", "\x1b[31mred", "ü", "\u202etxt"]


@pytest.fixture
def hostile(team: Path) -> Path:
    with og.open(team, durability="process") as graph:
        graph.load(
            [
                {"type": "Note", "data": {"slug": f"n{n}", "text": text, "status": "draft"}}
                for n, text in enumerate(HOSTILE)
            ],
            mode="merge",
        )
    return team


NOTES = "query notes() { match { $n: Note } return { $n.text } order { $n.slug } }"


def test_stored_text_cannot_reach_the_terminal_as_control_codes(hostile: Path) -> None:
    out = run("query", "-e", NOTES, "--store", hostile).out

    assert "\x1b" not in out
    assert "\u202e" not in out
    assert len(out.splitlines()) == 3 + len(HOSTILE)


def test_csv_reads_back_and_disarms_formulas(hostile: Path) -> None:
    out = run("query", "-e", NOTES, "--store", hostile, "--format", "csv").out

    rows = list(csv.reader(io.StringIO(out)))

    assert rows[0] == ["n.text"]
    assert [row[0] for row in rows[1:4]] == ["'=1+1", "'+x", "'@x"]
    assert [row[0] for row in rows[4:]] == HOSTILE[3:]


@pytest.mark.accepts("S-178", "S-179")
def test_a_query_at_an_old_snapshot_returns_the_old_rows(team: Path) -> None:
    before = json.loads(run("commit", "list", team, "--json").out)["commits"][0]
    delete = 'query gone() { delete Person where slug = "lin" }'
    run("mutate", "-e", delete, "--store", team)

    now = run("query", "-e", ALL, "--store", team).out
    then = run("query", "-e", ALL, "--store", team, "--snapshot", before["graph_commit_id"]).out

    assert now.startswith("1 rows from branch main")
    assert then.startswith(f"2 rows from snapshot {before['graph_commit_id']}")


def test_explain_shows_ir_and_plan_and_with_analyze_the_run(team: Path) -> None:
    plain = run("explain", "-e", ALL, "--store", team).out
    analyzed = run("explain", "-e", ALL, "--store", team, "--analyze").out

    assert plain.startswith("IR\n")
    assert "\nplan\n" in plain
    assert "\nrun\n" not in plain
    assert "2 rows" in analyzed.partition("\nrun\n")[2]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-e", ALL, "--branch", "nope"), 1, "branch 'nope' not found"),
        (("-e", ALL, "--snapshot", "nope"), 1, "commit 'nope' not found"),
        (("-e", ALL, "--branch", "main", "--snapshot", "x"), 2, "not both"),
        (("-e", ALL, "--json", "--format", "csv"), 2, "mutually exclusive"),
        (("-e", ALL, "--at", "yesterday"), 1, "invalid DateTime"),
        (("-e", ALL, "--at", "1999-01-01"), 1, "no commit as old as that"),
        (("-e", 'query q() { delete Person where slug = "x" }'), 1, "is a mutation"),
        (("--query", "nowhere.gq"), 1, "cannot read 'nowhere.gq'"),
        ((), 2, "give the query"),
    ],
)
def test_a_bad_query_call_is_one_clear_error(
    team: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run("query", *arguments, "--store", team)

    assert outcome.code == code
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert bool(outcome.out) == ("--json" in arguments), "as JSON too, where that was asked for"


def test_an_algorithm_prints_a_row_for_every_node(team: Path) -> None:
    asked = ("algorithm", "degrees", "--node", "Person", "--edge", "Knows", "--store", team)

    table = run(*asked).out
    rows = json.loads(run(*asked, "--json").out)["rows"]

    assert table.splitlines()[-2:] == [
        "ada | 0         | 1          | 1",
        "lin | 1         | 0          | 1",
    ]
    assert [row["id"] for row in rows] == ["ada", "lin"]
