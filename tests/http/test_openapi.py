"""Requests made up from the OpenAPI document, right and wrong: every answer is one it announces.

`make torture` sends 5,000 of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from omnigraph.server.openapi import openapi_document
from tests.depth import IS_TORTURE
from tests.http.serving import Served, make_graph, served, single

pytestmark = pytest.mark.slow

DOCUMENT = openapi_document(is_single=True, is_open=True)
OPERATIONS = [
    (path, method) for path, operations in DOCUMENT["paths"].items() for method in operations
]
FLAT = [(path, method) for path, method in OPERATIONS if not path.startswith("/graphs/")]
WITH_BODY = ("post", "put")
EXAMPLES = 4
REQUESTS_TORTURE = 5_000


def ndjson_bytes(_: Any, value: Any) -> bytes:
    """A made-up batch: texts as they are, other values as a line of JSON."""
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    import schemathesis

    for media in ("application/x-ndjson", "application/octet-stream"):
        schemathesis.serializer(media)(ndjson_bytes)
    path = make_graph(tmp_path_factory.mktemp("fuzzed") / "graph")
    with served(single(path)) as server:
        yield server


def send_made_up_requests(
    server: Served, path: str, method: str, count: int, *, is_valid: bool
) -> None:
    # Not with the file: every worker imports this file, one makes up requests.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    mode = GenerationMode.POSITIVE if is_valid else GenerationMode.NEGATIVE
    rules = [
        not_a_server_error,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.status_code_conformance,
    ]
    operation = schemathesis.openapi.from_dict(DOCUMENT)[path][method.upper()]

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        response = case.call(base_url=server.url)
        case.validate_response(response, checks=rules)

    send()


@pytest.mark.parametrize(("path", "method"), FLAT)
def test_an_operation_answers_as_announced(fuzzed: Served, path: str, method: str) -> None:
    send_made_up_requests(fuzzed, path, method, EXAMPLES, is_valid=True)


@pytest.mark.parametrize(("path", "method"), [each for each in FLAT if each[1] in WITH_BODY])
def test_an_operation_refuses_as_announced(fuzzed: Served, path: str, method: str) -> None:
    send_made_up_requests(fuzzed, path, method, EXAMPLES, is_valid=False)


@pytest.mark.skipif(not IS_TORTURE, reason="`make torture` runs it")
@pytest.mark.parametrize(("path", "method"), OPERATIONS if IS_TORTURE else OPERATIONS[:1])
def test_five_thousand_made_up_requests_are_answered_as_announced(
    fuzzed: Served, path: str, method: str
) -> None:
    posts = sum(method in WITH_BODY for _, method in OPERATIONS)
    count = REQUESTS_TORTURE // (len(OPERATIONS) + posts) + 1
    send_made_up_requests(fuzzed, path, method, count, is_valid=True)
    if method in WITH_BODY:  # where there is something to get wrong
        send_made_up_requests(fuzzed, path, method, count, is_valid=False)
