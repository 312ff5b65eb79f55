"""`init`, `load`, `mutate`, `snapshot`, `branch`, `commit`: what a person types and sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from tests.cli.running import EXAMPLES, run
from tests.http.serving import served, single
from tests.ready import copy_ready

PEOPLE = EXAMPLES / "people.gq"
RECORDS = """\
// two people who know each other
{"type": "Person", "data": {"slug": "ada", "name": "Ada"}}
{"type": "Person", "data": {"slug": "lin", "name": "Lin", "title": "Engineer"}}
{"edge": "Knows", "from": "ada", "to": "lin", "data": {"since": 2019}}
"""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A graph with two people in it."""
    people = tmp_path / "people.jsonl"
    people.write_text(RECORDS)

    def make(path: Path) -> og.Graph:
        assert run("init", path, "--schema", EXAMPLES / "team.pg").code == 0
        assert run("load", path, "--data", people, "--mode", "merge").code == 0
        return og.open(path)

    copy_ready("cli team", make, tmp_path / "team.omni")
    return tmp_path / "team.omni"


def commits(store: Path) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(run("commit", "list", store, "--json").out)[
        "commits"
    ]
    return listed


def test_init_says_where(tmp_path: Path) -> None:
    path = tmp_path / "g.omni"

    outcome = run("init", path, "--schema", EXAMPLES / "team.pg")

    assert (outcome.code, outcome.out) == (0, f"initialized {path}\n")


def test_init_refuses_a_graph_that_is_there(team: Path) -> None:
    outcome = run("init", team, "--schema", EXAMPLES / "team.pg")

    assert outcome.code == 1
    assert "a graph already exists" in outcome.err


def test_init_with_a_bad_schema_names_the_file_and_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.pg").write_text("node person { }")

    outcome = run("init", tmp_path / "g.omni", "--schema", tmp_path / "bad.pg")

    assert outcome.code == 1
    assert "bad.pg:1:6" in outcome.err
    assert not (tmp_path / "g.omni").exists()


def test_load_counts_and_says_where_it_writes(team: Path, tmp_path: Path) -> None:
    outcome = run("load", team, "--data", tmp_path / "people.jsonl", "--mode", "merge")

    assert outcome.code == 0
    said, note = outcome.err.splitlines()
    assert said == f"omnigraph load → {team} (direct, local)"
    assert "1 edge had no id and was added" in note
    assert outcome.out == (
        f"loaded {team} on branch main with merge: 3 entities across 1 node types and "
        "1 edge types\n"
    )


