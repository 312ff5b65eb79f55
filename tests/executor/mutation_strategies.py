"""Random mutations over the random graphs: every statement, after `match`, in `for` and alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.executor.query_strategies import (
    INTEGERS,
    PROPERTIES,
    SHARED,
    Builder,
    Draw,
    Query,
    Schema,
    spell,
)

KEYED = "Once"
"""An edge type whose edges are told apart by their ends."""
LOG = "Log"
"""A node type without a key."""
_LOGGED = ["text", "small", "double", "date"]
_ROW = ["text", "small", "double", "flag"]
_INTEGERS = ("small", "count", "large", "plus")
_FLOATS = ("single", "double")
_KEYS = ["a0", "a1", "b0", "b1", "c0", "c1", "c2", "new", "é"]


@dataclass
class WritableSchema(Schema):
    """Beside the types of reads, a node type without and an edge type with a key."""

    def text(self) -> str:
        logged = " ".join(f"{name}: {PROPERTIES[name][0]}?" for name in _LOGGED)
        own = Schema.text(Schema(self.nodes, self.unkeyed(), self.shared, self.ranked))
        keyed = f"edge {KEYED}: Ann -> Bob {{ small: I32?  text: String?  @key(src, dst) }}"
        return f"{own}\nnode {LOG} {{ {logged} }}\n{keyed}"

    def unkeyed(self) -> dict[str, tuple[str, str, list[str]]]:
        return {name: edge for name, edge in self.edges.items() if name != KEYED}


def make_writable(schema: Schema) -> WritableSchema:
    edges = {**schema.edges, KEYED: ("Ann", "Bob", ["small", "text"])}
    return WritableSchema(schema.nodes, edges, schema.shared, schema.ranked)


def drop_repeated(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without those that name a keyed edge a second time."""
    named: dict[object, dict[str, Any]] = {}
    for place, record in enumerate(records):
        is_keyed = record.get("edge") == KEYED
        named[(record["from"], record["to"]) if is_keyed else place] = record
    return list(named.values())


def draw_mutation(draw: Draw, schema: WritableSchema) -> Query:
    return _Mutation(draw, schema, Builder(draw, schema)).query()


