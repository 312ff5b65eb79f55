"""A graph of plain dicts: what every write must do, said as shortly as it can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
edge Knows: Person -> Person @card(0..2)
"""

EDGES_MAX = 2

Person = tuple[int | None, str | None]
Link = tuple[str, str]


class Refused(Exception):
    """The write breaks a rule; the state is as it was."""


@dataclass(frozen=True)
class State:
    """One branch: people by name with age and email, and links, of which there may be parallels."""

    people: dict[str, Person] = field(default_factory=dict)
    links: tuple[Link, ...] = ()

    def checked(self) -> State:
        emails = [email for _, email in self.people.values() if email is not None]
        sources = [source for source, _ in self.links]
        if (
            len(emails) != len(set(emails))
            or any(end not in self.people for link in self.links for end in link)
            or any(sources.count(source) > EDGES_MAX for source in sources)
        ):
            raise Refused
        return State(self.people, tuple(sorted(self.links)))

    # Each returns the new state, and how many nodes and edges the write reports.

    def upsert(self, people: dict[str, Person]) -> tuple[State, int, int]:
        return State(self.people | people, self.links).checked(), len(people), 0

    def link(self, links: list[Link]) -> tuple[State, int, int]:
        return State(self.people, (*self.links, *links)).checked(), 0, len(links)

    def pair(self, a: str, b: str) -> tuple[State, int, int]:
        people = self.people | {a: (None, None), b: (None, None)}
        return State(people, (*self.links, (a, b))).checked(), 2, 1

    def update(
        self, matches: Callable[[str, Person], bool], change: Callable[[Person], Person]
    ) -> tuple[State, int, int]:
        changed = {n: change(p) for n, p in self.people.items() if matches(n, p)}
        return State(self.people | changed, self.links).checked(), len(changed), 0

    def delete(self, matches: Callable[[str, Person], bool]) -> tuple[State, int, int]:
        kept = {n: p for n, p in self.people.items() if not matches(n, p)}
        links = tuple(link for link in self.links if all(end in kept for end in link))
        state = State(kept, links)
        return state, len(self.people) - len(kept), len(self.links) - len(links)

    def unlink(self, source: str) -> tuple[State, int, int]:
        links = tuple(link for link in self.links if link[0] != source)
        return State(self.people, links), 0, len(self.links) - len(links)

    def load(self, mode: str, people: dict[str, Person], links: list[Link]) -> State:
        if mode == "overwrite":
            new = State(people or self.people, tuple(links) or self.links)
            return new.checked()
        if mode == "append" and self.people.keys() & people.keys():
            raise Refused
        return State(self.people | people, (*self.links, *links)).checked()
