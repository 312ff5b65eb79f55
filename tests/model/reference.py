"""A graph of plain dicts: what every write must do, said as shortly as it can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
edge Knows: Person -> Person @card(0..2)
edge Likes: Person -> Person @card(0..2) { much: I32?  @key(src, dst) }
"""

EDGES_MAX = 2

Person = tuple[int | None, str | None]
Link = tuple[str, str]
Likes = dict[Link, int | None]


class Refused(Exception):
    """The write breaks a rule; the state is as it was."""


@dataclass(frozen=True)
class State:
    """One branch: people by name with age and email, links with parallels, one like per pair."""

    people: dict[str, Person] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    likes: Likes = field(default_factory=dict)

    def checked(self) -> State:
        emails = [email for _, email in self.people.values() if email is not None]
        sources = [[source for source, _ in edges] for edges in (self.links, self.likes)]
        if (
            len(emails) != len(set(emails))
            or any(end not in self.people for link in (*self.links, *self.likes) for end in link)
            or any(some.count(source) > EDGES_MAX for some in sources for source in some)
        ):
            raise Refused
        return replace(self, links=tuple(sorted(self.links)))

    # Each returns the new state, and how many nodes and edges the write reports.

    def upsert(self, people: dict[str, Person]) -> tuple[State, int, int]:
        return replace(self, people=self.people | people).checked(), len(people), 0

    def link(self, links: list[Link]) -> tuple[State, int, int]:
        return replace(self, links=(*self.links, *links)).checked(), 0, len(links)

    def like(self, likes: list[tuple[Link, int | None]]) -> tuple[State, int, int]:
        return replace(self, likes=self.likes | dict(likes)).checked(), 0, len(likes)

    def dislike(self, link: Link) -> tuple[State, int, int]:
        likes = {each: much for each, much in self.likes.items() if each != link}
        return replace(self, likes=likes), 0, len(self.likes) - len(likes)

    def pair(self, a: str, b: str) -> tuple[State, int, int]:
        people = self.people | {a: (None, None), b: (None, None)}
        return replace(self, people=people, links=(*self.links, (a, b))).checked(), 2, 1

    def update(
        self, matches: Callable[[str, Person], bool], change: Callable[[Person], Person]
    ) -> tuple[State, int, int]:
        changed = {n: change(p) for n, p in self.people.items() if matches(n, p)}
        return replace(self, people=self.people | changed).checked(), len(changed), 0

    def put_ages(self, ages: list[tuple[str, int | None]]) -> tuple[State, int, int]:
        """Upsert people by name, one after the other; the email of those who are there stays."""
        people = dict(self.people)
        for name, age in ages:
            people[name] = (age, people.get(name, (None, None))[1])
        return replace(self, people=people).checked(), len(ages), 0

    def put_link(self, link: Link) -> tuple[State, int, int]:
        """Upsert a link by its ends: parallel ones count, and none is added."""
        found = self.links.count(link)
        return (self.checked(), 0, found) if found else self.link([link])

    def set_like(self, link: Link, much: int | None) -> tuple[State, int, int]:
        if link not in self.likes:
            return self, 0, 0
        return replace(self, likes=self.likes | {link: much}).checked(), 0, 1

    def cut(self, matches: Callable[[Link], bool]) -> tuple[State, int, int]:
        """Delete links; parallel ones each count."""
        kept = tuple(link for link in self.links if not matches(link))
        return replace(self, links=kept), 0, len(self.links) - len(kept)

    def grow_known(self) -> tuple[State, int, int]:
        """Everyone who is known grows by one, however many know them."""
        known = {target for _, target in self.links}
        return self.update(lambda n, _: n in known, lambda p: ((p[0] or 0) + 1, p[1]))

    def copy_ages(self) -> tuple[State, int, int]:
        """Everyone who is known gets the age of those who know them, if they agree on one."""
        ages: dict[str, set[int | None]] = {}
        for source, target in self.links:
            ages.setdefault(target, set()).add(self.people[source][0])
        if any(len(each) > 1 for each in ages.values()):
            raise Refused
        changed = {n: (age, self.people[n][1]) for n, (age,) in ages.items()}
        return replace(self, people=self.people | changed).checked(), len(changed), 0

    def delete(self, matches: Callable[[str, Person], bool]) -> tuple[State, int, int]:
        kept = {n: p for n, p in self.people.items() if not matches(n, p)}
        links = tuple(link for link in self.links if all(end in kept for end in link))
        likes = {link: much for link, much in self.likes.items() if all(e in kept for e in link)}
        gone = len(self.links) - len(links) + len(self.likes) - len(likes)
        return State(kept, links, likes), len(self.people) - len(kept), gone

    def unlink(self, source: str) -> tuple[State, int, int]:
        links = tuple(link for link in self.links if link[0] != source)
        return replace(self, links=links), 0, len(self.links) - len(links)

    def load(self, mode: str, people: dict[str, Person], links: list[Link], likes: Likes) -> State:
        if mode == "overwrite":
            new = State(people or self.people, tuple(links) or self.links, likes or self.likes)
            return new.checked()
        known = self.people.keys() & people.keys() or self.likes.keys() & likes.keys()
        if mode == "append" and known:
            raise Refused
        merged = State(self.people | people, (*self.links, *links), self.likes | likes)
        return merged.checked()
