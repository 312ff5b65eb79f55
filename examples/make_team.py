"""Write a made-up team as load records: people, notes, who wrote what, who knows whom.

python make_team.py OUT.jsonl [PEOPLE]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIRST = ["Ada", "Lin", "Sam", "Noor", "Ivo", "Mei", "Tove", "Raj", "Zoe", "Kofi"]
LAST = ["Berg", "Chen", "Diaz", "Eze", "Fox", "Gupta", "Haas", "Ito", "Jung", "Kaya"]
TITLES = ["Engineer", "Fellow", "Analyst", "Editor", None]
WORDS = ["graph", "branch", "merge", "query", "vector", "table", "commit", "schema", "review"]


def records(people: int) -> Iterator[dict[str, Any]]:
    """Records in load order; the same ones for the same number of people."""
    random_ = random.Random(7)
    for number in range(people):
        name = f"{random_.choice(FIRST)} {random_.choice(LAST)} {number}"
        day = f"20{random_.randrange(10, 26)}-{random_.randrange(1, 13):02d}-15"
        data = {"slug": f"p{number}", "name": name, "joined": day}
        yield {"type": "Person", "data": {**data, "title": random_.choice(TITLES)}}
    for number in range(people):
        text = " ".join(random_.choices(WORDS, k=8))
        status = random_.choice(["draft", "published"])
        yield {"type": "Note", "data": {"slug": f"n{number}", "text": text, "status": status}}
        author = f"p{random_.randrange(people)}"
        yield {"edge": "Wrote", "from": author, "to": f"n{number}"}
    for _ in range(2 * people):
        pair = [f"p{random_.randrange(people)}" for _end in range(2)]
        since = random_.randrange(2000, 2026)
        yield {"edge": "Knows", "from": pair[0], "to": pair[1], "data": {"since": since}}


def main() -> None:
    out, people = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40_000
    with out.open("w", encoding="utf-8") as file:
        for record in records(people):
            file.write(json.dumps(record) + "\n")
    print(f"wrote {5 * people} records to {out}")


if __name__ == "__main__":
    main()
