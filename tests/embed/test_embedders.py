"""Providers are asked over real HTTP, tried again when that helps, and checked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omnigraph.embed import (
    EmbedColumn,
    EmbedConfig,
    EmbedSource,
    Provider,
    embed_query_text,
    embedder_of_documents,
    make_embedder,
)
from omnigraph.embed.embedder import unit_vectors
from omnigraph.embed.mock import MockEmbedder
from omnigraph.embed.openai import BATCH_CHARACTERS_MAX, BATCH_TEXTS_MAX, batches
from omnigraph.embed.source import read_settings
from omnigraph.errors import EmbeddingFailed, EmbeddingModelMismatch, EmbeddingNotConfigured
from tests.embed.provider import KEY, Reply, Request, gemini_reply, openai_reply, serving


def unit(*components: float) -> list[float]:
    vector = np.array(components, dtype=np.float64)
    return [float(one) for one in (vector / np.linalg.norm(vector)).astype(np.float32)]


def openai(request: Request, number: int) -> Reply:
    return openai_reply(request, number)


# The mock


def mock_by_hand(text: str, dimension: int) -> list[float]:
    """The recipe, one number at a time."""
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = ((state ^ byte) * 0x100000001B3) % 2**64
    components = []
    for _ in range(dimension):
        state ^= (state << 13) % 2**64
        state ^= state >> 7
        state ^= (state << 17) % 2**64
        components.append(float(np.float32(state / (2**64 - 1)) * np.float32(2) - np.float32(1)))
    return unit(*components)


@pytest.mark.parametrize("text", ["", "hello", "Grüße, 世界"])
def test_the_mock_follows_its_recipe(text: str) -> None:
    mock = MockEmbedder()

    assert mock.embed_query(text, 8) == mock_by_hand(text, 8)
    assert mock.embed_documents(["other", text], 8)[1].tolist() == mock_by_hand(text, 8)


def test_the_mock_is_the_same_in_another_process() -> None:
    code = (
        "from omnigraph.embed.mock import MockEmbedder; print(MockEmbedder().embed_query('x', 4))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == str(MockEmbedder().embed_query("x", 4))


# The wire


def test_openai_sends_a_bearer_key_and_sorts_the_reply_by_index() -> None:
    with serving(openai) as provider:
        embedder = make_embedder(provider.config())
        vectors = embedder.embed_documents(["a", "bbb"], 2)

    assert vectors.dtype == np.float32
    assert vectors.tolist() == [unit(1, 1), unit(3, 1)]
    (request,) = provider.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "m-1", "input": ["a", "bbb"], "dimensions": 2}
    assert embedder.model == "m-1"


def test_gemini_tells_queries_from_documents() -> None:
    with serving(gemini_reply) as provider:
        embedder = make_embedder(provider.config(Provider.GEMINI))
        documents = embedder.embed_documents(["a" * n for n in range(1, 20)], 2)
        query = embedder.embed_query("hi", 2)

    assert documents.tolist() == [unit(n, 1) for n in range(1, 20)]
    assert query == unit(2, 1)
    asked = provider.requests[-1]
    assert asked.path == "/v1/models/m-1:embedContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body == {
        "model": "models/m-1",
        "content": {"parts": [{"text": "hi"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 2,
    }
    tasks = {request.body["taskType"] for request in provider.requests[:-1]}
    assert tasks == {"RETRIEVAL_DOCUMENT"}


def test_many_documents_go_in_batches_and_come_back_in_order() -> None:
    texts = ["x" * (1 + number % 7) for number in range(2 * BATCH_TEXTS_MAX + 5)]

    with serving(openai) as provider:
        vectors = make_embedder(provider.config()).embed_documents(texts, 2)

    assert [len(request.body["input"]) for request in provider.requests] == [128, 128, 5]
    assert vectors.tolist() == [unit(1 + number % 7, 1) for number in range(len(texts))]


def test_a_batch_is_bounded_in_size_and_a_long_text_goes_alone() -> None:
    long = "x" * (BATCH_CHARACTERS_MAX + 1)

    assert list(batches(["a", long, "b", "c"])) == [["a"], [long], ["b", "c"]]
    assert list(batches([])) == []


def test_no_texts_make_no_request() -> None:
    with serving(openai) as provider:
        vectors = make_embedder(provider.config()).embed_documents([], 3)
        none = make_embedder(provider.config(Provider.GEMINI)).embed_documents([], 3)

    assert vectors.shape == none.shape == (0, 3)
    assert provider.requests == []


# Trying again


def failing(*replies: Reply) -> Callable[[Request, int], Reply]:
    """These replies first, then good ones."""

    def answer(request: Request, number: int) -> Reply:
        return replies[number] if number < len(replies) else openai_reply(request)

    return answer


@pytest.mark.parametrize(
    "trouble",
    [
        Reply({"error": {"message": "slow down"}}, 429),
        Reply({"error": "busy"}, 503),
        Reply(b"<html>", 500),
        Reply(hangs=True),
    ],
    ids=["429", "503", "500", "timeout"],
)
def test_a_transient_failure_is_retried(trouble: Reply) -> None:
    with serving(failing(trouble, trouble)) as provider:
        vector = make_embedder(provider.config(timeout_ms=200)).embed_query("ab", 2)

    assert vector == unit(2, 1)
    assert len(provider.requests) == 3


def test_attempts_are_counted_and_the_last_reason_is_given() -> None:
    with serving(failing(*[Reply({"error": {"message": "no capacity"}}, 503)] * 9)) as provider:
        embedder = make_embedder(provider.config())
        with pytest.raises(EmbeddingFailed, match=r"answered 503: no capacity \(4 attempts\)"):
            embedder.embed_query("a", 2)

    assert len(provider.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_retried(status: int) -> None:
    reply = Reply({"error": {"message": "unknown model"}}, status)
    with serving(failing(reply)) as provider:
        embedder = make_embedder(provider.config())
        with pytest.raises(EmbeddingFailed, match=f"{status}: unknown model"):
            embedder.embed_query("a", 2)

    assert len(provider.requests) == 1


def test_the_deadline_ends_a_call_before_its_attempts_do() -> None:
    """The provider asks for an hour of patience; the deadline is shorter."""
    with serving(failing(Reply({}, 429, {"retry-after": "3600"}))) as provider:
        embedder = make_embedder(provider.config(deadline_ms=2_000))
        with pytest.raises(EmbeddingFailed, match=r"429 \(1 attempts\)"):
            embedder.embed_query("a", 2)


def test_a_call_without_deadline_waits_as_the_provider_asks() -> None:
    with serving(failing(Reply({}, 429, {"retry-after": "0"}))) as provider:
        vector = make_embedder(provider.config(deadline_ms=0)).embed_query("ab", 2)

    assert vector == unit(2, 1)


def test_a_provider_that_is_not_there_is_named() -> None:
    with serving(openai) as provider:
        gone = provider.config(retry_attempts=2)

    with pytest.raises(EmbeddingFailed, match=r"127.0.0.1.* could not be reached") as raised:
        make_embedder(gone).embed_query("a", 2)

    assert KEY not in str(raised.value)


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://host", "http://host:port"])
def test_an_address_that_is_none_names_the_variable(url: str) -> None:
    config = EmbedConfig(Provider.OPENAI, "m", url, KEY, retry_backoff_ms=0)

    with pytest.raises(EmbeddingFailed, match="check OMNIGRAPH_EMBED_BASE_URL") as raised:
        make_embedder(config).embed_query("a", 2)

    assert KEY not in str(raised.value)


# Checking


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        [],
        {"data": None},
        {"data": []},
        {"data": [{"index": 1, "embedding": [1, 1]}]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [None, 1]}]},
        {"data": [{"index": 0, "embedding": [10**400, 1]}]},
        {"data": [{"index": 0, "embedding": [1, 1]}, {"index": 1, "embedding": [1, 1]}]},
    ],
)
def test_a_reply_of_another_shape_is_refused(body: Any) -> None:
    with serving(lambda *_: Reply(body)) as provider:
        embedder = make_embedder(provider.config())
        with pytest.raises(EmbeddingFailed, match="sent a reply that is not"):
            embedder.embed_query("a", 2)

    assert len(provider.requests) == 1


@pytest.mark.parametrize("body", [{}, {"embedding": {"values": ["x"]}}, [1], None])
def test_a_gemini_reply_of_another_shape_is_refused(body: Any) -> None:
    with serving(lambda *_: Reply(body)) as provider:
        embedder = make_embedder(provider.config(Provider.GEMINI))
        with pytest.raises(EmbeddingFailed, match="not an embedding"):
            embedder.embed_documents(["a", "b"], 2)


@pytest.mark.parametrize(
    ("vector", "words"),
    [
        ([1.0, 2.0, 3.0], "3 components, expected 2"),
        ([0.0, 0.0], "no length"),
        ([float("nan"), 1.0], "not finite"),
        ([float("inf"), 1.0], "not finite"),
        ([1e200, 1e200], "not finite"),
    ],
)
def test_a_vector_that_cannot_be_stored_is_refused(vector: list[float], words: str) -> None:
    with pytest.raises(EmbeddingFailed, match=words):
        unit_vectors([vector], 2)


@pytest.mark.parametrize("status", [401, 500])
def test_the_key_is_never_shown(status: int) -> None:
    """Not even when the provider repeats it."""
    reply = Reply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, status)
    with serving(lambda *_: reply) as provider:
        embedder = make_embedder(provider.config())
        with pytest.raises(EmbeddingFailed) as raised:
            embedder.embed_query("a", 2)

    assert "Incorrect API key provided: ***." in str(raised.value)
    assert KEY not in repr(embedder)
    assert KEY not in str(raised.value)


def test_a_key_that_fits_no_header_is_not_shown() -> None:
    config = EmbedConfig(Provider.OPENAI, "m", "http://127.0.0.1:9", "ключ", retry_backoff_ms=0)

    with pytest.raises(EmbeddingFailed) as raised:
        make_embedder(config).embed_query("a", 2)

    assert "ключ" not in str(raised.value)


# Queries


def test_a_text_query_needs_a_provider() -> None:
    with pytest.raises(EmbeddingNotConfigured, match="set OMNIGRAPH_EMBED_PROVIDER"):
        embed_query_text(None, "text", EmbedColumn("vector", "body", 4, nullable=True))


def test_a_query_is_embedded_by_the_model_that_the_property_records() -> None:
    settings = {"OMNIGRAPH_EMBED_PROVIDER": "mock", "OMNIGRAPH_EMBED_MODEL": "m-2"}
    source = EmbedSource(read_settings(settings))
    column = EmbedColumn("vector", "body", 4, nullable=True)

    same = embed_query_text(source, "text", replace(column, model="m-2"))
    unrecorded = embed_query_text(source, "text", column)

    assert same == unrecorded == MockEmbedder().embed_query("text", 4)
    with pytest.raises(EmbeddingModelMismatch, match=r"'m-1'.* uses 'm-2'") as raised:
        embed_query_text(source, "text", replace(column, model="m-1"))
    assert (raised.value.recorded, raised.value.configured) == ("m-1", "m-2")
    assert raised.value.http_status == 400


@pytest.mark.parametrize(
    ("environment", "embeds"),
    [
        ({"OPENAI_API_KEY": "k"}, False),
        ({"OPENROUTER_API_KEY": "k"}, False),
        ({"OPENAI_API_KEY": "k", "OMNIGRAPH_EMBED_PROVIDER": "openai"}, True),
        ({"OPENROUTER_API_KEY": "k", "OMNIGRAPH_EMBED_MODEL": "m"}, True),
        ({"OMNIGRAPH_EMBED_PROVIDER": "mock"}, True),
    ],
)
def test_a_key_alone_does_not_send_stored_text_anywhere(
    environment: dict[str, str], embeds: bool
) -> None:
    assert (embedder_of_documents(environment) is not None) is embeds
