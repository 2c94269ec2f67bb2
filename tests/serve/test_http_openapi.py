"""The API is what its page says: whatever is sent, the answer is one that the page knows, and never a fault of ours."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from handrail.serve.http import document, endpoints
from handrail.serve.tokens import Role

from .conftest import TOKEN, Server

_ENDLESS = "/v1/events"
_OPERATIONS = [
    (method, path)
    for path, operations in document()["paths"].items()
    for method in operations
    # Who asks for these gets an answer that does not end.
    if path != _ENDLESS
]
_EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "2"))  # right ones, and wrong ones; `make soak` asks for more
_BOUNDED = hypothesis.settings(
    max_examples=_EXAMPLES, phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck)
)


@pytest.fixture(scope="module")
def page() -> Any:
    import schemathesis

    return schemathesis.openapi.from_dict(document(), config=schemathesis.Config())


@pytest.fixture(scope="module")
def line() -> Iterator[Any]:
    import requests

    with requests.Session() as made:
        yield made


@pytest.mark.parametrize(("method", "path"), _OPERATIONS)
def test_whatever_is_sent_the_answer_is_as_the_page_says(
    server: Server, page: Any, line: Any, method: str, path: str
) -> None:
    from schemathesis import GenerationMode, checks

    held = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    operation = page[path][method.upper()]

    def answer(case: Any) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        got = case.call(server.url, session=line, headers=headers, timeout=60)
        # A body that is too long is refused before anybody looks whether it is right.
        case.validate_response(got, held if got.status_code == 413 else [*held, checks.negative_data_rejection])

    for mode in GenerationMode:
        if mode.is_positive or _can_be_wrong(document()["paths"][path][method]):
            _BOUNDED(hypothesis.given(operation.as_strategy(mode))(answer))()


def _can_be_wrong(operation: Any) -> bool:
    return bool(operation["parameters"] or operation.get("requestBody"))


def test_a_token_is_needed_where_the_page_says_so_and_one_that_may(server: Server) -> None:
    stranger = server.as_()
    bodies = {role: {"name": role.word, "role": role.word} for role in Role}
    people = {
        role: server.as_(server.client.post("/v1/tokens", json=body).json()["token"]) for role, body in bodies.items()
    }
    for endpoint in endpoints():
        path = re.sub(r"\{.*?\}", "x", endpoint.path)
        operation = document()["paths"][endpoint.path.replace(":path}", "}")][endpoint.method.lower()]
        answer = stranger.request(endpoint.method, path)
        assert (answer.status_code == 401) == ("security" not in operation), path
        for role, person in people.items():
            if endpoint.role is not None and role < endpoint.role:
                answer = person.request(endpoint.method, path)
                assert (answer.status_code, answer.json()["error_type"]) == (403, "role"), path
                assert f"`{endpoint.role.word}`" in operation["description"]
