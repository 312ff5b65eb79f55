"""Run one refused read after the other in a process of its own, and say what each cost in memory.

Prints a line of JSON for each: its name, the error, its text, and how far memory rose meanwhile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import OmnigraphError

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  vec: Vector(3)? @index  bio: String? }
node Town { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> Town
"""
PEOPLE = 3_000


def build(path: Path) -> og.Graph:
    """Large enough that a product of three people does not fit in any memory."""
    graph = og.init(path, schema=SCHEMA, durability="process", self_care=False)
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": f"p{n}", "age": n % 90, "vec": [n, 1, 2], "bio": "x y"}}
        for n in range(PEOPLE)
    ]
    records += [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(PEOPLE - 1)]
    graph.load(records, mode="overwrite")
    graph.create_branch("gone")
    graph.delete_branch("gone")
    return graph


def refused(graph: og.Graph) -> dict[str, Callable[[], object]]:
    """What has to be refused, by name."""

    def ask(body: str, declared: str = "", **rest: Any) -> Callable[[], object]:
        params = rest.pop("params", None)
        text = f"query q({declared}) {{ {body} }}"
        return lambda: graph.query(text, params=params, **rest).rows()

    names = "match { $p: Person } return { $p.name }"
    by_name = "match { $p: Person { name: $v } } return { $p.name }"
    near = "match { $p: Person } return { $p.name } order { nearest($p.vec, $v) } limit 3"
    vector = "$v: Vector(3)"
    return {
        "missing param": ask(by_name, "$v: String"),
        "param of another type": ask(by_name, "$v: String", params={"v": 7}),
        "null param": ask(by_name, "$v: String", params={"v": None}),
        "params that are no object": ask(by_name, "$v: String", params=[("v", "x")]),
        "object param": ask(by_name, "$v: String", params={"v": {"$ne": None}}),
        "undeclared param": ask(by_name),
        "huge integer": ask(
            "match { $p: Person $p.age = $v } return { $p.name }",
            "$v: I64",
            params={"v": 10**400},
        ),
        "malformed date": ask(
            "match { $p: Person $p.born = $v } return { $p.name }",
            "$v: Date",
            params={"v": "2020-02-31"},
        ),
        "limit of 2^63": ask(f"{names} limit 9223372036854775808"),
        "limit of 2^64": ask(f"{names} limit 18446744073709551616"),
        "negative limit": ask(f"{names} limit -1"),
        "hops over the cap": ask(
            "match { $p: Person $p knows{1,4294967296} $o } return { $p.name }"
        ),
        "hops beyond every number": ask(
            f"match {{ $p: Person $p knows{{1,{10**30}}} $o }} return {{ $p.name }}"
        ),
        "hops backwards": ask("match { $p: Person $p knows{3,1} $o } return { $p.name }"),
        "short vector": ask(near, vector, params={"v": [1.0, 2.0]}),
        "long vector": ask(near, vector, params={"v": [1.0] * 100_000}),
        "vector with text": ask(near, vector, params={"v": [1.0, "x", 2.0]}),
        "vector with nan": ask(near, vector, params={"v": [1.0, float("nan"), 2.0]}),
        "vector beyond F32": ask(near, vector, params={"v": [1e300, 0.0, 0.0]}),
        "vector of another width": ask(near, "$v: Vector(4)", params={"v": [1.0] * 4}),
        "nearest without a limit": ask(near.removesuffix("limit 3"), vector, params={"v": [1] * 3}),
        "dropped branch": ask(names, branch="gone"),
        "branch that never was": ask(names, branch="never"),
        "no branch name": ask(names, branch="../../etc"),
        "commit that never was": ask(names, commit="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        "commit that is no id": ask(names, commit="'; DROP TABLE x; --"),
        "version that never was": ask(names, version=10**9),
        "version before the first": ask(names, version=-1),
        "version beyond every number": ask(names, version=2**70),
        "two selections": ask(names, version=1, commit="x"),
        "time before the first": ask(names, at="1970-01-01T00:00:00Z"),
        "malformed time": ask(names, at="yesterday"),
        "type that never existed": ask("match { $p: Persona } return { $p.name }"),
        "edge that never existed": ask("match { $p: Person $p likes $o } return { $o.name }"),
        "property that never existed": ask("match { $p: Person } return { $p.nmae }"),
        "scan of no type": lambda: graph.nodes("Persona"),
        "query that is not there": lambda: graph.query(f"query q() {{ {names} }}", "other"),
        "two queries and no name": lambda: graph.query(
            f"query a() {{ {names} }} query b() {{ {names} }}"
        ),
        "no query": lambda: graph.query(""),
        "half a query": ask("match { $p: Person { name: $v "),
        "a mutation": ask('insert Person { name: "x" }'),
        "file that is not there": lambda: graph.query("nowhere.gq"),
        "deep nesting": ask(
            "match { $p: Person " + "not { " * 5_000 + "}" * 5_000 + " } return { 1 }"
        ),
        "a product of everything": ask(
            "match { $a: Person $b: Person $c: Person } return { $a.name, $b.name, $c.name }"
        ),
        "more matches than can be counted": ask(
            "match { "
            + " ".join(f"$v{n}: Person" for n in range(20))
            + " } return { count($v0) as n }"
        ),
        "negative edits": ask('match { $p: Person fuzzy($p.bio, "x", -1) } return { $p.name }'),
        "k of nothing": ask(
            "match { $p: Person } return { $p.name } "
            'order { rrf(nearest($p.vec, $v), bm25($p.bio, "x"), 0) } limit 3',
            vector,
            params={"v": [1.0, 2.0, 3.0]},
        ),
        "an engine that never was": ask(names, engine="abacus"),
    }


def peak_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main(folder: str) -> None:
    graph = build(Path(folder) / "graph")
    graph.query("query q() { match { $p: Person $p knows $o } return { $p.name } limit 5 }")
    for name, act in refused(graph).items():
        before = peak_kib()
        kind, text = "nothing", ""
        try:
            act()
        except OmnigraphError as error:
            kind, text = type(error).__name__, str(error)
        except BaseException as error:  # whatever it is, it is not one of ours
            kind, text = f"raw {type(error).__name__}", str(error)
        risen = (peak_kib() - before) / 1_024
        print(json.dumps({"name": name, "kind": kind, "text": text, "mib": risen}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
