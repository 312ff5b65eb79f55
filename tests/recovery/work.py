"""The work that crash cells run: a graph of ten tables, its writers, and looking at it.

Every function takes and returns JSON, so that it can run in a process of its own.

    tables   insert                      update                delete
    1        Person                      Person                City
    2        + Knows                     + Firm                Person, Knows
    5        + Firm, City, WorksAt       + City, Team, Tag     + WorksAt, Firm, City
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import GraphExists, GraphNotFound
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph import Graph
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.manifest.checks import Check
from omnigraph.testing.inside import inside
from omnigraph.testing.together import run_together
from omnigraph.write.fork import open_pin
from tests.ready import copy_ready

SCHEMA = """
node Person { name: String @key  age: I32? }
node Firm { name: String @key  size: I32? }
node City { name: String @key  size: I32? }
node Team { name: String @key  size: I32? }
node Tag { name: String @key  size: I32? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm @card(0..1)
"""

BRANCH = "review/x"

MESSAGE, METADATA = "why it was written", {"ticket": "T-1"}
NOTED: dict[str, Any] = {"actor": "worker", "message": MESSAGE, "metadata": METADATA}
"""Who writes, and why."""

SEED = """
query seed() {
    insert Person { name: "ann", age: 1 }
    insert Person { name: "bob", age: 2 }
    insert Person { name: "cy", age: 3 }
    insert Firm { name: "firm", size: 1 }
    insert City { name: "city", size: 1 }
    insert Team { name: "team", size: 1 }
    insert Tag { name: "tag", size: 1 }
    insert Knows { from: "ann", to: "bob" }
    insert Knows { from: "cy", to: "ann" }
    insert WorksAt { from: "cy", to: "firm" }
}
"""

INSERTS = {
    1: 'insert Person { name: "new", age: 9 }',
    2: 'insert Person { name: "new", age: 9 } insert Knows { from: "new", to: "ann" }',
    5: """
        insert Person { name: "new", age: 9 }
        insert Firm { name: "new" }
        insert City { name: "new" }
        insert Knows { from: "new", to: "ann" }
        insert WorksAt { from: "new", to: "new" }
    """,
}

UPDATES = {
    count: " ".join(
        f"update {name} set {{ {'age' if name == 'Person' else 'size'}: 77 }} "
        f'where name != "nobody"'
        for name in ["Person", "Firm", "City", "Team", "Tag"][:count]
    )
    for count in (1, 2, 5)
}

DELETES = {
    1: 'delete City where name = "city"',
    2: 'delete Person where name = "bob"',
    5: """
        delete Person where name = "cy"
        delete City where name = "city"
        delete Firm where name = "firm"
    """,
}

STATEMENTS = {
    "match update": """
        match { $p $k:knows $q }
        update $q set { age: coalesce($q.age, 0) + 10 }
        update $k set { since: 7 }
    """,
    "edge delete": """
        match { $p: Person { name: "cy" }  $p $k:knows $_  $p $w:worksAt $_ }
        delete $k
        delete $w
    """,
    "for upsert": """
        for $r in $rows {
            upsert Person { name: $r.name, age: 5 }
            upsert Knows { from: $r.name, to: "ann", since: 5 }
        }
    """,
}
"""Statements that run over rows; each changes two tables."""

NEXT = """
query next($name: String) {
    insert Person { name: $name }
    insert Firm { name: $name }
    insert City { name: $name }
    insert Team { name: $name }
    insert Tag { name: $name }
    insert Knows { from: $name, to: $name }
    insert WorksAt { from: $name, to: $name }
}
"""


def records(count: int, *, keep: bool) -> list[dict[str, Any]]:
    """Rows for a load into `count` tables; with `keep` also those that other tables name."""
    people = ["ann", "bob", "cy"] if keep else []
    nodes = {
        1: {"City": ["new"]},
        2: {"Person": [*people, "new"]},
        5: {
            "Person": [*people, "new"],
            "Firm": ["firm", "new"] if keep else ["new"],
            "City": ["new"],
        },
    }[count]
    found: list[dict[str, Any]] = [
        {"type": name, "data": {"name": each}} for name, names in nodes.items() for each in names
    ]
    if count >= 2:
        found.append(
            {"edge": "Knows", "from": "new", "to": "new" if not keep else "ann", "data": {}}
        )
    if count == 5:
        found.append({"edge": "WorksAt", "from": "new", "to": "new", "data": {}})
    return found


def _mutation(statements: dict[int, str]) -> Callable[[Graph, int], None]:
    def write(graph: Graph, count: int) -> None:
        graph.mutate(f"query q() {{ {statements[count]} }}", **NOTED)

    return write


def _on_branch(graph: Graph, count: int) -> None:
    graph.mutate(f"query q() {{ {INSERTS[count]} }}", branch=BRANCH, **NOTED)


def _load(mode: str) -> Callable[[Graph, int], None]:
    def write(graph: Graph, count: int) -> None:
        graph.load(records(count, keep=mode == "overwrite"), mode=mode, **NOTED)

    return write


def _conditional(graph: Graph, count: int) -> None:
    head = graph.snapshot().head.commit_id
    graph.mutate(f"query q() {{ {INSERTS[count]} }}", **NOTED, if_commit=head)


def _group(graph: Graph, count: int) -> None:
    """Inserts of as many callers at once, each with an edge to the node of the one before."""
    insert = """
    query q($name: String, $before: String) {
        insert Person { name: $name, age: 9 }
        insert Knows { from: $name, to: $before }
    }
    """
    names = ["ann", *(f"new{number}" for number in range(count))]
    calls = [
        partial(graph.mutate, insert, "q", {"name": name, "before": before}, **NOTED)
        for before, name in pairwise(names)
    ]
    for outcome in run_together(graph, calls):
        if isinstance(outcome, Exception):
            raise outcome


def _statements(name: str) -> Callable[[Graph, int], None]:
    rows = [{"name": "cy"}, {"name": "new"}]
    source = f"query q($rows: [{{ name: String }}]?) {{ {STATEMENTS[name]} }}"
    return lambda graph, _: (graph.mutate(source, params={"rows": rows}, **NOTED), None)[1]


WRITERS: dict[str, Callable[[Graph, int], None]] = {
    **{name: _statements(name) for name in STATEMENTS},
    "group": _group,
    "insert": _mutation(INSERTS),
    "update": _mutation(UPDATES),
    "delete": _mutation(DELETES),
    "load append": _load("append"),
    "load merge": _load("merge"),
    "load overwrite": _load("overwrite"),
    "conditional": _conditional,
    "branch insert": _on_branch,
    "branch create": lambda graph, _: (graph.create_branch("made"), None)[1],
    "branch delete": lambda graph, _: graph.delete_branch(BRANCH),
    "branch reset": lambda graph, _: (graph.reset_branch(BRANCH, f"{BRANCH}~1"), None)[1],
    "compaction": lambda graph, _: _on_small_pieces(graph),
}


def _on_small_pieces(graph: Graph) -> None:
    graph.mutate('query q() { insert Tag { name: "new" } }', **NOTED)
    inside(graph).wait_for_self_care()


# Building


def build(path: str, kind: str) -> None:
    """Make the graph that a cell starts from."""
    shutil.rmtree(path, ignore_errors=True)
    _add_branches((_build_fragments if kind == "fragments" else _build_plain)(Path(path)), kind)


def build_by_copy(path: str, kind: str) -> None:
    """The same from a copy, for tests that build many graphs in one process."""
    shutil.rmtree(path, ignore_errors=True)
    if kind == "fragments":
        copy_ready("recovery fragments", _build_fragments, Path(path))
    else:
        copy_ready("recovery plain", _build_plain, Path(path))
    _add_branches(open_graph(path, self_care=False), kind)


def _build_plain(path: Path) -> Graph:
    graph = og.init(path, schema=SCHEMA, durability="process", self_care=False)
    graph.mutate(SEED)
    return graph


def _build_fragments(path: Path) -> Graph:
    """The 32nd version of a table of small fragments is the one that self-care checks."""
    graph = _build_plain(path)
    for number in range(29):
        graph.mutate("query q($n: String) { insert Tag { name: $n } }", params={"n": f"t{number}"})
    return graph


def _add_branches(graph: Graph, kind: str) -> None:
    if kind == "checked":
        query = "query none() { match { $p: Person $p.age = 1000 } return { $p.name } }"
        graph.apply_checks([Check("none", query, every_commit=True)])
    if kind.startswith(("branch", "forked", "twice")):
        graph.create_branch(BRANCH)
    if kind.startswith(("forked", "twice")):
        count = int(kind[-1]) if kind[-1].isdecimal() else 5
        insert = f"query q() {{ {INSERTS[count]} }}"
        graph.mutate(insert.replace('"new"', '"old"'), branch=BRANCH)
        if kind.startswith("twice"):
            graph.mutate(insert, branch=BRANCH)


def open_graph(path: str, **options: Any) -> Graph:
    return og.open(path, **{"durability": "process", **options})


# Writing


def write(path: str, writer: str, count: int, arm: str = "", acked: str = "") -> str:
    """Acknowledge one write, then start another one with a point armed."""
    graph = _acknowledge(path, acked)
    failpoints.arm_from_environment(arm)
    if writer:
        WRITERS[writer](graph, count)
    return "acknowledged"


def _acknowledge(path: str, name: str) -> Graph:
    graph = open_graph(path)
    if name:
        graph.mutate("query q($n: String) { insert Team { name: $n } }", params={"n": name})
    return graph


def orphan(path: str, count: int, acked: str = "") -> str:
    """A write on a branch fails half-way, and then the branch is deleted."""
    graph = _acknowledge(path, acked)
    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}), suppress(FailpointError):
        _on_branch(graph, count)
    graph.delete_branch(BRANCH)
    return "deleted"


def init(path: str, count: int, arm: str = "") -> str:
    types = ["node Person { name: String @key }", "edge Knows: Person -> Person"]
    types += [f"node Extra{number} {{ name: String @key }}" for number in range(3)]
    failpoints.arm_from_environment(arm)
    og.init(path, schema="\n".join(types[:count]), durability="process")
    return "acknowledged"


def try_init(path: str, count: int) -> dict[str, str]:
    """What one meets where an init died: a whole graph, or none and a way to make it."""
    try:
        with open_graph(path) as graph:
            kinds = sorted(graph.snapshot().entries)
            return {"state": "whole", "tables": ",".join(kinds), "verify": _verify(graph)}
    except GraphNotFound:
        pass
    try:
        init(path, count)
    except GraphExists as error:
        shutil.rmtree(path)
        init(path, count)
        return {"state": "partial", "advice": error.message}
    return {"state": "none"}


def recover(path: str, arm: str = "") -> str:
    """Open read-write, which recovers, with a point armed."""
    failpoints.arm_from_environment(arm)
    open_graph(path)
    return "opened"


def heal(path: str, count: int, entry: str, arm: str = "", acked: str = "") -> str:
    """A writer of this process fails before its publish; the same handle then heals."""
    graph = _acknowledge(path, acked)
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    with arm_failpoints({point: "raise"}), suppress(FailpointError):
        WRITERS["insert"](graph, count)
    failpoints.arm_from_environment(arm)
    if entry == "refresh":
        graph.refresh()
    else:
        graph.mutate('query q() { insert Team { name: "healed" } }')
    return "healed"


# Looking


def rows_of(graph: Graph) -> dict[str, dict[str, list[str]]]:
    """Branch → table key → its rows as sorted text; minted ids are left out."""
    tables = inside(graph).store.tables
    found: dict[str, dict[str, list[str]]] = {}
    for branch in graph.branches():
        found[branch] = {}
        for key, entry in graph.snapshot(branch).entries.items():
            rows = tables.reads.scan(open_pin(tables, entry)).to_pylist()
            for row in rows:
                if key.startswith("edge:"):
                    del row["id"]
            found[branch][key] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return found


def standing_of(graph: Graph) -> dict[str, Any]:
    """Every version and record that a recovery could move."""
    tables = inside(graph).store.tables
    pins, heads, manifests = {}, {}, {}
    for branch in graph.branches():
        snapshot = graph.snapshot(branch)
        manifests[branch] = snapshot.manifest_version
        for key, entry in snapshot.entries.items():
            if not owns_lineage(branch, entry.table_branch):
                continue  # shared with the branch that owns it
            place = f"{branch} {key}"
            pins[place] = entry.version
            lineage = tables.root.table(entry.table_path, entry.table_branch)
            heads[place] = tables.head_version(lineage)
    folder = Path(graph.uri) / "__recovery"
    return {
        "pins": pins,
        "heads": heads,
        "manifests": manifests,
        "sidecars": sorted(each.name for each in folder.glob("*.json")),
        "audit": [
            {
                "operation": each.operation_id,
                "kind": each.kind.value,
                "for": each.for_actor,
                "writer": each.writer_kind,
                "commit": each.commit_id,
                "outcomes": [[o.table_key, o.from_version, o.to_version] for o in each.outcomes],
            }
            for each in graph.recoveries()
        ],
        "commits": {
            branch: [commit.commit_id for commit in graph.commits(branch)]
            for branch in graph.branches()
        },
    }


def history_of(graph: Graph) -> list[dict[str, int]]:
    """How many rows each state of main has that a commit shows, the oldest first."""
    coordinator, found = inside(graph).coordinator, list[dict[str, int]]()
    tables = inside(graph).store.tables
    for commit in reversed(graph.commits()):
        entries = coordinator.commit_states.get(commit).entries
        counts = {key: open_pin(tables, entry).row_count for key, entry in entries.items()}
        assert counts == {key: entry.row_count for key, entry in entries.items()}
        if not found or found[-1] != counts:  # recovery commits change no rows
            found.append(counts)
    return found


def list_unexplained(graph: Graph) -> list[str]:
    """The commits of the writer that lost their message or metadata."""
    return [
        commit.commit_id
        for branch in graph.branches()
        for commit in graph.commits(branch)
        if commit.actor == "worker"
        and (commit.message, dict(commit.metadata)) != (MESSAGE, METADATA)
    ]


def _verify(graph: Graph) -> str:
    return "\n".join(str(finding) for finding in graph.verify().errors)


def look(path: str) -> dict[str, Any]:
    """The rows of a graph, read only."""
    return rows_of(open_graph(path, mode="r"))


def look_back(path: str) -> list[dict[str, int]]:
    """How many rows each state of main had, read only."""
    return history_of(open_graph(path, mode="r"))


def inspect(path: str) -> dict[str, Any]:
    """Reopen twice, look, verify, and write again: everything a cell is judged by."""
    graph = open_graph(path)
    rows, first, verified = rows_of(graph), standing_of(graph), _verify(graph)
    unexplained = list_unexplained(graph)
    again = open_graph(path)
    second, errors = standing_of(again), {}
    for branch in [each for each in graph.branches() if each in ("main", BRANCH)]:
        try:
            again.mutate(NEXT, params={"name": f"next {branch}"}, branch=branch)
        except og.errors.OmnigraphError as error:
            errors[branch] = f"{type(error).__name__}: {error}"
    last = _verify(open_graph(path, mode="r"))
    return {
        "rows": rows,
        "first": first,
        "unexplained": unexplained,
        "second": second,
        "verify": verified,
        "next write": errors,
        "verify after": last,
    }
