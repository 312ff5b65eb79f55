"""`omnigraph policy`: what it prints, and with which exit code it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.policy.bundles import SERVER, TEAM

CASES = """\
version: 1
cases:
  - { id: bob-reads, actor: act-bob, action: read, branch: main, expect: allow }
  - { id: bob-off-main, actor: act-bob, action: change, branch: main, expect: deny }
  - { id: ada-merges, actor: act-ada, action: branch_merge, branch: work,
      target_branch: main, expect: allow }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, with a bundle and its cases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(TEAM)
    (tmp_path / "policy.tests.yaml").write_text(CASES)
    return tmp_path


def test_a_valid_bundle_is_reported_as_valid(folder: Path) -> None:
    outcome = run("policy", "validate", "--policy", "policy.yaml")

    assert outcome.out == "policy valid: bundle 'policy.yaml' [2 actors]\n"
    assert outcome.code == 0


def test_an_invalid_bundle_ends_with_1_and_every_problem(folder: Path) -> None:
    (folder / "policy.yaml").write_text("version: 2\nrules: [{}]\n")

    outcome = run("policy", "validate", "--policy", "policy.yaml")

    assert outcome.code == 1
    assert outcome.err == (
        "error: policy bundle 'policy.yaml' is not valid:\n"
        "  policy.yaml:1:10: version is the number 2, expected the number 1\n"
        "  policy.yaml:2:9: rule 1: the key 'allow' is missing\n"
        "  policy.yaml:2:9: rule 1: the key 'id' is missing\n"
    )


def test_cases_are_looked_for_beside_the_bundle(folder: Path) -> None:
    outcome = run("policy", "test", "--policy", folder / "policy.yaml")

    assert outcome.out == "policy tests passed: 3 cases\n"
    assert outcome.code == 0


def test_failed_cases_are_listed_and_end_with_1(folder: Path) -> None:
    text = CASES.replace("expect: allow", "expect: other").replace("expect: deny", "expect: allow")
    (folder / "mine.yaml").write_text(text.replace("expect: other", "expect: deny"))

    outcome = run("policy", "test", "--policy", "policy.yaml", "--tests", "mine.yaml")

    assert outcome.out == (
        "bob-reads: expected Deny but got allow\n"
        "bob-off-main: expected Allow but got deny\n"
        "ada-merges: expected Deny but got allow\n"
    )
    assert outcome.err == "error: policy tests failed: 3 of 3 cases\n"
    assert outcome.code == 1


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ("{ id: '', actor: a, action: read, expect: deny }", "11: case 1: the id is blank"),
        (
            "{ id: c, actor: a, action: fly, expect: deny }",
            "32: case 'c': action: 'fly' is not",
        ),
        ("{ id: c, actor: a, action: read, expect: no }", "46: case 'c': expect: 'no' is not one"),
        ("{ id: c, actor: a, action: read }", "5: case 1: the key 'expect' is missing"),
        (
            "{ id: c, actor: a, action: read, expect: deny, on: x }",
            "52: case 1: the key 'on' is not one of id, actor, action, branch, ",
        ),
        ("{ id: c, actor: '', action: read, expect: deny }", "21: case 'c': actor is blank"),
    ],
)
def test_a_wrong_case_is_refused_with_its_place(folder: Path, case: str, problem: str) -> None:
    (folder / "policy.tests.yaml").write_text(f"version: 1\ncases:\n  - {case}\n")

    outcome = run("policy", "test", "--policy", "policy.yaml")

    assert outcome.code == 1
    assert outcome.err.startswith(
        f"error: policy tests 'policy.tests.yaml' is not valid: policy.tests.yaml:3:{problem}"
    )


def test_two_cases_of_one_id_are_refused(folder: Path) -> None:
    (folder / "policy.tests.yaml").write_text(
        CASES + "  - { id: bob-reads, actor: x, action: read, expect: deny }\n"
    )

    outcome = run("policy", "test", "--policy", "policy.yaml")

    assert "policy.tests.yaml:7:5: case 'bob-reads': the id is taken by line 3" in outcome.err


def test_an_explanation_names_the_rule_that_allows(folder: Path) -> None:
    outcome = run(
        "policy", "explain", "--policy", "policy.yaml", "--actor", "act-ada",
        "--action", "branch_merge", "--branch", "work", "--target-branch", "main",
    )  # fmt: skip

    assert outcome.out == (
        "decision: allow\n"
        "actor: act-ada\n"
        "action: branch_merge\n"
        "branch: work\n"
        "target_branch: main\n"
        "matched_rule: admins-merge-main\n"
        "message: policy allowed action 'branch_merge' for actor 'act-ada'\n"
    )


