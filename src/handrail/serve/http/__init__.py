"""The HTTP API: one module per resource, each with its endpoints, and the OpenAPI document that is generated from them."""

import re
from functools import cache
from importlib import import_module

from ... import __version__
from ...types import JsonDict
from ..endpoint import Endpoint
from .shapes import TEXT, loose

RESOURCES = (
    "about login tools calls approvals processes effects sessions batches policy completions paired_people".split()
)
_ERROR = loose(error=TEXT, error_type=TEXT)
_EVENTS = "text/event-stream"
_EVENT = {
    "description": "One event of the stream. Its data is JSON.",
    "type": "object",
    "properties": {"event": TEXT, "id": TEXT, "data": TEXT},
}
_PROBLEM = {
    "description": "The error.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_REFUSALS = (400, 401, 403, 404, 408, 409, 413, 421, 422, 429, 502, 503)


@cache
def endpoints() -> tuple[Endpoint, ...]:
    found = [each for name in RESOURCES for each in vars(import_module(f"{__name__}.{name}")).values()]
    return tuple(each for each in found if isinstance(each, Endpoint))


@cache
def document() -> JsonDict:
    paths: dict[str, JsonDict] = {}
    for endpoint in endpoints():
        paths.setdefault(re.sub(r":path\}", "}", endpoint.path), {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Handrail", "version": __version__, "description": "The API of `handrail serve`."},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> JsonDict:
    names = re.findall(r"\{(\w+)", endpoint.path)
    named: JsonDict = {"in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    parameters = [{"name": name, **named} for name in names]
    for name, schema in endpoint.query.items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema})
    forms = {"application/json": endpoint.answer, _EVENTS: _EVENT}
    media = (endpoint.media, _EVENTS) if endpoint.streams else (endpoint.media,)
    content = {each: {"schema": forms.get(each, {"type": "string"})} for each in media}
    good = {"description": endpoint.summary or "Done.", "content": content}
    operation: JsonDict = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": "" if endpoint.role is None else f"Needs the role `{endpoint.role.word}`.",
        "parameters": parameters,
        "responses": {"200": good, **{str(status): _PROBLEM for status in _REFUSALS}},
    }
    if endpoint.role is None:
        operation["security"] = []
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": endpoint.body}}}
    return operation
