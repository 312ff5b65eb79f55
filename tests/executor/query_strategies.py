"""Random schemas, small graphs and well-typed reads over them, as text and records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

_T = TypeVar("_T")

TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "é",
    "Straße ᾳ İ",
    "it's",
    'say "x"',
    "%",
    "`",
    "\\",
    "-- x",
    "Z",
    "a' OR '1'='1",
]
INTEGERS = [-3, 0, 1, 2, 7]
LARGE = [-(2**62), 2**53, 2**53 + 1, 2**62, 1]
FLOATS = [-0.5, 0.0, 0.1, 0.25, 2.0, 7.5]
DATES = ["1969-12-31", "2020-05-01", "2020-05-02"]
INSTANTS = ["1969-12-31T23:59:59.999Z", "2020-05-01T00:00:00Z", "2020-05-01T10:00:00.5+01:00"]
VARIANTS = ["x", "y-z", "date"]

PROPERTIES: dict[str, tuple[str, list[Any]]] = {
    "text": ("String", TEXTS),
    "order": ("String", TEXTS),
    "small": ("I32", INTEGERS),
    "count": ("I64", INTEGERS),
    "large": ("I64", LARGE),
    "plus": ("U32", [0, 1, 2, 7]),
    "single": ("F32", FLOATS),
    "double": ("F64", FLOATS),
    "flag": ("Bool", [True, False]),
    "kind": ("enum(x, y-z, date)", VARIANTS),
    "date": ("Date", DATES),
    "seen": ("DateTime", INSTANTS),
    "texts": ("[String]", [[], ["a"], ["a", "b"], ["it's"]]),
    "singles": ("[F32]", [[], [0.1], [2.0, 7.5]]),
}
"""Property name → its type and the values it is given; few, so that they meet."""

SHARED = "Shared"
RANKED = "spot: Vector(2)? words: String? @index"
_SPOTS = [[0.0, 0.0], [1.0, 0.5], [-2.0, 0.25], [1.0, 0.75]]
_WORDS = ["", "red", "blue", "red blue", "red red green", "green blue red"]
NUMBERS = ("small", "count", "large", "plus", "single", "double")
SUMMABLE = ("small", "count", "plus", "single", "double")


class Draw:
    """Short words for drawing one thing after the other."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw

    def one(self, choices: list[_T] | tuple[_T, ...]) -> _T:
        return self._draw(st.sampled_from(choices))

    def some(self, choices: list[_T], most: int) -> list[_T]:
        if not choices:
            return []
        return self._draw(st.lists(st.sampled_from(choices), max_size=most, unique_by=repr))

    def whole(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def chance(self, percent: int) -> bool:
        # The simplest draw is 0 and leaves out: else the simplest read has every clause.
        return self._draw(st.integers(0, 99)) >= 100 - percent


@dataclass
class Schema:
    """Property names of each type; the ends of each edge; what an interface of both types has.

    Nodes of both types may have the same key.
    """

    nodes: dict[str, list[str]]
    edges: dict[str, tuple[str, str, list[str]]]
    shared: list[str] = field(default_factory=list)
    ranked: list[str] = field(default_factory=list)
    """The types whose nodes have a vector and a text to rank by."""

    def text(self) -> str:
        lines = [
            f"interface {SHARED} {{ key: String @key {_declare(self.shared)} }}",
            *(
                f"node {name} implements {SHARED} "
                f"{{ {_declare(properties, self.shared)} {RANKED if name in self.ranked else ''} }}"
                for name, properties in self.nodes.items()
            ),
        ] + [
            f"edge {name}: {source} -> {target} {{ {_declare(properties)} }}"
            for name, (source, target, properties) in self.edges.items()
        ]
        return "\n".join(lines)


def _declare(properties: list[str], inherited: list[str] | None = None) -> str:
    own = [name for name in properties if name not in (inherited or ())]
    return " ".join(f"{name}: {PROPERTIES[name][0]}?" for name in own)


def draw_schema(draw: Draw) -> Schema:
    shared = draw.some(list(PROPERTIES), 2)
    nodes = {
        name: list(dict.fromkeys([*draw.some(list(PROPERTIES), 5), *shared]))
        for name in ["Ann", "Bob"]
    }
    ends = [("Ann", "Ann"), ("Ann", "Bob"), ("Bob", "Bob")]
    edges = {
        f"Edge{place}": (*draw.one(ends), draw.some(["text", "small", "single", "date"], 2))
        for place in range(draw.whole(1, 3))
    }
    return Schema(nodes, edges, shared, [name for name in nodes if draw.chance(70)])


def draw_records(draw: Draw, schema: Schema) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    keys: dict[str, list[str]] = {}
    for name, properties in schema.nodes.items():
        keys[name] = [
            f"{draw.one([name[0].lower(), 'c'])}{place}" for place in range(draw.whole(1, 6))
        ]
        for key in keys[name]:
            values = {"key": key} | _values(draw, properties)
            if name in schema.ranked:
                values |= {"spot": draw.one([*_SPOTS, None]), "words": draw.one([*_WORDS, None])}
            records.append({"type": name, "data": values})
    for name, (source, target, properties) in schema.edges.items():
        for _ in range(draw.whole(0, 10)):
            record = {"edge": name, "from": draw.one(keys[source]), "to": draw.one(keys[target])}
            records.append(record | {"data": _values(draw, properties)})
    return records


def _values(draw: Draw, properties: list[str]) -> dict[str, Any]:
    return {name: draw.one(PROPERTIES[name][1]) for name in properties if draw.chance(75)}


@dataclass
class Query:
    """One read as text, and its parameters."""

    text: str
    params: dict[str, Any]


@dataclass
class Builder:
    """A read while it is drawn: what is bound so far, and what it asks for."""

    draw: Draw
    schema: Schema
    variables: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    edge_variables: dict[str, list[str]] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    parameters: dict[str, tuple[str, Any]] = field(default_factory=dict)
    nullable: set[str] = field(default_factory=set)
    ranks: bool = False
    """Whether stages may rank."""
    used: int = 0

    def fresh(self) -> str:
        # Names are not handed out in order, so that ties do not follow the order of binding.
        self.used += 1
        return f"{'qmzbx'[self.used % 5]}{self.used}"

    def readable(self) -> list[tuple[str, str]]:
        nodes = [(v, p) for v, (_, properties) in self.variables.items() for p in properties]
        return nodes + [(v, p) for v, properties in self.edge_variables.items() for p in properties]

    def bind(self, name: str, type_name: str) -> None:
        self.variables[name] = (type_name, [*self.properties(type_name), "key"])

    def properties(self, type_name: str) -> list[str]:
        return self.schema.shared if type_name == SHARED else self.schema.nodes[type_name]

    def binding(self) -> str:
        name, type_name = self.fresh(), self.draw.one(list(self.schema.nodes))
        if self.draw.chance(20):
            type_name = SHARED
        self.bind(name, type_name)
        return f"${name}: {type_name}{self.inline(type_name)}"

    def rebinding(self) -> str:
        """A node that is bound, again: what it requires is nothing new."""
        name, (type_name, _) = self.draw.one(list(self.variables.items()))
        return f"${name}: {type_name}"

    def inline(self, type_name: str) -> str:
        draw = self.draw
        if not draw.chance(30) or not self.properties(type_name):
            return ""
        name = draw.one(self.properties(type_name))
        return f" {{ {name}: {self.given(name)} }}"

    def given(self, name: str) -> str:
        """A literal, or a parameter, that fits a property."""
        draw = self.draw
        type_name, values = PROPERTIES.get(name, ("String", ["a0", "a1", "b0"]))
        value = draw.one(values)
        if type_name.startswith("["):
            type_name = type_name.strip("[]")
            members: list[Any] = ["a", "it's"] if type_name == "String" else FLOATS
            value = draw.one(members)
        is_negative = isinstance(value, int | float) and value < 0
        if is_negative or draw.chance(40):
            return self.parameter("String" if type_name.startswith("enum") else type_name, value)
        return spell(type_name, value)

    def parameter(self, type_name: str, value: Any) -> str:
        name = f"p{len(self.parameters)}"
        is_null = self.draw.chance(10)
        declared = f"{type_name}?" if is_null or self.draw.chance(20) else type_name
        self.parameters[name] = (declared, None if is_null else value)
        return f"${name}"

    def traversal(self) -> str | None:
        draw = self.draw
        edge = draw.one(list(self.schema.edges))
        source, target, properties = self.schema.edges[edge]
        starts = [v for v, (t, _) in self.variables.items() if t in (source, target, SHARED)]
        if not starts:
            return None
        start = draw.one(starts)
        start_type = self.variables[start][0]
        end_type = source if start_type == target != source else target
        end, is_new = self.far_end(end_type)
        walk = f"{edge[0].lower()}{edge[1:]}"
        if source == target and draw.chance(25):
            walk = f"<{walk}>"
        bounds = ""
        if draw.chance(35):
            walk, bounds = self.walk(walk, properties)
        elif draw.chance(40):
            name = self.fresh()
            self.edge_variables[name] = properties
            walk = f"${name}:{walk}"
            bounds = self.bounds("", properties)
        if is_new and draw.chance(30) and end != "_":
            # Written backwards; the checker finds the direction from the bound end.
            new_type = source if start_type in (target, SHARED) else target
            self.bind(end, new_type)
            return f"${end} {walk}{bounds} ${start}"
        if is_new and end != "_":
            self.bind(end, end_type)
        return f"${start} {walk}{bounds} ${end}"

    def walk(self, edge: str, properties: list[str]) -> tuple[str, str]:
        """Several hops or a search for shortest paths, and what follows the edge."""
        draw = self.draw
        least = draw.whole(1, 3)
        numbers = f"{least},{least + draw.whole(0, 2)}"
        word = draw.one(["", "", "shortest ", "all shortest "])
        is_path = bool(word) or numbers != "1,1"
        if word and draw.chance(60):
            numbers = draw.one(["", f"{least},"])
        bounds = self.bounds(numbers, properties)
        if word == "shortest " and "small" in properties and draw.chance(40):
            bounds = "{where small >= 0} by small"
        if is_path and draw.chance(60):
            self.paths.append(self.fresh())
            word = f"${self.paths[-1]}:{word}"
        return f"{word}{edge}", bounds

    def bounds(self, numbers: str, properties: list[str]) -> str:
        """Bounds with these numbers, and sometimes a condition on every hop."""
        draw, where = self.draw, ""
        if properties and draw.chance(30):
            name = draw.one(properties)
            tests = [f"{name} {draw.one(['=', '<', '>='])} {self.given(name)}", f"{name} is null"]
            where = f"where {draw.one([*tests, ' or '.join(tests)])}"
        inside = " ".join(filter(None, (numbers, where)))
        return f"{{{inside}}}" if inside else ""

    def far_end(self, type_name: str) -> tuple[str, bool]:
        draw = self.draw
        known = [v for v, (t, _) in self.variables.items() if t in (type_name, SHARED)]
        if known and draw.chance(25):
            return draw.one(known), False
        if draw.chance(15):
            return "_", True
        return self.fresh(), True

    def filter(self, depth: int = 2) -> str | None:
        """A condition: a test, or several that are joined or turned around."""
        draw = self.draw
        if depth and draw.chance(20):
            parts = [part for part in (self.filter(depth - 1), self.filter(depth - 1)) if part]
            word = draw.one([" and ", " or "])
            return f"({word.join(parts)})" if parts else None
        if depth and draw.chance(10):
            part = self.filter(depth - 1)
            return part and f"not ({part})"
        return self.test()

    def test(self) -> str | None:
        draw = self.draw
        readable = self.readable()
        if self.nullable and draw.chance(20):
            return f"${draw.one(sorted(self.nullable))} is {draw.one(['', 'not '])}null"
        if self.paths and draw.chance(25):
            return f"hops(${draw.one(self.paths)}) {draw.one(['=', '<', '>'])} {draw.whole(1, 3)}"
        if self.scores and draw.chance(25):
            return f"${draw.one(self.scores)} is {draw.one(['', 'not '])}null"
        if self.variables and draw.chance(4):
            kind = f"type(${draw.one(list(self.variables))})"
            return f'{kind} {draw.one(["=", "!="])} "{draw.one(["Ann", "Bob"])}"'
        if readable and draw.chance(12):
            variable, name = draw.one(readable)
            return f"${variable}.{name} is {draw.one(['', 'not '])}null"
        numbers = [f"${v}.{p}" for v, p in readable if p in SUMMABLE]
        if numbers and draw.chance(12):
            left = f"({draw.one(numbers)} + {self.number(numbers, 1)})"
            return f"{left} {draw.one(['=', '<', '>='])} {self.number(numbers, 1)}"
        if readable and draw.chance(10):
            variable, name = draw.one(readable)
            if not PROPERTIES.get(name, ("", []))[0].startswith("["):
                members = [self.literal(name) for _ in range(draw.whole(0, 3))]
                return f"${variable}.{name} in [{', '.join(members)}]"
        if not readable:
            return None
        variable, name = draw.one(readable)
        side = f"${variable}.{name}"
        type_name = PROPERTIES.get(name, ("String", []))[0]
        others = [f"${v}.{p}" for v, p in readable if _comparable(p, name)]
        if type_name.startswith("["):
            element = type_name.strip("[]")
            members = [f"${v}.{p}" for v, p in readable if _element_fits(p, element)]
            return f"{side} contains {self.side(name, members)}"
        if type_name == "String" and draw.chance(40):
            word = draw.one(["contains", "starts_with"])
            left, right = side, self.side(name, others)
            if draw.chance(30):
                left, right = right, left
            return f"{left} {word} {right}"
        left, right = side, self.side(name, others)
        if name in NUMBERS and draw.chance(30):
            right = self.given(draw.one(NUMBERS))
        if draw.chance(25):
            left, right = right, left
        return f"{left} {draw.one(['=', '!=', '<', '<=', '>', '>='])} {right}"

    def number(self, numbers: list[str], depth: int) -> str:
        """A value that is computed from properties, or one of them."""
        draw = self.draw
        if not depth or draw.chance(30):
            return draw.one([*numbers, "0", "(-3)", "2.5"])
        left, right = self.number(numbers, depth - 1), self.number(numbers, depth - 1)
        return draw.one([
            f"({left} + {right})",
            f"({left} - {right})",
            f"{left} / {right}",
            f"abs({left}) % 7",
            f"coalesce({left}, {right}, 1)",
            f"case when {left} > {right} then {left} else 0 end",
            f"round({left}, 1)",
            f"(-{left})",
        ])  # fmt: skip

    def literal(self, name: str) -> str:
        type_name, values = PROPERTIES.get(name, ("String", ["a0", "a1", "b0"]))
        return spell(type_name, self.draw.one(values))

    def side(self, name: str, others: list[str]) -> str:
        if others and self.draw.chance(30):
            return self.draw.one(others)
        return self.given(name)

    def negation(self, depth: int) -> str | None:
        outer_nodes, outer_edges = dict(self.variables), dict(self.edge_variables)
        outer_paths = list(self.paths)
        draw = self.draw
        inner: list[str | None] = []
        if draw.chance(70):
            inner.append(self.traversal())
        if draw.chance(30):
            inner.append(self.traversal())
        if draw.chance(50) or not any(inner):
            inner.append(self.filter())
        if depth > 0 and draw.chance(25):
            inner.append(self.negation(depth - 1))
        if depth > 0 and draw.chance(15):
            inner.append(self.either())
        self.variables, self.edge_variables = outer_nodes, outer_edges
        self.paths = outer_paths
        clauses = [clause for clause in inner if clause]
        return f"not {{ {' '.join(clauses)} }}" if clauses else None

    def optional(self, depth: int = 1) -> str | None:
        """What it introduces stays, and may be null."""
        draw = self.draw
        before = {*self.variables, *self.edge_variables, *self.paths}
        inner: list[str | None] = [self.traversal() if draw.chance(90) else self.filter()]
        if inner[0] is None:
            # Nothing would connect it with what is outside.
            return None
        if draw.chance(30):
            inner.append(self.traversal())
        if draw.chance(15):
            inner.append(self.either())
        if depth > 0 and draw.chance(25):
            inner.append(self.optional(depth - 1))
        if draw.chance(35):
            inner.append(self.filter())
        if draw.chance(15):
            inner.append(self.negation(0))
        self.nullable |= {*self.variables, *self.edge_variables, *self.paths} - before
        clauses = [clause for clause in inner if clause]
        return f"optional {{ {' '.join(clauses)} }}" if clauses else None

    def either(self) -> str | None:
        """Alternatives that all introduce one variable, or none that is visible."""
        draw = self.draw
        visible = (self.fresh(), draw.one(list(self.schema.nodes))) if draw.chance(60) else None
        parts = [self.alternative(visible) for _ in range(draw.whole(2, 3))]
        if not all(parts):
            return None
        if visible is not None:
            self.bind(*visible)
        return "either " + " or ".join(f"{{ {part} }}" for part in parts)

    def alternative(self, visible: tuple[str, str] | None) -> str | None:
        outer_nodes, outer_edges = dict(self.variables), dict(self.edge_variables)
        outer_paths = list(self.paths)
        draw = self.draw
        inner: list[str | None] = []
        if visible is None:
            inner.append(self.traversal() if draw.chance(50) else self.filter())
        else:
            inner.append(self.reach(*visible))
            self.bind(*visible)
        if draw.chance(30):
            inner.append(self.traversal())
        if draw.chance(30):
            inner.append(self.filter())
        if draw.chance(10):
            inner.append(self.negation(0))
        self.variables, self.edge_variables = outer_nodes, outer_edges
        self.paths = outer_paths
        return " ".join(clause for clause in inner if clause) or None

    def reach(self, name: str, type_name: str) -> str:
        """A traversal that introduces a node of a type, or a binding of it."""
        ways = [
            f"${start} {edge[0].lower()}{edge[1:]} ${name}"
            for edge, (source, target, _) in self.schema.edges.items()
            for start, (kind, _) in self.variables.items()
            if (kind, type_name) in ((source, target), (target, source))
        ]
        if ways and self.draw.chance(85):
            return self.draw.one(ways)
        return f"${name}: {type_name}{self.inline(type_name)}"

    def returns(self) -> tuple[list[str], list[str]]:
        """The projections, and what may be sorted by."""
        draw = self.draw
        readable = self.readable()
        items: list[str] = []
        sortable: list[str] = []
        is_grouped = draw.chance(45)
        for place in range(draw.whole(0 if is_grouped else 1, 2)):
            numbers = [f"${v}.{p}" for v, p in readable if p in SUMMABLE]
            if self.paths and not is_grouped and draw.chance(50):
                function = draw.one(["hops", "nodes", "edges"])
                items.append(f"{function}(${draw.one(self.paths)}) as r{place}")
                sortable += [f"r{place}"] if function == "hops" else []
            elif self.scores and not is_grouped and draw.chance(50):
                items.append(f"${draw.one(self.scores)} as r{place}")
                sortable.append(f"r{place}")
            elif numbers and not is_grouped and draw.chance(20):
                items.append(f"{self.number(numbers, 2)} as r{place}")
                sortable.append(f"r{place}")
            elif readable and draw.chance(75):
                variable, name = draw.one(readable)
                items.append(f"${variable}.{name} as r{place}")
                if not PROPERTIES.get(name, ("", []))[0].startswith("["):
                    sortable.append(f"r{place}")
            elif not is_grouped and draw.chance(25):
                items.append(f"type(${draw.one(list(self.variables))}) as r{place}")
            else:
                items.append(f"${draw.one(list(self.variables))} as r{place}")
        if not is_grouped:
            sortable = [
                f"${v}.{p}" for v, p in readable if not PROPERTIES.get(p, ("",))[0].startswith("[")
            ] + sortable
            return items, sortable
        for place in range(draw.whole(1, 3)):
            items.append(f"{self.aggregate()} as g{place}")
            sortable.append(f"g{place}")
        return items, sortable

    def aggregate(self) -> str:
        draw = self.draw
        numbers = [f"${v}.{p}" for v, p in self.readable() if p in SUMMABLE]
        extremes = [
            f"${v}.{p}" for v, p in self.readable() if p in NUMBERS or p in ("text", "kind", "key")
        ]
        if self.paths and draw.chance(40):
            function = draw.one(["count", "max", "min", "sum"])
            return f"{function}(hops(${draw.one(self.paths)}))"
        if self.scores and draw.chance(40):
            return f"count(${draw.one(self.scores)})"
        choice = draw.whole(0, 3)
        if choice == 1 and numbers:
            return f"{draw.one(['sum', 'avg'])}({draw.one(numbers)})"
        if choice == 2 and extremes:
            return f"{draw.one(['min', 'max'])}({draw.one(extremes)})"
        if choice == 3 and self.readable():
            variable, name = draw.one(self.readable())
            return f"count(${variable}.{name})"
        return f"count(${draw.one(list(self.variables))})"

    def stage(self) -> str | None:
        """The first rows of some clauses, by what can be sorted."""
        draw = self.draw
        clauses: list[str | None] = [] if self.variables else [self.binding()]
        if not clauses or draw.chance(40):
            clauses.append(self.traversal())
        if draw.chance(20):
            clauses.append(self.optional())
        if draw.chance(40):
            clauses.append(self.filter())
        if draw.chance(15):
            clauses.append(self.negation(0))
        keys = [
            f"${v}.{p}"
            for v, p in self.readable()
            if not PROPERTIES.get(p, ("",))[0].startswith("[")
        ]
        keys += [f"hops(${name})" for name in self.paths] + [f"${name}" for name in self.scores]
        if not any(clauses) or not keys:
            return None
        chosen = [f"{draw.one(keys)} {draw.one(['asc', 'desc'])}" for _ in range(draw.whole(1, 2))]
        ranking = self.ranking() if self.ranks and draw.chance(50) else None
        if ranking is not None:
            chosen = [ranking]
        count = self.count([0, 1, 2, 3, 9])
        named = ""
        if draw.chance(60):
            # A name of its own, and bound only when the stage is over.
            named = f" as $score{len(self.scores)}"
            self.scores.append(named.removeprefix(" as $"))
        inside = " ".join(clause for clause in clauses if clause)
        return f"top {count} by {', '.join(chosen)}{named} {{ {inside} }}"

    def count(self, choices: list[int]) -> str:
        """A number of rows, or a parameter that gives it."""
        number = self.draw.one(choices)
        if not self.draw.chance(30):
            return str(number)
        name = f"p{len(self.parameters)}"
        self.parameters[name] = ("I64", number)
        return f"${name}"

    def ranking(self) -> str | None:
        """A ranking of the nodes of a variable, if they have what it needs."""
        draw = self.draw
        names = [v for v, (t, _) in self.variables.items() if t in self.schema.ranked]
        if not names:
            return None
        name = draw.one(names)
        nearest = f"nearest(${name}.spot, {self.vector()})"
        bm25 = f"bm25(${name}.words, {self.words()})"
        fused = [f"rrf({nearest}, {bm25})", f"rrf({bm25}, {nearest}, {draw.one([1, 60])})"]
        return draw.one([nearest, bm25, *fused])

    def vector(self) -> str:
        spot = self.draw.one(_SPOTS)
        if spot[0] < 0 or self.draw.chance(40):
            return self.parameter("Vector(2)", spot)
        return str(spot)

    def words(self) -> str:
        words = self.draw.one([*_WORDS, "red red", "other"])
        return self.parameter("String", words) if self.draw.chance(40) else f'"{words}"'

    def query(self, returns: Callable[[Builder], str]) -> Query:
        draw = self.draw
        stages: list[str] = []
        while len(stages) < 2 and draw.chance(20):
            stage = self.stage()
            if stage is None:
                return Builder(draw, self.schema, ranks=self.ranks).query(returns)
            stages.append(stage)
        clauses: list[str | None] = [] if stages and draw.chance(70) else [self.binding()]
        if draw.chance(15):
            clauses.append(self.binding())
        clauses += [self.traversal() for _ in range(draw.whole(0, 3))]
        if draw.chance(20):
            clauses.append(self.either())
        if draw.chance(35):
            clauses += [self.optional() for _ in range(draw.whole(1, 2))]
        clauses += [self.filter() for _ in range(draw.whole(0, 2))]
        clauses += [self.negation(1) for _ in range(draw.whole(0, 1))]
        tail = returns(self)
        declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in self.parameters.items())
        match = "\n  ".join(clause for clause in clauses if clause) or self.rebinding()
        before = "".join(f"{stage}\n" for stage in stages)
        text = f"query q({declared}) {{ {before}match {{\n  {match} }}\n{tail} }}"
        return Query(text, {name: value for name, (_, value) in self.parameters.items()})


