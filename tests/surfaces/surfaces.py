"""One way to call a graph, spoken by the library, the command line and HTTP.

Every call gives an `Answer`: the JSON of a success, or the text and the status of a failure. The
command line has no status, but its exit code has to fit: 4 for a lost precondition, 1 otherwise.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

import omnigraph as og
from omnigraph import wire
from omnigraph.cli.local import LocalGraph
from omnigraph.commit_note import CommitNote, parse_metadata
from omnigraph.errors import OmnigraphError, SourceError
from omnigraph.graph.calls.upkeep import run_upkeep
from omnigraph.graph.check_files import read_checks
from omnigraph.undo_calls import PickCall, RestoreCall, RevertCall, UndoCall
from omnigraph.wire import RequestVerb
from tests.cli.running import run

Json = dict[str, Any]

PRECONDITION_FAILED = 412


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call. `status` is None where a surface has none."""

    value: Any = None
    error: str | None = None
    status: int | None = None
    details: Json = field(default_factory=dict)

    @property
    def json(self) -> Any:
        assert self.error is None, self.error
        return self.value

    def done(self) -> None:
        """Check that the call succeeded."""
        assert self.error is None, self.error

    def refused(self, status: int, text: str) -> Answer:
        """Check that the call failed in this way, and say more about it."""
        assert self.error is not None, f"succeeded with {self.value}"
        assert self.status in (None, status)
        assert text in self.error
        return self


