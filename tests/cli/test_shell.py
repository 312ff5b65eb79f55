"""The shell: statements, commands, completion and keys, on a store and behind a server."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import omnigraph as og
from omnigraph.cli.local import LocalGraph
from omnigraph.cli.shell_prompt import ShellCompleter, run_prompt
from omnigraph.cli.shell_session import ShellSession, is_complete
from omnigraph.errors import BadRequestError, OmnigraphError
from tests.cli.running import Outcome, run

SCHEMA = (
    "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person { since: Date? }"
)
ALL = "match { $p: Person } return { $p.name } order { $p.name }"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "team.omni", schema=SCHEMA, durability="process") as graph:
        yield graph


@pytest.fixture
def session(store: og.Graph) -> ShellSession:
    return ShellSession(LocalGraph(store, store.uri), "main")


def lines(session: ShellSession, text: str) -> list[str]:
    return list(session.run(text))


def pipe(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str | Path) -> Outcome:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run("shell", *arguments)


def test_a_body_alone_is_a_query_or_a_mutation(session: ShellSession) -> None:
    assert lines(session, 'insert Person { name: "ada" };') == ["changed main: 1 nodes, 0 edges"]

    assert lines(session, ALL)[-1] == "ada"


def test_parameters_that_are_set_go_to_the_queries_that_declare_them(session: ShellSession) -> None:
    add = """query add($name: String, $age: I32?) {
        insert Person { name: $name, age: $age } as $p return { $p.age }
    }"""
    lines(session, "\\set name ada")
    lines(session, "\\set $age 36")
    lines(session, "\\set other [1]")

    answered = lines(session, add)

    assert answered[0] == "changed main: 1 nodes, 0 edges"
    assert answered[-1] == "36"
    assert lines(session, "\\set age") == ['$name = "ada"', "$other = [1]"]


def test_the_past_is_read_and_not_written(session: ShellSession) -> None:
    lines(session, 'insert Person { name: "ada" }')
    lines(session, "\\at main~1")

    assert lines(session, ALL)[0].startswith("0 rows from snapshot")
    assert "@" in session.prompt
    with pytest.raises(BadRequestError, match="the past cannot be written"):
        lines(session, 'insert Person { name: "bob" }')
    lines(session, "\\at")
    assert session.prompt == "main"
    assert lines(session, ALL)[-1] == "ada"


def test_another_branch_is_asked_and_changed(session: ShellSession, store: og.Graph) -> None:
    store.create_branch("review")
    assert lines(session, "\\c review") == ["on branch review"]
    lines(session, 'insert Person { name: "ada" }')

    assert lines(session, "\\b") == ["  main", "* review"]
    assert lines(session, "\\d")[-2].split() == ["node", "|", "Person", "|", "1"]
    assert len(store.query(f"query q() {{ {ALL} }}")) == 0
    with pytest.raises(BadRequestError, match=r"no branch 'reviw'.*`review`"):
        lines(session, "\\c reviw")


def test_types_plans_logs_and_formats_are_shown(session: ShellSession) -> None:
    assert lines(session, "\\d knows") == ["edge Knows: Person -> Person", "  since: Date?"]
    assert lines(session, "\\d Person")[1:] == ["  age: I32?", "  name: String @key"]
    assert lines(session, f"\\explain {ALL}")[0].startswith("scan $p: Person")
    assert len(lines(session, "\\log 5")) == 1
    lines(session, "\\format jsonl")
    assert '"kind": "metadata"' in lines(session, ALL)[0]
    assert any("\\explain" in line for line in lines(session, "\\?"))


def test_a_file_is_run(session: ShellSession, tmp_path: Path) -> None:
    file = tmp_path / "add.gq"
    file.write_text(
        'query a() { insert Person { name: "a" } }\n'
        "query b() { match { $p: Person } return { $p.name } }"
    )

    assert lines(session, f"\\i {file}")[-1] == "a"
    with pytest.raises(BadRequestError, match="no such file"):
        lines(session, "\\i nothing.gq")


@pytest.mark.parametrize(
    "text", ["\\nothing", "\\format xml", "\\log x", "\\i", "\\d Persn", "match {", "select 1"]
)
def test_what_is_wrong_is_a_typed_error(session: ShellSession, text: str) -> None:
    with pytest.raises(OmnigraphError):
        lines(session, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\d", True),
        ("match { $p: Person }", False),
        ("match { $p: Person }\nreturn { $p.name }", True),
        ("match { $p: Person }\nreturn {", False),
        ('insert Person { name: "}{" }', True),
        ("match { // }\n", False),
        ("match {;", True),
    ],
)
def test_a_statement_ends_where_its_brackets_do(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_statements_from_a_pipe_run_in_order_and_the_exit_code_says_if_one_failed(
    store: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = pipe(
        monkeypatch, f'insert Person {{ name: "ada" }}\n{ALL}\n\\q\nnonsense {{', store.uri
    )
    wrong = pipe(monkeypatch, f"match {{ $p: Prson }} return {{ $p.name }}\n{ALL}\n", store.uri)
    cut = pipe(monkeypatch, "match {", store.uri)

    assert right.code == 0
    assert right.out.splitlines()[-1] == "ada"
    assert (wrong.code, cut.code) == (1, 1)
    assert "did you mean `Person`?" in wrong.err
    assert wrong.out.splitlines()[-1] == "ada"
    assert "ends within a statement" in cut.err


def test_a_shell_that_only_reads_refuses_writes(
    store: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pipe(monkeypatch, 'insert Person { name: "ada" }\n', store.uri, "--read-only")

    assert refused.code == 1
    assert "open for reading only" in refused.err


def complete(session: ShellSession, text: str) -> list[str]:
    found = ShellCompleter(session).get_completions(Document(text), None)  # type: ignore[arg-type]
    return [each.text for each in found]


def test_commands_branches_types_and_statements_are_completed(
    session: ShellSession, store: og.Graph
) -> None:
    store.create_branch("review")

    assert complete(session, "\\f") == ["format"]
    assert complete(session, "\\c re") == ["review"]
    assert complete(session, "\\d kn") == ["Knows"]
    assert complete(session, "match { $p: Person } return { $p.na") == ["name"]
    assert "Person" in complete(session, "query q() { match { $p: Pe")
    assert complete(session, "\\log ") == []


def test_keys_make_lines_until_a_statement_is_whole(
    session: ShellSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A real prompt: Enter goes on within brackets, Ctrl-C drops a line, Ctrl-D leaves."""
    with create_pipe_input() as keys:
        keys.send_text('insert Person {\rname: "ada" }\r')
        keys.send_text("wrong {\x03")
        keys.send_text(f"{ALL}\r")
        keys.send_text("\x04")
        run_prompt(session, "team", tmp_path / "history", input=keys, output=DummyOutput())

    out = capsys.readouterr().out.splitlines()
    assert out[0] == "changed main: 1 nodes, 0 edges"
    assert out[-1] == "ada"
    assert "insert Person {" in (tmp_path / "history").read_text()
