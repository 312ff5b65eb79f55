"""Search answers from the rows alone: the same with no index, a whole one, or one with a tail."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequestError
from omnigraph.executor.search import fuse, match_text, rank
from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache
from omnigraph.ir.expressions import Bm25, Constant, Nearest, PropertyRef, TextMatch
from omnigraph.storage import vectors
from omnigraph.storage.counters import counting
from omnigraph.types import PropertyType, Scalar
from tests.executor.searching import STATES, WIDTH, Row, State, Stored, store

TEXT = PropertyType(Scalar.STRING, nullable=True)
BODY = PropertyRef("d", "body", TEXT)
VECTOR = PropertyRef("d", "vector", PropertyType(Scalar.VECTOR, dimension=WIDTH, nullable=True))
ASKED = Constant("", TEXT)
SEARCH = TextMatch("search", BODY, ASKED)
MATCH_TEXT = TextMatch("match_text", BODY, ASKED)
FUZZY = TextMatch("fuzzy", BODY, ASKED)
BM25 = Bm25(BODY, ASKED)
NEAREST = Nearest(VECTOR, ASKED)

EARLY = [
    Row("a", "The running of the bulls"),
    Row("b", "He runs a café in Köln"),
    Row("c", None),
    Row("d", ""),
    Row("e", "graph databases and graph queries"),
    Row("f", "an old text about whales"),
    Row("g", "whales, graphs"),
    Row("h", "a graph"),
]
LATE = [
    Row("f", "a new text: Graph theory"),
    Row("i", "zebra crossings"),
    Row("j", "another graph"),
    Row("k", "running whales"),
]
GONE = ["g"]


@pytest.fixture(scope="module", params=STATES)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    state: State = request.param
    return store(tmp_path_factory.mktemp("texts"), state, EARLY, LATE, GONE)


def found(stored: Stored, match: TextMatch, query: str, max_edits: int | None = None) -> list[str]:
    return sorted(stored.ids(match_text(stored.view(), match, query, max_edits)))


def ranked(
    stored: Stored, query: str, among: Sequence[str] | None = None, limit: int | None = None
) -> list[str]:
    candidates = None if among is None else stored.positions(among)
    positions, _ = rank(stored.view(), BM25, query, candidates, limit)
    return stored.ids(positions)


def test_the_states_are_what_they_say(tmp_path: Path) -> None:
    """Otherwise the tests of this file would prove less than they claim."""
    covered = {
        state: {
            index.column: index.fragments_unindexed
            for index in stored.tables.indexes.describe(stored.handle)
        }
        for state in STATES
        for stored in [store(tmp_path, state, VECTORS_EARLY, [*LATE, *VECTORS_LATE], ["gone"])]
    }

    assert covered["no index"] == {}
    assert covered["whole index"] == {"body": 0, "vector": 0}
    assert set(covered["index with a tail"]) == {"body", "vector"}
    assert min(covered["index with a tail"].values()) > 0


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("run", ["a", "b", "k"]),
        ("RUNNING!", ["a", "b", "k"]),
        ("cafe", ["b"]),
        ("koln", ["b"]),
        ("Ko\u0308ln", ["b"]),
        ("graph", ["e", "f", "h", "j"]),
        ("zebra", ["i"]),
        ("whale", ["k"]),
        ("old", []),
        ("bulls zebra", ["a", "i"]),
        ("the", []),
        ("", []),
        ("—!?", []),
        ("absent", []),
    ],
)
def test_a_row_matches_when_any_token_of_the_query_does(
    stored: Stored, query: str, ids: list[str]
) -> None:
    """Whatever the index knows: updated rows by their new text, deleted rows not at all."""
    assert found(stored, SEARCH, query) == ids


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("graph", ["e", "f", "h", "j"]),
        ("graph queries", ["e"]),
        ("Graphs, QUERY!", ["e"]),
        ("queries graph", []),
        ("databases and graph", ["e"]),
        ("databases or graph", ["e"]),
        ("databases graph", []),
        ("running of the bulls", ["a"]),
        ("the running", ["a", "b", "k"]),
        ("running bulls", []),
        ("new text: Graph theory", ["f"]),
        ("old text", []),
        ("running whales", ["k"]),
        ("running whales whales", []),
        ("graph zebra", []),
        ("the", []),
        ("", []),
    ],
)
def test_a_phrase_is_found_where_its_words_follow_one_another(
    stored: Stored, query: str, ids: list[str]
) -> None:
    """In any of their forms. A stop word within stands for one word, at the ends for none."""
    assert found(stored, MATCH_TEXT, query) == ids


@pytest.mark.parametrize("seed", range(3))
def test_phrases_are_those_of_a_scan(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    words = ["run", "the", "graph", "graphs", "whale"]
    texts = {
        f"n{number:03}": " ".join(chance.choices(words, k=chance.randint(0, 9)))
        for number in range(80)
    }
    stored = store(tmp_path, "no index", rows_of(texts))

    for _ in range(20):
        query = " ".join(chance.choices(words, k=chance.randint(1, 4)))
        expected = [key for key, text in texts.items() if has_phrase(text, query)]
        assert found(stored, MATCH_TEXT, query) == expected, query


def has_phrase(text: str, query: str) -> bool:
    """Word by word, at every place of the text."""
    stems = {"graphs": "graph", "the": None}
    have = [stems.get(word, word) for word in text.split()]
    want = [stems.get(word, word) for word in query.split()]
    while want and want[0] is None:
        want.pop(0)
    while want and want[-1] is None:
        want.pop()
    places = range(len(have) - len(want) + 1)
    return bool(want) and any(
        all(word in (None, have[place + at]) for at, word in enumerate(want)) for place in places
    )


@pytest.mark.parametrize(
    ("query", "max_edits", "ids"),
    [
        ("runing", None, ["a", "k"]),
        ("zebar", None, ["i"]),
        ("zebar", 1, []),
        ("zebra", 0, ["i"]),
        ("graphs", 1, ["e", "f", "h", "j"]),
        ("wales", 1, ["k"]),
        ("caffé", 1, ["b"]),
        ("the", 2, []),
        ("", 2, []),
        ("zebrazebra", 2**70, ["a", "b", "e", "f", "h", "i", "j", "k"]),
    ],
)
def test_fuzzy_counts_edits_of_the_written_word(
    stored: Stored, query: str, max_edits: int | None, ids: list[str]
) -> None:
    """Also of words that only stand in rows the index has never seen."""
    assert found(stored, FUZZY, query, max_edits) == ids


def test_a_negative_number_of_edits_is_refused(stored: Stored) -> None:
    with pytest.raises(BadRequestError, match="0 or more, not -1"):
        found(stored, FUZZY, "zebra", -1)


@pytest.mark.accepts("S-173")
def test_relevance_ranks_by_bm25_and_leaves_out_rows_without_a_token(stored: Stored) -> None:
    rows, scores = rank(stored.view(), BM25, "graph", None, None)

    # Twice in four tokens beats once in two; equal rows go by id.
    assert stored.ids(rows) == ["h", "e", "j", "f"]
    assert scores[0] == pytest.approx(bm25_by_hand(rows=9, with_token=4, count=1, length=1))
    assert scores[1] == pytest.approx(bm25_by_hand(rows=9, with_token=4, count=2, length=4))


def bm25_by_hand(*, rows: int, with_token: int, count: int, length: int) -> float:
    # a: run bull; b: run cafe koln; d: -; e: graph databas graph queri; f: new text graph theori;
    # h: graph; i: zebra cross; j: anoth graph; k: run whale
    mean = (2 + 3 + 0 + 4 + 4 + 1 + 2 + 2 + 2) / 9
    idf = math.log(1 + (rows - with_token + 0.5) / (with_token + 0.5))
    return idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))


def test_a_ranking_is_the_best_of_the_candidates(stored: Stored) -> None:
    """Filters come before the limit: the best row overall is no candidate here."""
    assert ranked(stored, "graph", among=["j", "f", "a"], limit=1) == ["j"]
    assert ranked(stored, "graph", among=[]) == []
    assert ranked(stored, "graph", limit=2) == ["h", "e"]
    assert ranked(stored, "the") == []


def test_a_kept_structure_gives_the_same_answers_without_a_scan(stored: Stored) -> None:
    cache = RuntimeCache(2**20)
    first, scores = rank(stored.view(cache), BM25, "graph run", None, None)

    with counting() as counters:
        again, scores_again = rank(stored.view(cache), BM25, "graph run", None, None)

    assert counters.scans == 0
    assert again.tolist() == first.tolist()
    assert scores_again.tolist() == scores.tolist()
    assert 0 < cache.nbytes < 2**16


WORDS = [
    "graph",
    "graphs",
    "whale",
    "run",
    "running",
    "zebra",
    "the",
    "Köln",
    "x" * 50,
    "über—alles",
]


def oracle_tokens(text: str) -> list[str]:
    stems = {
        "graphs": "graph",
        "running": "run",
        "the": "",
        "Köln": "koln",
        "über—alles": "uber all",
    }
    return " ".join(stems.get(word, word) for word in text.split(" ")).split()


def oracle_ranking(texts: dict[str, str], query: str) -> list[str]:
    """BM25 the slow way."""
    documents = {key: Counter(oracle_tokens(text)) for key, text in texts.items()}
    mean = sum(counts.total() for counts in documents.values()) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for token in oracle_tokens(query):
        having = sum(token in counts for counts in documents.values())
        idf = math.log1p((len(documents) - having + 0.5) / (having + 0.5))
        for key, counts in documents.items():
            damping = 1.2 * (1 - 0.75 + 0.75 * counts.total() / mean)
            scores[key] += idf * counts[token] * 2.2 / (counts[token] + damping)
    matching = [key for key, score in scores.items() if score > 0]
    return sorted(matching, key=lambda key: (-scores[key], key))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_the_same_in_every_state_and_that_of_the_formula(
    tmp_path: Path, seed: int
) -> None:
    """The tail changes how common each word is; an index that ranked by its own rows would err."""
    chance = random.Random(seed)

    def text(words: Sequence[str]) -> str:
        return " ".join(chance.choice(words) for _ in range(chance.randint(1, 8)))

    early = {f"n{number:03}": text(WORDS) for number in range(60)}
    late = {f"n{number:03}": text(WORDS[:3]) for number in range(50, 90)}
    gone = [f"n{number:03}" for number in range(0, 90, 7)]
    texts = {key: body for key, body in (early | late).items() if key not in gone}
    states = [store(tmp_path, state, rows_of(early), rows_of(late), gone) for state in STATES]

    for query in ("graph whale", "running zebra Köln", "über—alles", "the graph graph run"):
        wanted = oracle_ranking(texts, query)
        assert [ranked(stored, query) for stored in states] == [wanted] * 3
        assert [found(stored, SEARCH, query) for stored in states] == [sorted(wanted)] * 3


@pytest.mark.parametrize("seed", range(3))
def test_the_best_few_are_the_first_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """To the last bit, whichever documents are left out because they cannot be among the best."""
    monkeypatch.setattr("omnigraph.executor.relevance.BLOCKS", 16)
    monkeypatch.setattr("omnigraph.executor.relevance.LOOK_UP_COST", [0, 1, 8][seed])
    chance = random.Random(seed)
    words = [f"w{int(chance.paretovariate(0.9))}" for _ in range(3_000)]
    texts = {
        f"n{at:04}": " ".join(chance.choices(words, k=chance.randint(1, 9))) for at in range(900)
    }
    view = store(tmp_path, "no index", rows_of(texts)).view()
    some = np.arange(0, view.size, 3)

    for _ in range(15):
        query = " ".join(chance.choices(words, k=chance.randint(1, 4)))
        for candidates in (None, some):
            every, scores = rank(view, BM25, query, candidates, None)
            for limit in (1, 5, 40):
                best, best_scores = rank(view, BM25, query, candidates, limit)
                assert best.tolist() == every[:limit].tolist(), query
                assert best_scores.tolist() == scores[:limit].tolist(), query


def rows_of(texts: dict[str, str]) -> list[Row]:
    return [Row(key, body) for key, body in texts.items()]


# Vectors


def near(*components: float) -> list[float]:
    return [*components, *[0.0] * (WIDTH - len(components))]


VECTORS_EARLY = [
    Row("v5", vector=near(5)),
    Row("v1", vector=near(1)),
    Row("v2", vector=near(2)),
    Row("none"),
    Row("hole", vector=[0.0] * (WIDTH - 1) + [None]),
    Row("moved", vector=near(0)),
    Row("gone", vector=near(0)),
    Row("tie-b", vector=near(0, 3)),
]
VECTORS_LATE = [
    Row("v0", vector=near(0.5)),
    Row("tie-a", vector=near(3)),
    Row("moved", vector=near(9)),
]


@pytest.fixture(scope="module", params=STATES)
def vectored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    state: State = request.param
    return store(tmp_path_factory.mktemp("vectors"), state, VECTORS_EARLY, VECTORS_LATE, ["gone"])


@pytest.fixture(params=["streamed", "kept"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "streamed":
        monkeypatch.setattr(vectors, "KEPT_COMPONENTS_MAX", 0)
    return bool(request.param == "kept")


def nearest_ids(
    stored: Stored,
    query: Sequence[float],
    among: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[str]:
    candidates = None if among is None else stored.positions(among)
    positions, _ = rank(stored.view(), NEAREST, query, candidates, limit)
    return stored.ids(positions)


def test_the_nearest_rows_come_first_and_ties_go_by_id(vectored: Stored, kept: bool) -> None:
    """Rows without a whole vector are left out; updated and deleted rows count as they are now."""
    every = nearest_ids(vectored, near(0))

    assert every == ["v0", "v1", "v2", "tie-a", "tie-b", "v5", "moved"]
    for limit in range(len(every) + 1):
        assert nearest_ids(vectored, near(0), limit=limit) == every[:limit]


def test_only_candidates_are_ranked(vectored: Stored, kept: bool) -> None:
    among = ["v5", "none", "tie-b", "tie-a", "hole"]

    assert nearest_ids(vectored, near(0), among, limit=2) == ["tie-a", "tie-b"]
    assert nearest_ids(vectored, near(0), []) == []


def test_distances_are_squared_and_l2(vectored: Stored, kept: bool) -> None:
    _, distances = rank(vectored.view(), NEAREST, near(1), None, 3)

    assert distances.tolist() == [0.0, 0.25, 1.0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([1.0], "1 components, the property has 7"),
        ([math.nan] * WIDTH, "not a finite F32"),
        ([math.inf] * WIDTH, "not a finite F32"),
        ([1e39] * WIDTH, "not a finite F32"),
    ],
)
def test_a_query_vector_that_cannot_be_compared_is_refused(
    vectored: Stored, query: list[float], words: str
) -> None:
    with pytest.raises(BadRequestError, match=words):
        nearest_ids(vectored, query, limit=1)


def test_vectors_far_apart_are_ranked_last_and_not_lost(tmp_path: Path, kept: bool) -> None:
    stored = store(tmp_path, "no index", [Row("far", vector=near(3e38)), Row("by", vector=near(1))])

    assert nearest_ids(stored, near(-3e38)) == ["by", "far"]


@pytest.mark.parametrize("candidates_taken", [True, False])
def test_equal_vectors_tie_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidates_taken: bool
) -> None:
    """In a stream of many batches, cut down as it goes, and with more ties than the limit."""
    monkeypatch.setattr(vectors, "BATCH_ROWS", 16)
    monkeypatch.setattr(vectors, "TAKE_ROWS_MAX", 10_000 if candidates_taken else 0)
    generator = np.random.default_rng(7)
    shared = generator.standard_normal(WIDTH).tolist()
    rows = [
        Row(
            f"n{number:04}",
            vector=shared if number % 3 else generator.standard_normal(WIDTH).tolist(),
        )
        for number in range(1_000)
    ]
    random.Random(7).shuffle(rows)
    stored = store(tmp_path, "no index", rows)
    query = shared[::-1]
    among = [row.id for row in rows if row.id < "n0800"]

    kept = nearest_ids(stored, query, among, limit=300)
    monkeypatch.setattr(vectors, "KEPT_COMPONENTS_MAX", 0)
    streamed = nearest_ids(stored, query, among, limit=300)

    assert streamed == kept
    ties = [one for one in streamed if int(one[1:]) % 3]
    assert ties == sorted(one for one in among if int(one[1:]) % 3)[: len(ties)]
    assert len(ties) > 100


@pytest.mark.accepts("S-172")
def test_beyond_the_exact_size_the_index_answers_and_the_tail_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_COMPONENTS_MAX", 0)
    stored = store(tmp_path, "index with a tail", VECTORS_EARLY, VECTORS_LATE, ["gone"])

    assert nearest_ids(stored, near(0), limit=3) == ["v0", "v1", "v2"]
    assert nearest_ids(stored, near(0), ["v5", "v2"], limit=1) == ["v2"]


def test_a_ranking_is_asked_in_its_own_kind(stored: Stored) -> None:
    with pytest.raises(BadRequestError, match="embed the text first"):
        rank(stored.view(), NEAREST, "text", None, 1)
    with pytest.raises(BadRequestError, match="bm25 needs a text"):
        rank(stored.view(), BM25, [1.0], None, 1)


# Fusion


def rows_at(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


@pytest.mark.accepts("S-174")
def test_fusion_adds_reciprocal_ranks() -> None:
    rows, scores = fuse(rows_at(10, 20, 30), rows_at(30, 40))

    assert rows.tolist() == [30, 10, 20, 40]
    assert scores.tolist() == [1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62]


def test_ties_of_a_fusion_keep_the_order_of_the_first_ranking() -> None:
    rows, _ = fuse(rows_at(1, 2, 3), rows_at(3, 2, 1), k=1)

    assert rows.tolist() == [1, 3, 2]


def test_a_row_that_repeats_counts_at_its_best_rank() -> None:
    rows, scores = fuse(rows_at(7, 7, 8), rows_at())

    assert rows.tolist() == [7, 8]
    assert scores.tolist() == [1 / 61, 1 / 62]


@pytest.mark.parametrize("k", [0, -1])
def test_a_fusion_needs_a_positive_k(k: int) -> None:
    with pytest.raises(BadRequestError, match="k > 0"):
        fuse(rows_at(1), rows_at(2), k)


POSITIONS = st.lists(st.integers(0, 20), unique=True)


@given(POSITIONS, POSITIONS, st.integers(1, 100))
def test_a_fusion_has_every_row_once_best_first(
    first: list[int], second: list[int], k: int
) -> None:
    rows, scores = fuse(rows_at(*first), rows_at(*second), k)

    assert sorted(rows.tolist()) == sorted({*first, *second})
    assert (np.diff(scores) <= 0).all()
