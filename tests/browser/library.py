"""A small library of papers, with a branch that conflicts and values that try to be markup."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """
node Person { slug: String @key  name: String @index  title: String?  joined: Date? }
node Company { slug: String @key  name: String @index  city: String? }
node Paper { doi: String @key  title: String @index  abstract: String @index  year: I32 }
edge Wrote: Person -> Paper { position: I32? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company
edge Cites: Paper -> Paper
"""
FIRST = ("Ada", "Lin", "Sam", "Kim", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Radia")
LAST = ("Byron", "Wu", "Hill", "Park", "Hopper", "Turing", "Liskov", "Knuth", "Lamport")
TOPICS = ("graph databases", "version control", "vector search", "crash recovery", "query planning")
COMPANIES = [("Analytical Engines", "London"), ("Merge & Sons", "Zürich"), ("Lakehouse", "Oslo")]
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
    "abc\u202edef\u200bghi",
    "‫שלום‬ <b>bold</b> javascript:alert(1)",
)
RETITLE = "query t($s: String, $t: String) { update Person set { title: $t } where slug = $s }"
RENAME = (
    "query n($s: String, $n: String, $t: String) "
    "{ update Person set { name: $n, title: $t } where slug = $s }"
)
ADD = (
    'query a() { insert Person { slug: "nova", name: "Nova Star" } '
    'insert WorksAt { from: "nova", to: "c1" } }'
)


def make_library(path: Path) -> Path:
    """The graph on disk, closed: 4 commits on main, a branch `review/titles`, a tag."""
    with og.init(path, schema=SCHEMA, durability="process") as graph:
        graph.load(list_records(), mode="overwrite")
        graph.mutate(RETITLE, params={"s": "p0", "t": "Countess"}, actor="ada")
        graph.create_branch("review/titles")
        made: dict[str, Any] = {"branch": "review/titles", "actor": "lin"}
        graph.mutate(RETITLE, params={"s": "p1", "t": "Principal"}, **made)
        graph.mutate(RENAME, params={"s": "p2", "n": "Samuel Hill", "t": "Editor"}, **made)
        graph.mutate(ADD, **made)
        graph.mutate('query d() { delete Person where slug = "p39" }', **made)
        graph.mutate(RENAME, params={"s": "p2", "n": "Sam B. Hill", "t": "Chief"}, actor="ada")
        graph.tag("v1")
    return path


def list_records() -> list[dict[str, Any]]:
    chance = random.Random(7)
    people = [f"p{place}" for place in range(40)]
    papers = [f"10.1/{place:03}" for place in range(60)]
    found: list[dict[str, Any]] = []
    for place, slug in enumerate(people):
        name = f"{FIRST[place % len(FIRST)]} {LAST[place * 5 % len(LAST)]}"
        title = chance.choice(["Engineer", "Fellow", "Writer", None])
        data = {"slug": slug, "name": name, "title": title, "joined": f"20{10 + place % 15}-03-11"}
        found.append({"type": "Person", "data": data})
    for place, text in enumerate(HOSTILE):
        found.append({"type": "Person", "data": {"slug": f"h{place}", "name": text}})
    for place, (name, city) in enumerate(COMPANIES):
        found.append({"type": "Company", "data": {"slug": f"c{place}", "name": name, "city": city}})
    for place, doi in enumerate(papers):
        topic, other = chance.choice(TOPICS), chance.choice(TOPICS)
        text = f"We study {topic} in the setting of {other}, with figures and a proof."
        data = {"doi": doi, "title": f"On {topic} and {other}", "abstract": text}
        found.append({"type": "Paper", "data": {**data, "year": 1990 + place % 35}})
    for slug in people:
        found.append(_edge("WorksAt", slug, f"c{chance.randrange(3)}"))
        found += [_edge("Knows", slug, each) for each in chance.sample(people, 2) if each != slug]
        found += [_edge("Wrote", slug, each) for each in chance.sample(papers, 2)]
    for doi in papers:
        found += [_edge("Cites", doi, each) for each in chance.sample(papers, 2) if each != doi]
    return found


def _edge(name: str, source: str, target: str) -> dict[str, Any]:
    return {"edge": name, "from": source, "to": target, "data": {}}