@dataclass
class _Mutation:
    """A mutation while it is drawn. `sources` are the values that a statement may read."""

    draw: Draw
    schema: WritableSchema
    builder: Builder
    sources: list[tuple[str, str]] = field(default_factory=list)
    labelled: list[str] | None = None
    rows: list[dict[str, Any]] | None = None

    def query(self) -> Query:
        draw, builder = self.draw, self.builder
        kind = draw.one(["plain", "plain", "for", "match", "match"])
        deletes = draw.chance(30)
        count = draw.whole(1, 3)
        if kind == "match":
            head = self.match()
            deletes = deletes and bool(self.bound())
            body = " ".join(self.after_match(deletes) for _ in range(count))
        elif kind == "for":
            head, body = "", self.loop(deletes, count)
        else:
            head = ""
            body = " ".join(self.statement(deletes) for _ in range(count))
        tail = self.returns(kind)
        declared = [f"${name}: {kind}" for name, (kind, _) in builder.parameters.items()]
        params = {name: value for name, (_, value) in builder.parameters.items()}
        if self.rows is not None:
            fields = ", ".join(f"{name}: {PROPERTIES[name][0]}?" for name in _ROW)
            declared.append(f"$rows: [{{ key: String, other: String, {fields} }}]")
            params["rows"] = self.rows
        return Query(f"query q({', '.join(declared)}) {{ {head}{body}{tail} }}", params)

    # The rows that statements run over

    def match(self) -> str:
        draw, builder = self.draw, self.builder
        clauses: list[str | None] = [builder.binding()]
        clauses += [builder.traversal() for _ in range(draw.whole(0, 2))]
        if draw.chance(15):
            clauses.append(builder.either())
        if draw.chance(25):
            clauses.append(builder.optional())
        if draw.chance(40):
            clauses.append(builder.filter())
        if draw.chance(15):
            clauses.append(builder.negation(0))
        self.sources = builder.readable()
        return f"match {{ {' '.join(clause for clause in clauses if clause)} }} "

    def loop(self, deletes: bool, count: int) -> str:
        draw = self.draw
        self.rows = [
            {"key": draw.one(_KEYS), "other": draw.one(_KEYS)}
            | {name: draw.one(PROPERTIES[name][1]) for name in _ROW if draw.chance(70)}
            for _ in range(draw.whole(0, 4))
        ]
        self.sources = [("r", name) for name in ("key", "other", *_ROW)]
        body = " ".join(self.statement(deletes) for _ in range(count))
        return f"for $r in $rows {{ {body} }}"

    # Statements

    def statement(self, deletes: bool) -> str:
        """One that stands alone or in `for`."""
        draw = self.draw
        known = [(name, each) for name, each in self.types().items() if {*each} - {"key"}]
        kind, properties = draw.one(known)
        if not deletes and draw.chance(70):
            return self.new_row()
        where = self.where(kind, properties)
        label = "" if self.rows is not None else self.labels(kind)
        if deletes:
            return f"delete {kind} where {where}{label}"
        own = self.sources
        changed = [name for name in properties if name != "key"]
        self.sources = [*own, *(("", name) for name in changed)]
        sets = self.assignments(changed, least=1)
        self.sources = own
        return f"update {kind} set {{ {sets} }} where {where}{label}"

    def after_match(self, deletes: bool) -> str:
        draw, bound = self.draw, self.bound()
        if deletes:
            return f"delete ${draw.one(bound)}"
        changed = [name for name in bound if self.properties_of(name)]
        if changed and draw.chance(50):
            name = draw.one(changed)
            return f"update ${name} set {{ {self.assignments(self.properties_of(name), least=1)} }}"
        return self.new_row()

    def bound(self) -> list[str]:
        """The variables that a statement may change."""
        nodes = (v for v, (kind, _) in self.builder.variables.items() if kind != SHARED)
        return [*nodes, *self.builder.edge_variables]

    def properties_of(self, variable: str) -> list[str]:
        if variable in self.builder.edge_variables:
            return self.builder.edge_variables[variable]
        return self.schema.nodes[self.builder.variables[variable][0]]

    def new_row(self) -> str:
        """An insert or an upsert of any type."""
        draw = self.draw
        word = draw.one(["insert", "upsert"])
        choice = draw.one(["node", "node", "edge", "edge", "log"])
        if choice == "log":
            return f"insert {LOG} {{ {self.assignments(_LOGGED, least=1)} }}{self.labels(LOG)}"
        if choice == "node":
            kind = draw.one(list(self.schema.nodes))
            sets = self.assignments(self.schema.nodes[kind], first=[f"key: {self.key()}"])
            return f"{word} {kind} {{ {sets} }}{self.labels(kind)}"
        kind = draw.one(list(self.schema.edges))
        source, target, properties = self.schema.edges[kind]
        ends = [f"from: {self.end(source)}", f"to: {self.end(target)}"]
        return f"{word} {kind} {{ {self.assignments(properties, first=ends)} }}{self.labels(kind)}"

    def types(self) -> dict[str, list[str]]:
        """Every type with its properties."""
        nodes = {name: [*properties, "key"] for name, properties in self.schema.nodes.items()}
        edges = {name: properties for name, (_, _, properties) in self.schema.edges.items()}
        return {**nodes, LOG: _LOGGED, **edges}

    def where(self, kind: str, properties: list[str]) -> str:
        """A condition whose bare words are properties, and ends of an edge."""
        draw = self.draw
        if kind in self.schema.edges and draw.chance(50):
            return f"{draw.one(['from', 'to'])} = {self.key()}"
        if kind in self.schema.nodes and draw.chance(30):
            return f"key = {self.key()}"
        inner = Builder(draw, self.schema, parameters=self.builder.parameters)
        inner.edge_variables["self"] = properties
        found = (inner.filter() or "").replace("$self.", "")
        return found or f"{properties[0]} is not null"

    def labels(self, kind: str) -> str:
        """A name for what is written, once in a query."""
        if self.labelled is not None or not self.draw.chance(40):
            return ""
        self.labelled = self.types()[kind]
        return " as $x"

    # Values

    def key(self) -> str:
        """The key of a node, which may be none."""
        draw = self.draw
        texts = [f"${v}.{p}" for v, p in self.sources if v and p in ("key", "other")]
        if texts and draw.chance(65):
            return draw.one(texts)
        value = draw.one(_KEYS)
        return self.builder.parameter("String", value) if draw.chance(30) else f'"{value}"'

    def end(self, kind: str) -> str:
        known = [v for v, (t, _) in self.builder.variables.items() if t == kind]
        if known and self.draw.chance(75):
            return f"${self.draw.one(known)}"
        return self.key()

    def assignments(
        self, properties: list[str], *, first: list[str] | None = None, least: int = 0
    ) -> str:
        chosen = self.draw.some(properties, 3)
        while len(chosen) < least:
            chosen = [*chosen, properties[0]]
        return ", ".join([*(first or []), *(f"{name}: {self.value(name)}" for name in chosen)])

    def value(self, name: str) -> str:
        """What a property is given: nothing, a literal, a parameter, or what is computed."""
        draw = self.draw
        if draw.chance(18):
            return "null"
        type_name, values = PROPERTIES[name]
        if draw.chance(55) and (found := self.computed(name, type_name)) is not None:
            return found
        if type_name.startswith("["):
            return spell(type_name, draw.one(values))
        return self.builder.given(name)

    def computed(self, name: str, type_name: str) -> str | None:
        draw = self.draw
        same = self.read(name)
        if name in _INTEGERS:
            numbers = self.read(*_INTEGERS)
            texts = self.read("text", "order", "key")
            ways = [f"({each} + {draw.one(INTEGERS)})" for each in numbers]
            ways += [f"coalesce({each}, 0) * 2" for each in numbers]
            ways += [f"case when {each} > 1 then {each} else 7 end" for each in numbers]
            same = [*numbers, *ways, *(f"length({each})" for each in texts)]
        elif name in _FLOATS:
            numbers = self.read(*_INTEGERS, *_FLOATS)
            same = [*numbers, *(f"{each} / 2" for each in numbers)]
            same += [f"round(-{each}, 1)" for each in numbers]
        elif type_name == "String":
            texts = self.read("text", "order", "key", "other", "kind")
            same = [f'{each} + "-" + {draw.one(texts)}' for each in texts]
            same += [*texts, *(f"upper(substring({each}, 0, 1))" for each in texts)]
        elif name == "date":
            same += [f"{each} + days({draw.whole(0, 40)})" for each in same]
        elif name == "flag":
            same += [f"{each} > 1" for each in self.read(*_INTEGERS)]
        return draw.one(same) if same else None

    def read(self, *names: str) -> list[str]:
        return [f"${v}.{p}" if v else p for v, p in self.sources if p in names]

    # What comes back

    def returns(self, kind: str) -> str:
        draw = self.draw
        items: list[str] = []
        if self.labelled is not None:
            items.append("$x { * }")
            items += [f"$x.{name}" for name in draw.some(self.labelled, 2)]
        if kind == "match":
            items += [f"${v}.{p}" for v, p in draw.some(self.builder.readable(), 3)]
            items += [f"${name} {{ * }}" for name in draw.some(list(self.builder.variables), 1)]
        elif kind == "for" and items:
            items += [f"$r.{name}" for name in draw.some(_ROW, 2)]
        if not items or draw.chance(30):
            return ""
        named = ", ".join(f"{each} as r{place}" for place, each in enumerate(items))
        return f" return {draw.one(['', 'distinct '])}{{ {named} }}"
