"""The HTTP API: one module per resource, each with its `ENDPOINTS`."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..endpoint import Endpoint

RESOURCES = (
    "about",
    "login",
    "tools",
    "calls",
    "approvals",
    "processes",
    "effects",
    "sessions",
    "policy",
    "events",
    "completions",
    "paired_people",
)


@cache
def endpoints() -> tuple[Endpoint, ...]:
    return tuple(endpoint for name in RESOURCES for endpoint in import_module(f"{__name__}.{name}").ENDPOINTS)