class Surface(Protocol):
    """The calls that every surface has."""

    def query(self, source: str, name: str | None = None, params: Any = None, **at: str) -> Answer:
        """`at` may have a branch or a snapshot."""
        ...

    def mutate(
        self, source: str, name: str | None = None, params: Any = None, **how: str
    ) -> Answer:
        """`how` may have a branch, an if_commit, a message, and a meta of the form key=value."""
        ...

    def load(self, text: str, mode: str, **how: str) -> Answer:
        """`how` may have a branch and a base."""
        ...

    def export(self, branch: str = "main", types: list[str] | None = None) -> Answer: ...
    def snapshot(self, branch: str = "main") -> Answer: ...
    def schema(self, branch: str | None = None) -> Answer: ...
    def apply_schema(
        self, text: str, *, branch: str = "main", allow_data_loss: bool = False
    ) -> Answer: ...
    def branches(self) -> Answer: ...
    def create_branch(self, name: str, source: str = "main") -> Answer: ...
    def delete_branch(self, name: str) -> Answer: ...
    def reset_branch(self, name: str, to: str, *, preview: bool = False) -> Answer: ...
    def checks(self, branch: str = "main") -> Answer: ...
    def apply_checks(self, folder: Path, branch: str = "main") -> Answer: ...
    def run_checks(self, branch: str = "main") -> Answer: ...
    def tags(self) -> Answer: ...
    def create_tag(self, name: str, at: str = "main", message: str | None = None) -> Answer: ...
    def delete_tag(self, name: str) -> Answer: ...
    def merge(self, source: str, target: str = "main", *, delete: bool = False) -> Answer: ...
    def preview_merge(self, source: str, target: str = "main", resolve: Any = None) -> Answer: ...
    def merge_resolved(self, source: str, resolve: Any) -> Answer: ...
    def open_request(self, source: str, title: str, reviewers: list[str]) -> Answer: ...
    def requests(self, state: str = "open") -> Answer: ...
    def request(self, number: int) -> Answer: ...
    def preview_request(self, number: int) -> Answer: ...
    def edit_request(self, number: int, **changed: str) -> Answer: ...
    def say_on_request(self, number: int, verb: RequestVerb, **said: str) -> Answer: ...
    def withdraw_verdict(self, number: int) -> Answer: ...
    def merge_request(self, number: int, *, delete: bool = False) -> Answer: ...
    def undo(self, asked: UndoCall, message: str | None = None) -> Answer: ...
    def preview_undo(self, asked: UndoCall) -> Answer: ...
    def diff(self, before: str, after: str = "main", types: list[str] | None = None) -> Answer: ...
    def diff_lines(self, before: str, after: str = "main") -> Answer: ...
    def diff_html(self, before: str, after: str = "main") -> Answer: ...
    def commits(self, branch: str = "main", **asked: Any) -> Answer:
        """`asked` are members of a `LogPart`."""
        ...

    def commit(self, commit_id: str) -> Answer: ...
    def log(self, branch: str = "main", **asked: Any) -> Answer: ...
    def history(self, type_name: str, entity_id: str, branch: str = "main") -> Answer: ...
    def blame(self, type_name: str, entity_id: str, branch: str = "main") -> Answer: ...
    def bisect(self, source: str, good: str, bad: str = "main") -> Answer: ...
    def explain(self, source: str, params: Any = None, *, analyze: bool = False) -> Answer: ...

    def upkeep(self, kind: str, **options: Any) -> Answer:
        """Upkeep to its end; over HTTP that is a job."""
        ...

    def doctor(self) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Library:
    """The library, called directly."""

    path: Path

    def query(self, source: str, name: str | None = None, params: Any = None, **at: str) -> Answer:
        def call(graph: og.Graph) -> Json:
            snapshot = at.get("snapshot")
            result = graph.query(
                source,
                name,
                params,
                branch=at.get("branch", "main"),
                commit=snapshot,
                schema=at.get("schema_of", "commit"),
            )
            return wire.read_to_json(result, wire.read_target(result, snapshot))

        return self._answer(call)

    def mutate(
        self, source: str, name: str | None = None, params: Any = None, **how: str
    ) -> Answer:
        def call(graph: og.Graph) -> Json:
            options: Json = dict(how)
            if "meta" in options:
                options["metadata"] = parse_metadata([options.pop("meta")])
            result = graph.mutate(source, name, params, **options)
            commit = graph.commit(result.commit_id) if result.commit_id else None
            chosen = name or og.parse_query(source).queries[0].name
            branch = how.get("branch", "main")
            return wire.change_to_json(
                result, branch=branch, query_name=chosen, actor=None, commit=commit
            )

        return self._answer(call)

    def load(self, text: str, mode: str, **how: str) -> Answer:
        def call(graph: og.Graph) -> Json:
            branch, base = how.get("branch", "main"), how.get("base")
            result = graph.load(text, mode=mode, branch=branch, base=base)
            commit = graph.commit(result.commit_id) if result.commit_id else None
            return wire.load_to_json(result, str(self.path), commit)

        return self._answer(call)

    def export(self, branch: str = "main", types: list[str] | None = None) -> Answer:
        return self._answer(lambda graph: list(graph.export(branch=branch, types=types)))

    def snapshot(self, branch: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).snapshot(branch))

    def schema(self, branch: str | None = None) -> Answer:
        return self._answer(lambda graph: {"schema_source": graph.branch_schema(branch or "main")})

    def apply_schema(
        self, text: str, *, branch: str = "main", allow_data_loss: bool = False
    ) -> Answer:
        def call(graph: og.Graph) -> Json:
            result = graph.apply_schema(text, branch=branch, allow_data_loss=allow_data_loss)
            return wire.schema_applied_to_json(result, str(self.path))

        return self._answer(call)

    def branches(self) -> Answer:
        return self._answer(lambda graph: {"branches": graph.branches()})

    def checks(self, branch: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).checks(branch))

    def apply_checks(self, folder: Path, branch: str = "main") -> Answer:
        wanted = read_checks([folder])
        return self._answer(lambda graph: self._local(graph).apply_checks(wanted, branch=branch))

    def run_checks(self, branch: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).run_checks(branch))

    def tags(self) -> Answer:
        return self._answer(lambda graph: self._local(graph).tags())

    def create_tag(self, name: str, at: str = "main", message: str | None = None) -> Answer:
        return self._answer(lambda graph: self._local(graph).create_tag(name, at, message))

    def delete_tag(self, name: str) -> Answer:
        return self._answer(lambda graph: self._local(graph).delete_tag(name))

    def create_branch(self, name: str, source: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).create_branch(name, source))

    def delete_branch(self, name: str) -> Answer:
        return self._answer(lambda graph: self._local(graph).delete_branch(name))

    def reset_branch(self, name: str, to: str, *, preview: bool = False) -> Answer:
        return self._answer(
            lambda graph: self._local(graph).reset_branch(name, to, if_commit=None, preview=preview)
        )

    def merge(self, source: str, target: str = "main", *, delete: bool = False) -> Answer:
        def call(graph: og.Graph) -> Json:
            return graph.merge(source, target, delete_branch=delete).to_json()

        return self._answer(call)

    def preview_merge(self, source: str, target: str = "main", resolve: Any = None) -> Answer:
        return self._answer(
            lambda graph: self._local(graph).preview_merge(source, target, resolve=resolve)
        )

    def merge_resolved(self, source: str, resolve: Any) -> Answer:
        return self._answer(lambda graph: graph.merge(source, resolve=resolve).to_json())

    def open_request(self, source: str, title: str, reviewers: list[str]) -> Answer:
        asked = {"source": source, "target": "main", "title": title, "reviewers": reviewers}
        return self._answer(lambda graph: self._local(graph).open_merge_request(asked))

    def requests(self, state: str = "open") -> Answer:
        return self._answer(lambda graph: self._local(graph).merge_requests(state, 50, None))

    def request(self, number: int) -> Answer:
        return self._answer(lambda graph: self._local(graph).merge_request(number))

    def preview_request(self, number: int) -> Answer:
        return self._answer(lambda graph: self._local(graph).preview_merge_request(number))

    def edit_request(self, number: int, **changed: str) -> Answer:
        return self._answer(lambda graph: self._local(graph).edit_merge_request(number, changed))

    def say_on_request(self, number: int, verb: RequestVerb, **said: str) -> Answer:
        return self._answer(
            lambda graph: self._local(graph).say_on_merge_request(number, verb, said)
        )

    def withdraw_verdict(self, number: int) -> Answer:
        return self._answer(lambda graph: self._local(graph).withdraw_approval(number))

    def merge_request(self, number: int, *, delete: bool = False) -> Answer:
        asked = {"delete_branch": delete}
        return self._answer(lambda graph: self._local(graph).complete_merge_request(number, asked))

    def undo(self, asked: UndoCall, message: str | None = None) -> Answer:
        return self._answer(lambda graph: self._local(graph).undo(asked, CommitNote(message)))

    def preview_undo(self, asked: UndoCall) -> Answer:
        return self._answer(lambda graph: self._local(graph).preview_undo(asked))

    def diff(self, before: str, after: str = "main", types: list[str] | None = None) -> Answer:
        return self._answer(lambda graph: graph.diff(before, after, types=types).to_json())

    def diff_lines(self, before: str, after: str = "main") -> Answer:
        return self._answer(
            lambda graph: [json.loads(each) for each in graph.diff(before, after).to_jsonl()]
        )

    def diff_html(self, before: str, after: str = "main") -> Answer:
        return self._answer(lambda graph: graph.diff_html(before, after))

    def commits(self, branch: str = "main", **asked: Any) -> Answer:
        return self._answer(lambda graph: self._local(graph).commits(branch, wire.LogPart(**asked)))

    def commit(self, commit_id: str) -> Answer:
        return self._answer(lambda graph: wire.commit_to_json(graph.commit(commit_id)))

    def log(self, branch: str = "main", **asked: Any) -> Answer:
        return self._answer(lambda graph: self._local(graph).log(branch, wire.LogPart(**asked)))

    def history(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).history(type_name, entity_id, branch))

    def blame(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).blame(type_name, entity_id, branch))

    def bisect(self, source: str, good: str, bad: str = "main") -> Answer:
        return self._answer(lambda graph: self._local(graph).bisect(source, good=good, bad=bad))

    def explain(self, source: str, params: Any = None, *, analyze: bool = False) -> Answer:
        return self._answer(
            lambda graph: wire.explanation_to_json(
                graph.explain(source, params=params, analyze=analyze)
            )
        )

    def upkeep(self, kind: str, **options: Any) -> Answer:
        return self._answer(lambda graph: run_upkeep(graph, kind, options))

    def doctor(self) -> Answer:
        return self._answer(lambda graph: graph.doctor().to_json())

    def _local(self, graph: og.Graph) -> LocalGraph:
        return LocalGraph(graph, str(self.path))

    def _answer(self, call: Callable[[og.Graph], Any]) -> Answer:
        with og.open(self.path, durability="process") as graph:
            try:
                return Answer(call(graph))
            except OmnigraphError as error:
                text = error.render() if isinstance(error, SourceError) else str(error)
                return Answer(error=text, status=error.http_status)


