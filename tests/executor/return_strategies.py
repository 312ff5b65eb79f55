"""Random reads with all that a `return` may say: groups, lists, objects, scores and pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.executor.query_strategies import (
    NUMBERS,
    PROPERTIES,
    SUMMABLE,
    Builder,
    Draw,
    Query,
    Schema,
)

# Sums of these have no error, in whatever order they are added.
_EXACT = ("small", "count", "plus", "single")
_TEXTS = ("text", "order", "kind", "key")


def draw_whole_query(draw: Draw, schema: Schema) -> Query:
    """A read of the whole language."""
    return Builder(draw, schema, ranks=True).query(lambda builder: _Returns(builder).text())


@dataclass
class _Returns:
    """What is returned, while it is drawn: columns, and which of them can be sorted by."""

    builder: Builder
    items: list[str] = field(default_factory=list)
    sortable: list[str] = field(default_factory=list)
    tested: list[str] = field(default_factory=list)

    @property
    def draw(self) -> Draw:
        return self.builder.draw

    def text(self) -> str:
        draw = self.draw
        if draw.chance(25):
            ranked = self.ranked()
            if ranked is not None:
                return ranked
        is_grouped = draw.chance(65)
        is_distinct = draw.chance(30)
        for _ in range(draw.whole(0 if is_grouped else 1, 2)):
            self.add_value(is_key=is_grouped or is_distinct)
        for _ in range(draw.whole(1, 3) if is_grouped else 0):
            self.add_aggregate()
        having = self.having() if is_grouped and draw.chance(40) else ""
        keys = [*self.sortable]
        if not is_grouped and not is_distinct:
            values = (self.value(), self.value())
            keys += [value for value, kind in values if kind != "list" and "$" in value]
        word = "return distinct" if is_distinct else "return"
        return f"{word} {{ {', '.join(self.items)} }}{having}{self.pages(keys)}"

    def pages(self, keys: list[str]) -> str:
        """An order of some of these keys, and a part of what it sorts."""
        draw, tail = self.draw, ""
        chosen = draw.some(keys, 2) if draw.chance(60) else []
        if chosen:
            directions = ["", " asc", " desc"]
            tail += f" order {{ {', '.join(f'{key}{draw.one(directions)}' for key in chosen)} }}"
        if draw.chance(40):
            tail += f" limit {self.builder.count([0, 1, 2, 5, 2**62])}"
        if chosen and draw.chance(40):
            tail += f" offset {self.builder.count([0, 1, 2, 7, 2**62])}"
        return tail

    def add(self, expression: str, *, is_sortable: bool = False, is_truth: bool = False) -> None:
        alias = f"r{len(self.items)}"
        self.items.append(f"{expression} as {alias}")
        if is_sortable:
            self.sortable.append(alias)
            # A projection may be spelled instead of named, unless it is a condition.
            self.sortable += [] if is_truth or "$" not in expression else [expression]

    def add_value(self, *, is_key: bool) -> None:
        """A column that is a value of a row: a property, what is computed, an object, a list."""
        draw, builder = self.draw, self.builder
        if draw.chance(20):
            self.add(self.object())
        elif builder.paths and draw.chance(40):
            path = draw.one(builder.paths)
            self.add(draw.one([f"nodes(${path})", f"edges(${path})", f"nodes(${path}, key)"]))
        elif draw.chance(20):
            self.add(f"${draw.one(list(builder.variables))}")
        elif not is_key and draw.chance(15) and (score := self.score()) is not None:
            self.add(score)
        elif is_key and builder.parameters and draw.chance(5):
            scalars = [n for n, (t, _) in builder.parameters.items() if "Vector" not in t]
            self.add(f"${draw.one(scalars)}" if scalars else self.value()[0])
        elif draw.chance(20) and (condition := builder.filter(depth=1)) is not None:
            self.add(condition, is_sortable=True, is_truth=True)
        else:
            expression, kind = self.value()
            if is_key and "$" not in expression:
                expression = f"type(${draw.one(list(builder.variables))})"
            self.add(expression, is_sortable=kind != "list")

    def object(self) -> str:
        """Some or all properties of a node or edge."""
        draw, builder = self.draw, self.builder
        owners = {name: properties for name, (_, properties) in builder.variables.items()}
        name, properties = draw.one(list((owners | builder.edge_variables).items()))
        chosen = draw.some(properties, 3)
        return f"${name} {{ {', '.join(chosen) if chosen and draw.chance(60) else '*'} }}"

    def score(self) -> str | None:
        ranking = self.builder.ranking()
        return None if ranking is None or ranking.startswith("rrf") else ranking

    def ranked(self) -> str | None:
        """Rows in the order of a ranking, with what ordered them."""
        draw = self.draw
        ranking = self.builder.ranking()
        if ranking is None:
            return None
        self.add(ranking)
        for _ in range(draw.whole(0, 2)):
            self.add_value(is_key=False)
        key = draw.one([ranking, "r0"])
        limit = f" limit {self.builder.count([0, 1, 2, 5])}"
        offset = f" offset {self.builder.count([0, 1, 2])}" if draw.chance(40) else ""
        return f"return {{ {', '.join(self.items)} }} order {{ {key} }}{limit}{offset}"

    def value(self) -> tuple[str, str]:
        """An expression over the variables, and its kind."""
        draw, builder = self.draw, self.builder
        readable = builder.readable()
        choices = [self.number, self.string, self.moment, self.branches]
        if readable and draw.chance(45):
            variable, name = draw.one(readable)
            is_list = PROPERTIES.get(name, ("", []))[0].startswith("[")
            return f"${variable}.{name}", "list" if is_list else "scalar"
        if builder.scores and draw.chance(20):
            return f"${draw.one(builder.scores)}", "scalar"
        for _ in range(3):
            found = draw.one(choices)()
            if found is not None:
                return found, "scalar"
        return f"type(${draw.one(list(builder.variables))})", "scalar"

    def properties(self, names: tuple[str, ...]) -> list[str]:
        return [f"${v}.{p}" for v, p in self.builder.readable() if p in names]

    def number(self, names: tuple[str, ...] = SUMMABLE) -> str | None:
        draw = self.draw
        numbers = self.properties(names)
        lists = self.properties(("texts", "singles", *_TEXTS))
        dates = self.properties(("date", "seen"))
        choices = [f"hops(${path})" for path in self.builder.paths]
        if numbers:
            choices.append(self.builder.number(numbers, 2))
        if lists:
            choices.append(f"length({draw.one(lists)})")
        if dates:
            choices.append(f"{draw.one(['year', 'month', 'day'])}({draw.one(dates)})")
        return draw.one(choices) if choices else None

    def string(self) -> str | None:
        draw = self.draw
        texts = self.properties(_TEXTS)
        if not texts:
            return None
        left, right = draw.one(texts), draw.one(texts)
        return draw.one([
            f"lower({left})",
            f"upper({left} + {right})",
            f'{left} + "-" + {right}',
            f"substring({left}, {draw.whole(0, 2)})",
            f"substring({left}, {draw.one(['0', '1', '(-1)'])}, {draw.whole(0, 2)})",
            f"coalesce({left}, {right})",
        ])  # fmt: skip

    def moment(self) -> str | None:
        draw = self.draw
        days, instants = self.properties(("date",)), self.properties(("seen",))
        choices = [f"{each} {draw.one(['+', '-'])} days({draw.whole(0, 40)})" for each in days]
        choices += [f"{each} - {draw.one(['hours', 'minutes'])}(90)" for each in instants]
        choices += [f"date({each})" for each in instants]
        return draw.one(choices) if choices else None

    def branches(self) -> str | None:
        numbers = self.properties(SUMMABLE)
        condition = self.builder.filter(depth=1)
        if not numbers or condition is None:
            return None
        draw = self.draw
        otherwise = draw.one(["", f" else {draw.one(numbers)}", " else 0.5"])
        return f"case when {condition} then {draw.one(numbers)}{otherwise} end"

    def add_aggregate(self) -> None:
        draw = self.draw
        place = f"r{len(self.items)}"
        if draw.chance(30):
            found = self.collect()
            self.add(found)
            if "{" not in found:
                self.tested.append(f"length({place}) {draw.one(['=', '>'])} {draw.whole(0, 2)}")
            return
        if draw.chance(30):
            found = self.of_aggregates()
            self.add(found, is_sortable=True, is_truth=found.endswith("> 1"))
        else:
            found, is_exact = self.aggregate()
            self.add(found, is_sortable=is_exact)
            if "count(" in found:
                found = draw.one([place, found])
                self.tested.append(f"{found} {draw.one(['=', '<', '>='])} {draw.whole(0, 3)}")
        self.tested.append(f"{place} is {draw.one(['', 'not '])}null")

    def aggregate(self) -> tuple[str, bool]:
        """An aggregate, and whether it is the same in whatever order it is computed."""
        draw, builder = self.draw, self.builder
        exact = self.properties(_EXACT)
        choice = draw.whole(0, 4)
        if choice == 0 and exact:
            return f"{draw.one(['sum', 'avg'])}({draw.one(exact)})", True
        if choice == 1 and (number := self.number()) is not None:
            return f"{draw.one(['sum', 'avg'])}({number})", False
        if choice == 2:
            ordered = [self.number, self.string, self.moment]
            if (value := draw.one(ordered)()) is not None:
                return f"{draw.one(['min', 'max'])}({value})", True
        if choice == 3:
            extremes = self.properties((*NUMBERS, *_TEXTS, "date", "seen"))
            if extremes:
                return f"{draw.one(['min', 'max'])}({draw.one(extremes)})", True
        word = draw.one(["", "distinct "])
        if draw.chance(50):
            return f"count({word}${draw.one(list(builder.variables))})", True
        return f"count({word}{self.value()[0]})", True

    def of_aggregates(self) -> str:
        """What is computed of aggregates."""
        draw = self.draw
        variable = draw.one(list(self.builder.variables))
        exact = self.properties(_EXACT)
        counted = f"count({draw.one(['', 'distinct '])}${variable})"
        choices = [
            f"{counted} + 1",
            f"{counted} / 2",
            f"{counted} > 1",
            f"length(collect(${variable}))",
            f'case when {counted} > 1 then "many" else "few" end',
        ]
        if exact:
            choices.append(f"coalesce(max({draw.one(exact)}), 0) - {counted}")
            choices.append(f"sum({draw.one(exact)}) / {counted}")
        return draw.one(choices)

    def collect(self) -> str:
        draw = self.draw
        found, kind = self.value()
        if draw.chance(20):
            found = f"${draw.one(list(self.builder.variables))}"
        elif kind == "list" or draw.chance(25):
            found = self.object()
        keys = [key for key, kind in (self.value(), self.value()) if kind != "list"]
        chosen = [f"{key}{draw.one(['', ' asc', ' desc'])}" for key in draw.some(keys, 2)]
        order = f" order {', '.join(chosen)}" if chosen else ""
        return f"collect({draw.one(['', 'distinct '])}{found}{order})"

    def having(self) -> str:
        chosen = self.draw.some(self.tested, 2)
        return f" having {{ {'  '.join(chosen)} }}" if chosen else ""