def test_a_file_in_the_place_of_the_graph_is_recognised(team: Path, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name\nAda\n")

    outcome = run("load", str(file), "--type", "Person", "--mode", "append")

    assert outcome.code != 0
    assert f"'{file}' stands where the graph is named — write `omnigraph load GRAPH" in outcome.err


@pytest.mark.parametrize("store", [(), ("--store",)])
def test_files_of_several_types_are_arguments_behind_the_graph_or_its_flag(
    store: tuple[str, ...], team: Path, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("slug,name\nkim,Kim\nmax,Max\n")
    (tmp_path / "pairs.csv").write_text("from,to\nkim,max\n")
    types = ("--type", "Person", tmp_path / "people.csv", "--type", "Knows", tmp_path / "pairs.csv")

    outcome = run("load", *store, team, *types, "--mode", "append")

    assert outcome.code == 0, outcome.err
    assert "3 entities across 1 node types and 1 edge types" in outcome.out


def test_files_as_arguments_and_with_data_are_refused(team: Path, tmp_path: Path) -> None:
    before = commits(team)

    outcome = run("load", team, "a.csv", "--data", "b.csv", "--mode", "append")

    assert outcome.code != 0
    assert "files stand as arguments (a.csv) and with --data" in outcome.err
    assert commits(team) == before


def test_load_as_json_has_table_and_entity_words(team: Path, tmp_path: Path) -> None:
    command = ("load", team, "--data", tmp_path / "people.jsonl", "--mode", "merge", "--quiet")

    report = json.loads(run(*command, "--json").out)

    assert report["tables"] == [
        {"table_key": "edge:Knows", "rows_loaded": 1},
        {"table_key": "node:Person", "rows_loaded": 2},
    ]
    assert report["nodes"] == [{"name": "Person", "entities_loaded": 2, "rows_loaded": 2}]
    assert report["total_entities"] == 3
    assert report["commit"]["graph_commit_id"] == commits(team)[0]["graph_commit_id"]


def test_a_load_without_rows_says_that_nothing_changed(team: Path, tmp_path: Path) -> None:
    (tmp_path / "Person.csv").write_text("slug,name\n")

    outcome = run("load", team, "--data", tmp_path / "Person.csv", "--mode", "merge")

    assert outcome.code == 0
    assert outcome.out.endswith("nothing changed: no commit\n")


def test_an_export_to_a_store_is_refused_and_makes_no_directory(
    team: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    outcomes = [
        run("export", team, "--out", "s3://bucket/out", *more) for more in ((), ("--format", "csv"))
    ]

    assert [each.code for each in outcomes] == [1, 1]
    assert "an export is written to this machine" in outcomes[0].err
    assert not (tmp_path / "s3:").exists()


def test_load_can_create_its_branch(team: Path, tmp_path: Path) -> None:
    command = ("load", team, "--data", tmp_path / "people.jsonl", "--mode", "merge")

    missing = run(*command, "--branch", "dev")
    created = run(*command, "--branch", "dev", "--from", "main")

    assert missing.code == 1
    assert "branch 'dev' not found" in missing.err
    assert created.code == 0
    assert "branch dev created from main" in created.out


@pytest.mark.accepts("S-148", "S-149")
def test_mutate_counts_and_records_the_actor(team: Path) -> None:
    command = ("mutate", "add_person", "--query", PEOPLE, "--store", team, "--as", "ada")

    outcome = run(*command, "--params", '{"slug": "sam", "name": "Sam"}')

    assert outcome.code == 0
    assert outcome.out == "changed main via add_person: 1 nodes, 0 edges\nactor_id: ada\n"
    assert "actor=ada" in run("commit", "list", team).out.splitlines()[0]
    listed = run("commit", "list", team, "--filter", "actor=ada").out
    assert len(listed.splitlines()) == 1


def test_mutate_that_matches_nothing_makes_no_commit(team: Path) -> None:
    before = commits(team)
    delete = 'query gone() { delete Person where slug = "nobody" }'

    report = json.loads(run("mutate", "-e", delete, "--store", team, "--json").out)

    assert (report["query_name"], report["affected_nodes"], report["commit"]) == ("gone", 0, None)
    assert commits(team) == before


def test_mutate_with_a_stale_condition_exits_4_and_changes_nothing(team: Path) -> None:
    delete = 'query gone() { delete Person where slug = "lin" }'
    before = commits(team)

    outcome = run("mutate", "-e", delete, "--store", team, "--if-commit", "01ABC", "--json")

    assert outcome.code == 4
    assert json.loads(outcome.out)["precondition_failure"] == {
        "expected": "01ABC",
        "actual": before[0]["graph_commit_id"],
    }
    assert commits(team) == before


def test_mutate_with_the_right_condition_succeeds(team: Path) -> None:
    delete = 'query gone() { delete Person where slug = "lin" }'
    head = str(commits(team)[0]["graph_commit_id"])

    outcome = run("mutate", "-e", delete, "--store", team, "--if-commit", head)

    assert (outcome.code, outcome.out) == (0, "changed main via gone: 1 nodes, 1 edges\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add_person", "--query", PEOPLE), "parameter 'slug' not provided"),
        (("add_person", "--query", PEOPLE, "--params", "[1]"), "params must be a JSON object"),
        (("add_person", "--query", PEOPLE, "--params", "{"), "params must be a JSON object"),
        (("colleagues", "--query", PEOPLE, "--params", '{"name": "x"}'), "is a read"),
        (("nope", "--query", PEOPLE), "query 'nope' not found"),
        (("--query", PEOPLE), "add_person"),
    ],
)
def test_a_bad_mutation_is_one_clear_error(
    team: Path, arguments: tuple[str | Path, ...], message: str
) -> None:
    outcome = run("mutate", *arguments, "--store", team)

    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_snapshot_shows_every_table(team: Path) -> None:
    outcome = run("snapshot", team)

    assert outcome.out == (
        "branch: main\nmanifest_version: 2\n"
        "edge:Knows v2 branch=main rows=1\n"
        "edge:Wrote v1 branch=main rows=0\n"
        "node:Note v1 branch=main rows=0\n"
        "node:Person v2 branch=main rows=2\n"
    )
    report = json.loads(run("snapshot", team, "--json").out)
    assert [table["table_key"] for table in report["tables"]] == sorted(
        table["table_key"] for table in report["tables"]
    )


def test_branches_come_and_go(team: Path) -> None:
    assert run("branch", "create", "review/x", "--store", team).out == (
        "created branch review/x from main\n"
    )
    assert run("branch", "list", "--store", team).out == "main\nreview/x\n"
    assert run("branch", "delete", "review/x", "--uri", team).out == "deleted branch review/x\n"
    assert json.loads(run("branch", "list", "--store", team, "--json").out) == {
        "branches": ["main"]
    }