def _log_flags(asked: Json) -> list[str]:
    """The flags of a log: some are called otherwise than the members of a request."""
    named = {"message": "grep"}
    flags = []
    for name, value in asked.items():
        more = [f"--{value}"] if name == "detail" else [f"--{named.get(name, name)}", str(value)]
        flags += more
    return flags


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The commands with --json, aimed by flags at a store or at a server."""

    address: tuple[str, ...]
    folder: Path

    def query(self, source: str, name: str | None = None, params: Any = None, **at: str) -> Answer:
        flags = [
            flag for key, value in at.items() for flag in (f"--{key.replace('_', '-')}", value)
        ]
        return self._answer("query", *self._asked(source, name, params), *flags)

    def mutate(
        self, source: str, name: str | None = None, params: Any = None, **how: str
    ) -> Answer:
        flags = [
            flag for key, value in how.items() for flag in (f"--{key.replace('_', '-')}", value)
        ]
        return self._answer("mutate", *self._asked(source, name, params), *flags)

    def load(self, text: str, mode: str, **how: str) -> Answer:
        data = self.folder / "data.jsonl"
        data.write_text(text, encoding="utf-8")
        named = {"base": "from", "branch": "branch"}
        flags = [flag for key, value in how.items() for flag in (f"--{named[key]}", value)]
        answer = self._answer("load", "--data", str(data), "--mode", mode, "--yes", *flags)
        if answer.error is None:
            return answer
        # A file is named by its path where the other surfaces are given a bare text.
        return Answer(error=answer.error.replace(f"{data}:", "data:"), details=answer.details)

    def export(self, branch: str = "main", types: list[str] | None = None) -> Answer:
        flags = [flag for each in types or [] for flag in ("--type", each)]
        outcome = run("export", "--branch", branch, *flags, *self.address)
        if outcome.code:
            return self._failure(outcome.code, outcome.err, outcome.out)
        return Answer([json.loads(line) for line in outcome.out.splitlines()])

    def snapshot(self, branch: str = "main") -> Answer:
        return self._answer("snapshot", "--branch", branch)

    def schema(self, branch: str | None = None) -> Answer:
        return self._answer("schema", "show", *([] if branch is None else ["--branch", branch]))

    def apply_schema(
        self, text: str, *, branch: str = "main", allow_data_loss: bool = False
    ) -> Answer:
        file = self.folder / "next.pg"
        file.write_text(text, encoding="utf-8")
        loss = ["--allow-data-loss"] if allow_data_loss else []
        options = ["--schema", str(file), "--branch", branch, *loss]
        return self._answer("schema", "apply", *options)

    def branches(self) -> Answer:
        return self._answer("branch", "list")

    def checks(self, branch: str = "main") -> Answer:
        return self._answer("checks", "list", "--branch", branch)

    def apply_checks(self, folder: Path, branch: str = "main") -> Answer:
        return self._answer("checks", "apply", str(folder), "--branch", branch)

    def run_checks(self, branch: str = "main") -> Answer:
        return self._answer("checks", "run", "--branch", branch)

    def tags(self) -> Answer:
        return self._answer("tag", "list")

    def create_tag(self, name: str, at: str = "main", message: str | None = None) -> Answer:
        said = [] if message is None else ["--message", message]
        return self._answer("tag", "create", name, "--at", at, *said)

    def delete_tag(self, name: str) -> Answer:
        return self._answer("tag", "delete", name, "--yes")

    def create_branch(self, name: str, source: str = "main") -> Answer:
        return self._answer("branch", "create", name, "--from", source)

    def delete_branch(self, name: str) -> Answer:
        return self._answer("branch", "delete", name, "--yes")

    def reset_branch(self, name: str, to: str, *, preview: bool = False) -> Answer:
        only = ["--preview"] if preview else ["--yes"]
        return self._answer("branch", "reset", name, to, *only)

    def merge(self, source: str, target: str = "main", *, delete: bool = False) -> Answer:
        gone = ["--delete-branch"] if delete else []
        return self._answer("branch", "merge", source, "--into", target, *gone)

    def preview_merge(self, source: str, target: str = "main", resolve: Any = None) -> Answer:
        choices = [] if resolve is None else ["--resolve", self._choices(resolve)]
        return self._answer("branch", "merge", source, "--into", target, "--preview", *choices)

    def merge_resolved(self, source: str, resolve: Any) -> Answer:
        return self._answer("branch", "merge", source, "--resolve", self._choices(resolve))

    def _choices(self, resolve: Any) -> str:
        if isinstance(resolve, str):
            return resolve
        file = self.folder / "choices.json"
        file.write_text(json.dumps(resolve), encoding="utf-8")
        return str(file)

    def open_request(self, source: str, title: str, reviewers: list[str]) -> Answer:
        named = [word for each in reviewers for word in ("--reviewer", each)]
        return self._answer("request", "open", source, "--title", title, *named)

    def requests(self, state: str = "open") -> Answer:
        return self._answer("request", "list", "--state", state)

    def request(self, number: int) -> Answer:
        return self._answer("request", "show", str(number), "--no-preview")

    def preview_request(self, number: int) -> Answer:
        answer = self._answer("request", "show", str(number))
        return answer if answer.error else Answer(answer.json["preview"])

    def edit_request(self, number: int, **changed: str) -> Answer:
        flags = [word for name, each in changed.items() for word in (f"--{name}", each)]
        return self._answer("request", "edit", str(number), *flags)

    def say_on_request(self, number: int, verb: RequestVerb, **said: str) -> Answer:
        words = {"comments": "comment", "approvals": "approve", "changes-requested": "reject"}
        given = [said.pop("text")] if verb is RequestVerb.COMMENT else []
        flags = [word for name, each in said.items() for word in (f"--{name}", each)]
        name = words.get(verb.value, verb.value)
        return self._answer("request", name, str(number), *given, *flags)

    def withdraw_verdict(self, number: int) -> Answer:
        return self._answer("request", "withdraw", str(number))

    def merge_request(self, number: int, *, delete: bool = False) -> Answer:
        flags = ["--delete-branch"] if delete else []
        return self._answer("request", "merge", str(number), *flags)

    def undo(self, asked: UndoCall, message: str | None = None) -> Answer:
        said = [] if message is None else ["-m", message]
        return self._answer(asked.verb, *self._undo_flags(asked), *said)

    def preview_undo(self, asked: UndoCall) -> Answer:
        return self._answer(asked.verb, *self._undo_flags(asked), "--preview")

    def _undo_flags(self, asked: UndoCall) -> list[str]:
        match asked:
            case RevertCall():
                chosen = {"actor": asked.actor, "session": asked.session, "since": asked.since}
                named = {**chosen, "branch": asked.branch, "resolve": asked.resolve}
                first = list(asked.commits)
            case PickCall():
                named = {"into": asked.branch, "resolve": asked.resolve}
                first = list(asked.commits)
            case RestoreCall():
                named = {"from": asked.revision, "branch": asked.branch}
                first = [flag for each in asked.types or () for flag in ("--type", each)]
                first += [flag for each in asked.ids or () for flag in ("--id", each)]
        given = {name: each for name, each in named.items() if each is not None}
        return [*first, *(flag for name, each in given.items() for flag in (f"--{name}", each))]

    def diff(self, before: str, after: str = "main", types: list[str] | None = None) -> Answer:
        flags = [flag for each in types or [] for flag in ("--type", each)]
        return self._answer("branch", "diff", before, after, *flags)

    def diff_lines(self, before: str, after: str = "main") -> Answer:
        outcome = run("branch", "diff", before, after, "--jsonl", *self.address)
        if outcome.code:
            return self._failure(outcome.code, outcome.err, outcome.out)
        return Answer([json.loads(line) for line in outcome.out.splitlines()])

    def diff_html(self, before: str, after: str = "main") -> Answer:
        page = self.folder / "diff.html"
        outcome = run("branch", "diff", before, after, "--html", str(page), *self.address)
        if outcome.code:
            return self._failure(outcome.code, outcome.err, outcome.out)
        return Answer(page.read_text(encoding="utf-8"))

    def commits(self, branch: str = "main", **asked: Any) -> Answer:
        return self._answer("commit", "list", "--branch", branch, *_log_flags(asked))

    def commit(self, commit_id: str) -> Answer:
        return self._answer("commit", "show", commit_id)

    def log(self, branch: str = "main", **asked: Any) -> Answer:
        return self._answer("log", "--branch", branch, *_log_flags(asked))

    def history(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        return self._answer("history", type_name, entity_id, "--branch", branch)

    def blame(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        return self._answer("blame", type_name, entity_id, "--branch", branch)

    def bisect(self, source: str, good: str, bad: str = "main") -> Answer:
        file = self.folder / "wrong.gq"
        file.write_text(source, encoding="utf-8")
        return self._answer("bisect", "--assert", str(file), "--good", good, "--bad", bad)

    def explain(self, source: str, params: Any = None, *, analyze: bool = False) -> Answer:
        flags = ["--analyze"] if analyze else []
        return self._answer("explain", *self._asked(source, None, params), *flags)

    def upkeep(self, kind: str, **options: Any) -> Answer:
        words = ["index", "ensure"] if kind == "ensure_indices" else [kind]
        flags = []
        for name, value in options.items():
            flag = f"--{name.replace('_', '-')}"
            flags += ([flag] if value else []) if isinstance(value, bool) else [flag, str(value)]
        return self._answer(*words, *flags, *(["--yes"] if kind == "cleanup" else []))

    def doctor(self) -> Answer:
        return self._answer("doctor")

    @staticmethod
    def _asked(source: str, name: str | None, params: Any) -> list[str]:
        given = ["--params", json.dumps(params)] if params is not None else []
        return [*([name] if name is not None else []), "-e", source, *given]

    def _answer(self, *arguments: str) -> Answer:
        outcome = run(*arguments, "--json", *self.address)
        if outcome.code:
            return self._failure(outcome.code, outcome.err, outcome.out)
        return Answer(json.loads(outcome.out))

    @staticmethod
    def _failure(code: int, err: str, out: str) -> Answer:
        details = json.loads(out) if out else {}
        assert code == (4 if "precondition_failure" in details else 1), err
        return Answer(error=err.partition("error: ")[2].rstrip("\n"), details=details)


@dataclass(frozen=True, slots=True)
class Http:
    """Plain requests."""

    url: str

    def query(self, source: str, name: str | None = None, params: Any = None, **at: str) -> Answer:
        return self._post("/query", query=source, name=name, params=params, **at)

    def mutate(
        self, source: str, name: str | None = None, params: Any = None, **how: str
    ) -> Answer:
        if_commit = how.pop("if_commit", None)
        body: Json = {"query": source, "name": name, "params": params, **how}
        if "meta" in body:
            body["metadata"] = parse_metadata([body.pop("meta")])
        if if_commit is None:
            return self._post("/mutate", **body)
        headers = {"Omnigraph-If-Graph-Commit": if_commit}
        return self._send("POST", "/mutate/if-graph-commit", json=body, headers=headers)

    def load(self, text: str, mode: str, **how: str) -> Answer:
        base = how.pop("base", None)
        return self._post("/load", data=text, mode=mode, **how, **({"from": base} if base else {}))

    def export(self, branch: str = "main", types: list[str] | None = None) -> Answer:
        body = {"branch": branch, "type_names": types or []}
        response = httpx.post(f"{self.url}/export", json=body, timeout=60, verify=False)
        if response.is_success:
            return Answer([json.loads(line) for line in response.text.splitlines()])
        return self._answer(response)

    def snapshot(self, branch: str = "main") -> Answer:
        return self._send("GET", "/snapshot", params={"branch": branch})

    def schema(self, branch: str | None = None) -> Answer:
        return self._send("GET", "/schema" if branch is None else f"/schema?branch={branch}")

    def apply_schema(
        self, text: str, *, branch: str = "main", allow_data_loss: bool = False
    ) -> Answer:
        facts = {"branch": branch, "allow_data_loss": allow_data_loss}
        return self._post("/schema/apply", schema_source=text, **facts)

    def branches(self) -> Answer:
        return self._send("GET", "/branches")

    def checks(self, branch: str = "main") -> Answer:
        return self._send("GET", f"/checks?branch={branch}")

    def apply_checks(self, folder: Path, branch: str = "main") -> Answer:
        wanted = [each.to_json() for each in read_checks([folder])]
        return self._post("/checks", checks=wanted, branch=branch)

    def run_checks(self, branch: str = "main") -> Answer:
        return self._send("GET", f"/checks/run?branch={branch}")

    def tags(self) -> Answer:
        return self._send("GET", "/tags")

    def create_tag(self, name: str, at: str = "main", message: str | None = None) -> Answer:
        return self._post("/tags", name=name, at=at, message=message)

    def delete_tag(self, name: str) -> Answer:
        return self._send("DELETE", f"/tags/{name.replace('/', '%2F')}")

    def create_branch(self, name: str, source: str = "main") -> Answer:
        return self._post("/branches", name=name, **{"from": source})

    def delete_branch(self, name: str) -> Answer:
        return self._send("DELETE", f"/branches/{name.replace('/', '%2F')}")

    def reset_branch(self, name: str, to: str, *, preview: bool = False) -> Answer:
        return self._post("/branches/reset", branch=name, to=to, preview=preview)

    def merge(self, source: str, target: str = "main", *, delete: bool = False) -> Answer:
        return self._post("/branches/merge", source=source, target=target, delete_branch=delete)

    def preview_merge(self, source: str, target: str = "main", resolve: Any = None) -> Answer:
        body = {"source": source, "target": target, "resolve": resolve}
        own_path = self._post("/branches/merge/preview", **body)
        as_member = self._post("/branches/merge", **body, preview=True)
        assert as_member == own_path
        return own_path

    def merge_resolved(self, source: str, resolve: Any) -> Answer:
        return self._post("/branches/merge", source=source, resolve=resolve)

    def open_request(self, source: str, title: str, reviewers: list[str]) -> Answer:
        return self._post("/merge-requests", source=source, title=title, reviewers=reviewers)

    def requests(self, state: str = "open") -> Answer:
        return self._send("GET", f"/merge-requests?state={state}")

    def request(self, number: int) -> Answer:
        return self._send("GET", f"/merge-requests/{number}")

    def preview_request(self, number: int) -> Answer:
        return self._send("GET", f"/merge-requests/{number}/preview")

    def edit_request(self, number: int, **changed: str) -> Answer:
        return self._send("PATCH", f"/merge-requests/{number}", json=changed)

    def say_on_request(self, number: int, verb: RequestVerb, **said: str) -> Answer:
        return self._post(f"/merge-requests/{number}/{verb.value}", **said)

    def withdraw_verdict(self, number: int) -> Answer:
        return self._send("DELETE", f"/merge-requests/{number}/approvals")

    def merge_request(self, number: int, *, delete: bool = False) -> Answer:
        return self._post(f"/merge-requests/{number}/merge", delete_branch=delete)

    def undo(self, asked: UndoCall, message: str | None = None) -> Answer:
        return self._post(asked.path, **asked.to_json(), message=message)

    def preview_undo(self, asked: UndoCall) -> Answer:
        return self._post(f"{asked.path}/preview", **asked.to_json())

    def diff(self, before: str, after: str = "main", types: list[str] | None = None) -> Answer:
        params = {"from": before, "to": after, "type": types or []}
        return self._send("GET", "/diff", params=params)

    def diff_lines(self, before: str, after: str = "main") -> Answer:
        response = self._diff(before, after, "jsonl")
        if response.is_success:
            return Answer([json.loads(line) for line in response.text.splitlines()])
        return self._answer(response)

    def diff_html(self, before: str, after: str = "main") -> Answer:
        response = self._diff(before, after, "html")
        return Answer(response.text) if response.is_success else self._answer(response)

    def _diff(self, before: str, after: str, form: str) -> httpx.Response:
        params = {"from": before, "to": after, "format": form}
        return httpx.get(f"{self.url}/diff", params=params, timeout=60, verify=False)

    def commits(self, branch: str = "main", **asked: Any) -> Answer:
        return self._send("GET", "/commits", params={"branch": branch, **asked})

    def commit(self, commit_id: str) -> Answer:
        return self._send("GET", f"/commits/{commit_id}")

    def log(self, branch: str = "main", **asked: Any) -> Answer:
        return self._send("GET", "/log", params={"branch": branch, **asked})

    def history(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        params = {"type": type_name, "id": entity_id, "branch": branch}
        return self._send("GET", "/history", params=params)

    def blame(self, type_name: str, entity_id: str, branch: str = "main") -> Answer:
        params = {"type": type_name, "id": entity_id, "branch": branch}
        return self._send("GET", "/blame", params=params)

    def bisect(self, source: str, good: str, bad: str = "main") -> Answer:
        return self._post("/bisect", query=source, good=good, bad=bad)

    def explain(self, source: str, params: Any = None, *, analyze: bool = False) -> Answer:
        return self._post("/explain", query=source, params=params, analyze=analyze)

    def upkeep(self, kind: str, **options: Any) -> Answer:
        answer = self._post("/jobs", kind=kind, **options)
        while answer.error is None and answer.json["state"] in ("queued", "running"):
            time.sleep(0.01)
            answer = self._send("GET", f"/jobs/{answer.json['job_id']}")
        if answer.error is None and answer.json["state"] == "succeeded":
            return Answer(answer.json["report"])
        if answer.error is None:
            return Answer(error=answer.json["error"]["error"], details=answer.json)
        return answer

    def doctor(self) -> Answer:
        return self._send("GET", "/doctor")

    def _post(self, path: str, **body: Any) -> Answer:
        return self._send("POST", path, json=body)

    def _send(self, method: str, path: str, **options: Any) -> Answer:
        url = f"{self.url}{path}"
        # Nothing is encrypted: reading certificates would take longer than most requests.
        return self._answer(httpx.request(method, url, timeout=60, verify=False, **options))

    @staticmethod
    def _answer(response: httpx.Response) -> Answer:
        body = response.json()
        if response.is_success:
            return Answer(body)
        return Answer(error=body["error"], status=response.status_code, details=body)
