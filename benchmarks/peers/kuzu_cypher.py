"""Kuzu: node and relationship tables, filled by COPY from Arrow, asked in Cypher."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import social
from benchmarks.peers import with_numbers

# Not an import: the types of a system that may not be installed are not checked.
kuzu: Any = import_module("kuzu")

NODES = {
    "Person": "key INT64, name STRING, gender STRING, birthday DATE, age INT64, is_married BOOL",
    "City": "key INT64, city STRING, state STRING, country STRING, population INT32",
    "State": "key INT64, state STRING, country STRING",
    "Country": "key INT64, country STRING",
    "Interest": "key INT64, interest STRING",
}
EDGES = {
    "Follows": "FROM Person TO Person",
    "LivesIn": "FROM Person TO City",
    "HasInterest": "FROM Person TO Interest",
    "CityIn": "FROM City TO State",
    "StateIn": "FROM State TO Country",
}
HOME = "(p:Person)-[:LivesIn]->(c:City)"
CYPHER = {
    "q1": "MATCH (f:Person)-[:Follows]->(p:Person) "
    "RETURN p.key, p.name, count(*) AS n ORDER BY n DESC LIMIT 3",
    "q2": "MATCH (f:Person)-[:Follows]->(p:Person) WITH p, count(*) AS n ORDER BY n DESC LIMIT 1 "
    "MATCH (p)-[:LivesIn]->(c:City) RETURN p.key, c.city, c.country, n",
    "q3": f"MATCH {HOME}-[:CityIn]->(:State)-[:StateIn]->(co:Country) WHERE co.country = $country "
    "RETURN c.key, c.city, avg(p.age) AS n ORDER BY n LIMIT 5",
    "q4": f"MATCH {HOME}-[:CityIn]->(:State)-[:StateIn]->(co:Country) "
    "WHERE p.age >= $low AND p.age <= $high "
    "RETURN co.country, count(*) AS n ORDER BY n DESC LIMIT 3",
    "q5": f"MATCH {HOME}, (p)-[:HasInterest]->(i:Interest) WHERE i.interest = $interest "
    "AND p.gender = $gender AND c.city = $city AND c.country = $country RETURN count(*) AS n",
    "q6": f"MATCH {HOME}, (p)-[:HasInterest]->(i:Interest) WHERE i.interest = $interest "
    "AND p.gender = $gender RETURN c.city, c.country, count(*) AS n ORDER BY n DESC LIMIT 5",
    "q7": f"MATCH {HOME}-[:CityIn]->(s:State), (p)-[:HasInterest]->(i:Interest) "
    "WHERE p.age >= $low AND p.age <= $high AND s.country = $country AND i.interest = $interest "
    "RETURN s.state, count(*) AS n ORDER BY n DESC LIMIT 1",
    "q8": "MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) RETURN count(*) AS n",
    "q9": "MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) "
    "WHERE b.age < $below AND c.age > $above RETURN count(*) AS n",
}


class Kuzu:
    version = str(kuzu.__version__)
    questions = social.QUESTIONS

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        self._database = kuzu.Database(str(folder / "social.kuzu"))
        self._connection = kuzu.Connection(self._database)
        for name, columns in NODES.items():
            self._run(f"CREATE NODE TABLE {name} ({columns}, PRIMARY KEY (key))")
        for name, ends in EDGES.items():
            self._run(f"CREATE REL TABLE {name} ({ends})")
        for name in (*NODES, *EDGES):
            self._run(f"COPY {name} FROM $rows", {"rows": with_numbers(frames[name])})

    def _run(self, text: str, params: Mapping[str, object] | None = None) -> list[list[object]]:
        result = self._connection.execute(text, dict(params or {}))
        rows = []
        while result.has_next():
            rows.append(result.get_next())
        result.close()
        return rows

    def ask(self, question: str) -> list[float]:
        rows = self._run(CYPHER[question], social.PARAMS.get(question))
        return [float(str(row[-1])) for row in rows]

    def find(self, key: int) -> int:
        [[age]] = self._run("MATCH (p:Person) WHERE p.key = $key RETURN p.age", {"key": key})
        return int(str(age))


def make() -> Kuzu:
    return Kuzu()
