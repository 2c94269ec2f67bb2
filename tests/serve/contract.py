"""Hold what the server answers against what its OpenAPI page says."""

from __future__ import annotations

import re
from functools import cache

import httpx
import jsonschema_rs

from handrail.serve.http import document


def check(response: httpx.Response) -> None:
    """Whether the page knows of this answer: its status, its kind, its form. What is not on the page is not looked at."""
    method, path = response.request.method.lower(), response.request.url.path
    template = next((each for each in document()["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path)), "")
    operation = document()["paths"].get(template, {}).get(method)
    if operation is None:
        return
    status = str(response.status_code)
    assert status in operation["responses"], f"{method} {path}: nothing is said of the status {status}"
    content = operation["responses"][status]["content"]
    kind = response.headers.get("content-type", "").partition(";")[0]
    assert kind in content or status == "303", f"{method} {path}: nothing is said of the kind {kind!r}"
    if kind == "application/json":
        response.read()
        problem = next(iter(_validator(template, method, status).iter_errors(response.json())), None)
        assert problem is None, f"{method} {path}: {problem}"


@cache
def _validator(template: str, method: str, status: str) -> jsonschema_rs.Draft202012Validator:
    content = document()["paths"][template][method]["responses"][status]["content"]
    return jsonschema_rs.Draft202012Validator(
        {**content["application/json"]["schema"], "components": document()["components"]}
    )
