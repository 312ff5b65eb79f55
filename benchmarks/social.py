"""A social graph, the same every time: people who follow each other, live in cities, like things.

100,000 people, 2.4 million follows with a few very popular people among them, 7,117 cities in 273
states of 3 countries, 41 interests. The nine questions over it are those of a public benchmark of
embedded graph databases, so that other systems can be asked the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

PEOPLE = 100_000
STATES = (13, 209, 51)
CITIES = (1_200, 1_300, 4_617)
LARGE_CITIES = (8, 12, 60)
COUNTRIES = ("Canada", "United Kingdom", "United States")
NAMED_INTERESTS = ("Photography", "Tennis", "Fine Dining")
INTERESTS = 41
DAY_1960, DAY_2005 = -3_653, 12_784

SCHEMA = """
node Person {
    key: I64 @key
    name: String
    gender: String
    birthday: Date
    age: I64
    is_married: Bool
}
node City { key: I64 @key  city: String  state: String  country: String  population: I32 }
node State { key: I64 @key  state: String  country: String }
node Country { key: I64 @key  country: String }
node Interest { key: I64 @key  interest: String }
edge Follows: Person -> Person
edge LivesIn: Person -> City @card(1..1)
edge HasInterest: Person -> Interest
edge CityIn: City -> State @card(1..1)
edge StateIn: State -> Country @card(1..1)
"""

QUERIES = """
query q1() {
    match { $p: Person  $f: Person  $f follows $p }
    return { $p.key as person, $p.name as name, count($f) as n } order { n desc } limit 3
}
query q2() {
    match { $p: Person  $f: Person  $c: City  $f follows $p  $p livesIn $c }
    return { $p.key as person, $c.city as city, $c.country as country, count($f) as n }
    order { n desc } limit 1
}
query q3($country: String) {
    match { $co: Country { country: $country }  $p livesIn $c  $c cityIn $s  $s stateIn $co }
    return { $c.city as city, avg($p.age) as n } order { n asc } limit 5
}
query q4($low: I64, $high: I64) {
    match { $p: Person  $p livesIn $c  $c cityIn $s  $s stateIn $co
            $p.age >= $low  $p.age <= $high }
    return { $co.country as country, count($p) as n } order { n desc } limit 3
}
query q5($gender: String, $city: String, $country: String, $interest: String) {
    match { $p: Person { gender: $gender }  $i: Interest { interest: $interest }
            $c: City { city: $city, country: $country }  $p hasInterest $i  $p livesIn $c }
    return { count($p) as n }
}
query q6($gender: String, $interest: String) {
    match { $p: Person { gender: $gender }  $i: Interest { interest: $interest }
            $p hasInterest $i  $p livesIn $c }
    return { $c.city as city, $c.country as country, count($p) as n } order { n desc } limit 5
}
query q7($country: String, $low: I64, $high: I64, $interest: String) {
    match { $s: State { country: $country }  $i: Interest { interest: $interest }
            $p livesIn $c  $c cityIn $s  $p hasInterest $i  $p.age >= $low  $p.age <= $high }
    return { $s.state as state, count($p) as n } order { n desc } limit 1
}
query q8() {
    match { $a: Person  $a follows $b  $b follows $c } return { count($a) as n }
}
query q9($below: I64, $above: I64) {
    match { $a: Person  $a follows $b  $b follows $c  $b.age < $below  $c.age > $above }
    return { count($a) as n }
}
query point($key: I64) {
    match { $p: Person { key: $key } } return { $p.key, $p.name, $p.age }
}
query hop1($key: I64) {
    match { $p: Person { key: $key }  $p follows $q } return { count($q) as n }
}
query hop2($key: I64) {
    match { $p: Person { key: $key }  $p follows{1,2} $q } return { count($q) as n }
}
query hop3($key: I64) {
    match { $p: Person { key: $key }  $p follows{1,3} $q } return { count($q) as n }
}
"""
PARAMS: Mapping[str, Mapping[str, Any]] = {
    "q3": {"country": "United States"},
    "q4": {"low": 30, "high": 40},
    "q5": {
        "gender": "male",
        "city": "London",
        "country": "United Kingdom",
        "interest": "Fine Dining",
    },
    "q6": {"gender": "female", "interest": "Tennis"},
    "q7": {"country": "United States", "low": 23, "high": 30, "interest": "Photography"},
    "q9": {"below": 50, "above": 25},
}
QUESTIONS = tuple(f"q{number}" for number in range(1, 10))


def frames(people: int = PEOPLE) -> dict[str, pa.Table]:
    """Every type as a table; edges have `src` and `dst`, the keys of their ends as text."""
    random = np.random.default_rng(20_261_115)
    return {
        **_places(random),
        "Interest": pa.table({"key": np.arange(INTERESTS), "interest": _interests()}),
        **_people(random, people),
    }


def _interests() -> list[str]:
    return [*NAMED_INTERESTS, *(f"Interest {n}" for n in range(INTERESTS - len(NAMED_INTERESTS)))]


def _places(random: np.random.Generator) -> dict[str, pa.Table]:
    country_of_state = np.repeat(np.arange(3), STATES)
    country_of_city = np.repeat(np.arange(3), CITIES)
    first_state = np.concatenate([[0], np.cumsum(STATES)])[:3]
    state_of_city = first_state[country_of_city] + (
        random.random(sum(CITIES)) * np.array(STATES)[country_of_city]
    ).astype(np.int64)
    population = random.integers(5_000, 900_000, sum(CITIES))
    population[_large_cities()] = random.integers(1_000_000, 9_000_000, sum(LARGE_CITIES))
    names = [f"City {n}" for n in range(sum(CITIES))]
    names[int(_large_cities()[LARGE_CITIES[0]])] = "London"
    countries = np.array(COUNTRIES)
    cities = {
        "key": np.arange(sum(CITIES)),
        "city": names,
        "state": [f"State {n}" for n in state_of_city],
        "country": countries[country_of_city],
        "population": population.astype(np.int32),
    }
    states = {
        "key": np.arange(sum(STATES)),
        "state": [f"State {n}" for n in range(sum(STATES))],
        "country": countries[country_of_state],
    }
    return {
        "Country": pa.table({"key": np.arange(3), "country": list(COUNTRIES)}),
        "State": pa.table(states),
        "City": pa.table(cities),
        "CityIn": _edges(np.arange(sum(CITIES)), state_of_city),
        "StateIn": _edges(np.arange(sum(STATES)), country_of_state),
    }


def _large_cities() -> np.ndarray:
    """The cities people live in, spread over each country."""
    firsts = np.concatenate([[0], np.cumsum(CITIES)])[:3]
    spread = [
        first + np.arange(count) * (cities // count)
        for first, cities, count in zip(firsts, CITIES, LARGE_CITIES, strict=True)
    ]
    return np.concatenate(spread)


def _people(random: np.random.Generator, people: int) -> dict[str, pa.Table]:
    born = random.integers(DAY_1960, DAY_2005, people).astype(np.int32)
    persons = {
        "key": np.arange(people),
        "name": [f"Person {n % 1_500} {n // 7}" for n in range(people)],
        "gender": np.where(random.random(people) < 0.5, "female", "male"),
        "birthday": pa.array(born).cast(pa.date32()),
        "age": (20_089 - born.astype(np.int64)) // 365,
        "is_married": random.random(people) < 0.5,
    }
    likes = random.integers(1, 5, people)
    liked = np.unique(
        np.repeat(np.arange(people), likes) * INTERESTS
        + random.integers(0, INTERESTS, int(likes.sum()))
    )
    home = random.choice(_large_cities(), people)
    return {
        "Person": pa.table(persons),
        "LivesIn": _edges(np.arange(people), home),
        "HasInterest": _edges(*np.divmod(liked, INTERESTS)),
        "Follows": _edges(*_follows(random, people)),
    }


def _follows(random: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten each to anybody, and one person in two hundred with very many followers."""
    sources = [random.integers(0, people, 10 * people)]
    targets = [random.integers(0, people, 10 * people)]
    for popular in random.choice(people, max(1, people // 200), replace=False):
        count = int(random.integers(max(1, people // 200), max(2, people // 20)))
        sources.append(random.choice(people, count, replace=False))
        targets.append(np.full(count, popular))
    source, target = np.concatenate(sources), np.concatenate(targets)
    other = source != target
    pairs = np.unique(source[other].astype(np.int64) * people + target[other])
    return np.divmod(pairs, people)


def _edges(sources: np.ndarray, targets: np.ndarray) -> pa.Table:
    return pa.table(
        {
            "src": pa.array(sources.astype(np.int64)).cast(pa.utf8()),
            "dst": pa.array(targets.astype(np.int64)).cast(pa.utf8()),
        }
    )