def test_a_write_on_a_branch_stays_there(team: Path) -> None:
    run("branch", "create", "dev", "--store", team)
    delete = 'query gone() { delete Person where slug = "lin" }'

    run("mutate", "-e", delete, "--store", team, "--branch", "dev")

    assert "node:Person v3 branch=dev rows=1" in run("snapshot", team, "--branch", "dev").out
    assert "node:Person v2 branch=main rows=2" in run("snapshot", team).out


def test_commit_show_prints_what_list_lists(team: Path) -> None:
    newest = commits(team)[0]

    outcome = run("commit", "show", str(newest["graph_commit_id"]), "--store", team)

    assert f"graph_commit_id: {newest['graph_commit_id']}" in outcome.out
    assert f"parent_commit_id: {newest['parent_commit_id']}" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("snapshot", "nowhere.omni"), 1, "no graph at 'nowhere.omni'"),
        (("snapshot",), 2, "no graph addressed"),
        (("snapshot", "a", "--store", "b"), 2, "mutually exclusive"),
        (("snapshot", "https://example.org"), 1, "is a server"),
        (("branch", "list", "--store", "ftp://x"), 1, "unknown scheme"),
    ],
)
def test_an_invalid_address_is_refused(arguments: tuple[str, ...], code: int, message: str) -> None:
    outcome = run(*arguments)

    assert outcome.code == code
    assert message in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "main"), "main"),
        (("create", "../out"), "is not a branch name"),
        (("create", "x", "--from", "nope"), "revision 'nope' not found"),
        (("delete", "nope"), "branch 'nope' not found"),
        (("delete", "main"), "cannot delete branch 'main'"),
    ],
)
def test_a_bad_branch_name_is_refused(team: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("branch", *arguments, "--store", team)

    assert outcome.code == 1
    assert message in outcome.err


@pytest.mark.slow
@pytest.mark.accepts("S-107")
def test_what_recovery_did_is_found_by_its_actor(team: Path) -> None:
    """A writer that dies after its table commits is finished by the next write."""
    insert = 'query add() { insert Person { slug: "sam", name: "Sam" } }'
    command = [sys.executable, "-m", "omnigraph", "mutate", "-e", insert, "--store", str(team)]
    environment = {**os.environ, ENVIRONMENT_VARIABLE: "mutation.post_finalize_pre_publisher=kill"}
    died = subprocess.run(command, env=environment, capture_output=True, check=False)

    run("mutate", "-e", insert, "--store", team)

    assert died.returncode == -signal.SIGKILL
    found = run("commit", "list", team, "--filter", "actor=omnigraph:recovery").out.splitlines()
    assert len(found) == 1
    assert found[0].endswith("actor=omnigraph:recovery")


def test_an_error_with_json_is_json_as_well(tmp_path: Path) -> None:
    failed = run("branch", "list", "--json", "--store", tmp_path / "nothing")

    assert failed.code == 1
    said = json.loads(failed.out)
    assert said["code"] == "not_found"
    assert failed.err == f"error: {said['error']}\n"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    store, lost = tmp_path / "g.omni", tmp_path / "missing" / "out"
    run("init", store, "--schema", EXAMPLES / "team.pg")

    for command in (("changes", "baseline", "--out"), ("branch", "diff", "main", "--html")):
        failed = run(*command, lost, "--store", store)
        assert (failed.code, failed.out) == (1, "")
        assert f"error: cannot write '{lost}': No such file or directory" in failed.err


def test_a_preview_with_a_conflict_says_that_the_merge_would_be_refused(team: Path) -> None:
    with og.open(team) as graph:
        graph.create_branch("review")
        for branch, title in (("review", "Editor"), ("main", "Writer")):
            graph.mutate(PEOPLE, "retitle", {"slug": "ada", "title": title}, branch=branch)

    merge = run("branch", "merge", "review", "--preview", "--store", team)
    pick = run("cherry-pick", "review", "--into", "main", "--preview", "--store", team)

    assert merge.out.startswith("merging review into main would be: refused, by 1 conflict\n")
    assert pick.out.startswith("cherry-pick on main would be: refused, by 1 conflict\n")


@pytest.mark.slow
def test_an_unknown_load_mode_is_told_in_the_same_words_by_a_server(
    team: Path, tmp_path: Path
) -> None:
    given = ("--data", tmp_path / "people.jsonl", "--mode", "nope")

    with served(single(team)) as server:
        over = run("load", *given, "--server", server.url)
    direct = run("load", team, *given)

    assert over.err.splitlines()[-1] == direct.err.splitlines()[-1]
    assert "expected one of 'overwrite', 'append', 'merge'" in direct.err
