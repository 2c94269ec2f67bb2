"""One HTTP endpoint: the role it needs, what it takes and returns. The OpenAPI document is made from these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from ..core.outcome import refuse_constant
from ..errors import HandrailError, StoreError, ToolError
from ..types import JsonDict
from .tokens import Role, Who

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from .shared_state import Served

# Every answer carries them, refusals included: they forbid a browser what our page does not need.
SECURITY_HEADERS: dict[str, str] = json.loads(Path(__file__).with_name("security_headers.json").read_text("utf-8"))
ANYTHING: JsonDict = {"type": "object"}


class HttpError(Exception):
    """An error answer. `kind` is for programs and stays stable."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class RequestContext(NamedTuple):
    """A request that was authorized and parsed."""

    served: Served
    who: Who
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    request: Request


Answer = Any  # a value for JSON, or a Response
Handler = Callable[[RequestContext], Answer]  # a coroutine function, or a function that may block and runs on a thread


class Endpoint:
    """Decorates its handler. `answer`, `body` and each of `query` are JSON Schemas; query values are parsed from text by theirs.

    `streams`: on request it answers with events instead of `media`. `detail` says in a few words what a request is about, for
    the audit.
    """

    handler: Handler

    def __init__(
        self,
        method: str,
        path: str,
        answer: JsonDict = ANYTHING,
        *,
        role: Role | None = Role.WATCH,
        body: JsonDict | None = None,
        media: str = "application/json",
        streams: bool = False,
        detail: Callable[[RequestContext], str] = lambda _: "",
        **query: JsonDict,
    ) -> None:
        self.method, self.path, self.answer, self.role = method, path, answer, role
        self.body, self.media, self.streams, self.detail, self.query = body, media, streams, detail, query

    def __call__(self, handler: Handler) -> Endpoint:
        self.handler = handler
        return self

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[0]

    @cached_property
    def _body_check(self) -> jsonschema_rs.Draft202012Validator:
        return jsonschema_rs.Draft202012Validator(self.body or {})

    def read_body(self, data: bytes) -> Any:
        """Raises HttpError."""
        try:
            value = json.loads(data, parse_constant=refuse_constant)
            if b"\\ud" in data.lower():  # surrogates must come in pairs
                json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise HttpError(400, "invalid_json", "the body is not JSON") from None
        if (problem := next(iter(self._body_check.iter_errors(value)), None)) is not None:
            where = "/".join(map(str, problem.instance_path))
            raise HttpError(422, "invalid_body", f"{where or 'the body'}: {problem.message}")
        return value

    def read_query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Raises HttpError."""
        if unknown := sorted(set(given) - set(self.query)):
            known = ", ".join(self.query) or "none"
            raise HttpError(422, "invalid_query", f"unknown: {', '.join(unknown)}; known: {known}")
        read = {name: schema["default"] for name, schema in self.query.items() if "default" in schema}
        for name, text in given.items():
            schema = self.query[name]
            value: Any = text
            if schema["type"] == "integer":
                if not text.isascii() or not text.removeprefix("-").isdigit():
                    raise HttpError(422, "invalid_query", f"{name}: {text[:50]!r} is not a whole number")
                value = int(text[:30])
            elif schema["type"] == "boolean":
                value = {"true": True, "false": False, "1": True, "0": False}.get(text, text)
            if not jsonschema_rs.is_valid(schema, value):
                raise HttpError(422, "invalid_query", f"{name}: {text[:50]!r} does not fit its schema")
            read[name] = value
        return read


def as_response(value: Answer, status: int = 200) -> Response:
    from starlette.responses import Response

    if isinstance(value, Response):
        return value
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    # Lone surrogates come from file names and programs, and are not valid UTF-8.
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def refusal(error: Exception) -> Response:
    """The error answer for an exception, in the format of all error answers."""
    status, kind = 500, "internal"
    if isinstance(error, HttpError):
        status, kind = error.status, error.kind
    elif isinstance(error, ToolError):
        status, kind = 422, error.error_type
    elif isinstance(error, StoreError):
        status, kind = 503, "store"
    elif isinstance(error, LookupError) and isinstance(error, HandrailError):
        status, kind = 404, "not_found"
    elif isinstance(error, HandrailError):
        status, kind = 422, "refused"
    message = "something went wrong; see the server's log" if kind == "internal" else str(error)
    response = as_response({"error": message, "error_type": kind}, status)
    response.headers.update(SECURITY_HEADERS)  # some refusals leave before the layer that adds them
    return response