def draw_query(draw: Draw, schema: Schema) -> Query:
    """A read whose columns are values of rows, or keys and plain aggregates."""
    return Builder(draw, schema).query(_return_plainly)


def _return_plainly(builder: Builder) -> str:
    draw = builder.draw
    items, sortable = builder.returns()
    tail = f"return {{ {', '.join(items)} }}"
    if sortable and draw.chance(50):
        keys = [f"{key} {draw.one(['asc', 'desc'])}" for key in draw.some(sortable, 2)]
        tail += f" order {{ {', '.join(keys)} }}" if keys else ""
    if draw.chance(35):
        tail += f" limit {draw.one([0, 1, 2, 5, 2**63 - 1])}"
    return tail


def _kind(name: str) -> str:
    type_name = PROPERTIES.get(name, ("String", []))[0]
    if name in NUMBERS:
        return "number"
    return "String" if type_name.startswith("enum") else type_name


def _comparable(left: str, right: str) -> bool:
    return _kind(left) == _kind(right) and not _kind(left).startswith("[")


def _element_fits(name: str, element: str) -> bool:
    wanted = "number" if element == "F32" else element
    return _kind(name) == wanted


def spell(type_name: str, value: Any) -> str:
    """A value as a literal of the language."""
    if isinstance(value, list):
        return f"[{', '.join(spell(type_name, each) for each in value)}]"
    if type_name == "Date":
        return f'date("{value}")'
    if type_name == "DateTime":
        return f'datetime("{value}")'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def draw_condition(draw: Draw, schema: Schema, type_name: str) -> tuple[str, str, dict[str, Any]]:
    """A condition over `$v`, a node or edge of the type: declared parameters, text and values."""
    builder = Builder(draw, schema)
    if type_name in schema.nodes:
        builder.bind("v", type_name)
    else:
        builder.edge_variables["v"] = schema.edges[type_name][2]
    condition = builder.filter() or "1 = 1"
    declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in builder.parameters.items())
    return declared, condition, {name: value for name, (_, value) in builder.parameters.items()}