def test_a_denial_is_a_result_and_ends_with_0(folder: Path) -> None:
    asked = ("--actor", "eve", "--action", "read")

    outcome = run("policy", "explain", "--policy", "policy.yaml", *asked)
    as_json = run("policy", "explain", "--policy", "policy.yaml", *asked, "--json")

    message = "policy denied action 'read' for unknown actor 'eve'"
    assert outcome.code == 0
    assert outcome.out == f"decision: deny\nactor: eve\naction: read\nmessage: {message}\n"
    assert json.loads(as_json.out) == {
        "decision": "deny",
        "actor": "eve",
        "action": "read",
        "branch": None,
        "target_branch": None,
        "type": None,
        "matched_rule": None,
        "message": message,
    }


def test_an_unknown_action_is_a_wrong_call(folder: Path) -> None:
    outcome = run("policy", "explain", "--policy", "policy.yaml", "--actor", "x", "--action", "fly")

    assert outcome.code == 2
    assert "'fly' is not one of read, export" in outcome.err


def test_the_project_file_names_the_bundle(folder: Path) -> None:
    (folder / "omnigraph.yaml").write_text("policy: { file: ./policy.yaml }\n")

    assert run("policy", "validate").out == "policy valid: bundle 'policy.yaml' [2 actors]\n"
    assert run("policy", "test").out == "policy tests passed: 3 cases\n"


def test_a_graph_of_the_project_has_a_bundle_of_its_own(folder: Path) -> None:
    (folder / "server.yaml").write_text(SERVER)
    (folder / "omnigraph.yaml").write_text(
        "graphs:\n"
        "  team: { uri: ./team.omni, policy: { file: policy.yaml } }\n"
        "  bare: { uri: ./bare.omni }\n"
        "  wrong: { uri: ./wrong.omni, policy: { file: server.yaml } }\n"
        "server: { policy: { file: server.yaml } }\n"
    )

    assert run("policy", "validate", "--graph", "team").code == 0
    assert "graph 'bare' has no policy" in run("policy", "validate", "--graph", "bare").err
    assert "but this is the policy of a graph" in run("policy", "validate", "--graph", "wrong").err
    assert run("policy", "validate").err == (
        "error: there are several policies — pick one with --graph or --policy:\n"
        "  graphs.team: policy.yaml\n"
        "  graphs.wrong: server.yaml\n"
        "  server: server.yaml\n"
    )


def test_a_bundle_of_the_server_is_checked_as_one(folder: Path) -> None:
    (folder / "omnigraph.yaml").write_text("server: { policy: { file: policy.yaml } }\n")

    assert "but this is the policy of a server" in run("policy", "validate").err


def test_without_any_bundle_it_says_how_to_name_one(folder: Path) -> None:
    outcome = run("policy", "validate")

    assert outcome.code == 1
    assert outcome.err == (
        "error: there is no policy — give --policy FILE, or set policy.file in omnigraph.yaml\n"
    )


def test_two_ways_to_name_the_bundle_are_refused(folder: Path) -> None:
    assert run("policy", "validate", "--policy", "policy.yaml", "--graph", "team").code == 2


def test_a_direct_write_of_a_graph_with_a_policy_needs_an_actor_who_may(folder: Path) -> None:
    """The same bundle lets a writer of unprotected branches through on a branch, not on main."""
    (folder / "team.pg").write_text("node Person { name: String @key }\n")
    (folder / "add.gq").write_text('query add() { insert Person { name: "ann" } }\n')
    (folder / "omnigraph.yaml").write_text(
        "graphs: { team: { uri: ./team.omni, policy: { file: policy.yaml } } }\n"
    )
    assert run("init", "team.omni", "--schema", "team.pg").code == 0
    add = ("mutate", "add", "--query", "add.gq", "--target", "team")

    on_main = run(*add, "--as", "act-bob")
    made = run("branch", "create", "work", "--target", "team", "--as", "act-bob")
    on_branch = run(*add, "--as", "act-bob", "--branch", "work")
    unsigned = run(*add, "--branch", "work")

    assert (on_main.code, made.code, on_branch.code, unsigned.code) == (1, 0, 0, 1)
    assert "policy denied action 'change' on branch 'main' for actor 'act-bob'" in on_main.err
    assert "no actor is given" in unsigned.err


@pytest.mark.parametrize("what", ["graph", "cli.app; omnigraph.cli.app.build_app()"])
def test_cedar_is_loaded_with_the_first_policy_only(what: str) -> None:
    code = f"import sys, omnigraph.{what}; sys.exit('cedarpy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
