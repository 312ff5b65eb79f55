"""Missing `@embed` vectors are made, others stay, and no provider is needed for nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.embed import EmbedColumn, Embedder, fill_vectors, make_embedder
from omnigraph.embed.mock import MockEmbedder
from omnigraph.errors import EmbeddingFailed, EmbeddingModelMismatch, EmbeddingNotConfigured
from tests.embed.provider import Reply, openai_reply, serving

WIDTH = 3
VECTOR = pa.list_(pa.field("item", pa.float32()), WIDTH)
OPTIONAL = EmbedColumn("vector", "body", WIDTH, nullable=True)
REQUIRED = EmbedColumn("vector", "body", WIDTH, nullable=False)
MOCK = MockEmbedder("m")


def rows(
    bodies: Sequence[str | None], vectors: Sequence[list[float] | None] | None = None
) -> pa.Table:
    columns = {
        "id": pa.array([f"n{number}" for number in range(len(bodies))]),
        "body": pa.array(bodies, pa.utf8()),
    }
    if vectors is not None:
        columns["vector"] = pa.array(vectors, VECTOR)
    return pa.table(columns)


def mock_vector(text: str) -> list[float]:
    return MOCK.embed_query(text, WIDTH)


def no_provider(column: EmbedColumn) -> Embedder | None:
    return None


def must_not_be_asked(column: EmbedColumn) -> Embedder | None:
    raise AssertionError("no vector is missing, so no embedder may be asked for")


@pytest.mark.accepts("S-077")
def test_a_missing_vector_is_made_from_its_source_and_others_stay() -> None:
    given = [None, [1.0, 2.0, 3.0], None, None, None]
    table = rows(["one", "two", None, "one", "  "], given)

    filled = fill_vectors(table, [OPTIONAL], lambda column: MOCK)

    one = mock_vector("one")
    assert filled.rows.column("vector").to_pylist() == [one, [1.0, 2.0, 3.0], None, one, None]
    assert filled.rows.schema == table.schema
    assert filled.rows.drop(["vector"]) == table.drop(["vector"])
    assert (filled.embedded, filled.left_null) == (2, 0)


def test_a_column_that_did_not_come_is_added() -> None:
    filled = fill_vectors(rows(["one", None]), [OPTIONAL], lambda column: MOCK)

    assert filled.rows.column("vector").to_pylist() == [mock_vector("one"), None]
    assert filled.rows.schema.field("vector") == pa.field("vector", VECTOR)


def test_chunks_and_slices_are_filled_alike() -> None:
    whole = rows(["a", "b", "c", "d"], [None, [1.0, 1.0, 1.0], None, None])
    chunked = pa.concat_tables([whole.slice(1, 1), whole.slice(2, 2)])

    filled = fill_vectors(chunked, [OPTIONAL], lambda column: MOCK)

    expected = [[1.0, 1.0, 1.0], mock_vector("c"), mock_vector("d")]
    assert filled.rows.column("vector").to_pylist() == expected


def test_several_columns_are_filled_each_from_its_own_source() -> None:
    table = rows(["one"], [None]).append_column("title", pa.array(["two"]))
    title = EmbedColumn("title_vector", "title", 2, nullable=False)

    filled = fill_vectors(table, [OPTIONAL, title], lambda column: MOCK)

    assert filled.embedded == 2
    assert filled.rows.column("title_vector").to_pylist() == [MOCK.embed_query("two", 2)]


@pytest.mark.parametrize(
    "table",
    [
        rows(["one"], [[1.0, 2.0, 3.0]]),
        rows([None, ""], [None, None]),
        rows([], []),
        pa.table({"id": ["a"], "vector": pa.nulls(1, VECTOR)}),
    ],
    ids=["given", "no text", "no rows", "no source column"],
)
def test_rows_that_lack_nothing_need_no_provider(table: pa.Table) -> None:
    filled = fill_vectors(table, [REQUIRED], must_not_be_asked)

    assert filled.rows is table
    assert (filled.embedded, filled.left_null) == (0, 0)


def test_with_no_provider_an_optional_vector_stays_null_and_is_counted() -> None:
    table = rows(["one", "two", None], [None, [1.0, 2.0, 3.0], None])

    filled = fill_vectors(table, [OPTIONAL], no_provider)

    assert filled.rows is table
    assert (filled.embedded, filled.left_null) == (0, 1)


def test_with_no_provider_a_required_vector_names_the_setting() -> None:
    with pytest.raises(
        EmbeddingNotConfigured, match=r"2 rows lack .*'vector'.* set OMNIGRAPH_EMBED_PROVIDER"
    ):
        fill_vectors(rows(["one", "two"], [None, None]), [REQUIRED], no_provider)


def test_another_model_than_the_property_records_is_refused() -> None:
    recorded = EmbedColumn("vector", "body", WIDTH, nullable=True, model="other")

    with pytest.raises(EmbeddingModelMismatch, match=r"'other'.* uses 'm'"):
        fill_vectors(rows(["one"], [None]), [recorded], lambda column: MOCK)


def test_equal_texts_are_sent_once() -> None:
    with serving(openai_reply) as provider:
        embedder = make_embedder(provider.config())
        filled = fill_vectors(
            rows(["aa", "b", "aa"], [None] * 3), [REQUIRED], lambda column: embedder
        )

    assert [request.body["input"] for request in provider.requests] == [["aa", "b"]]
    vectors = np.array(filled.rows.column("vector").to_pylist())
    assert filled.embedded == 3
    assert vectors[0].tolist() == vectors[2].tolist() != vectors[1].tolist()


def test_a_provider_that_fails_fails_the_whole_fill() -> None:
    with serving(lambda *_: Reply({"error": "no"}, 400)) as provider:
        embedder = make_embedder(provider.config())
        with pytest.raises(EmbeddingFailed):
            fill_vectors(rows(["one"], [None]), [OPTIONAL], lambda column: embedder)
