"""Who searches the web: one module a backend, found by being here.

A module has `PRIORITY` (the lowest that can be used is taken), `KEY` (the environment variable with its key, or ""), `URL`
(where it is, or "" when only the user knows), `MODULES` (what must be installed), and `search(query, limit, service)`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import TYPE_CHECKING

from ....errors import ConfigError
from ....types import Unavailable
from ..settings import missing
from .service import Backend, Hit, Service

if TYPE_CHECKING:
    from ....config.web import WebConfig

__all__ = ["Backend", "Hit", "choose", "search"]

_HELPERS = ("service",)


def backends() -> dict[str, Backend]:
    """All there are, by name, the first to ask first."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.name not in _HELPERS]
    modules: dict[str, Backend] = {name: importlib.import_module(f".{name}", __name__) for name in names}
    return dict(sorted(modules.items(), key=lambda item: item[1].PRIORITY))


def choose(config: WebConfig) -> tuple[str, Backend] | Unavailable:
    """The backend that the configuration means, or what is missing for one."""
    known = backends()
    if config.search != "auto":
        if config.search not in known:
            raise ConfigError(f"unknown search {config.search!r}; known: auto, {', '.join(known)}", key="web.search")
        found = _lack(config.search, known[config.search], config)
        return (config.search, known[config.search]) if found is None else found
    lack = Unavailable("no way to search is set up")
    for name, backend in known.items():
        found = _lack(name, backend, config)
        if found is None:
            return name, backend
        lack = found
    return lack


async def search(query: str, limit: int, config: WebConfig) -> tuple[str, list[Hit]] | Unavailable:
    """What was found, and who found it."""
    chosen = choose(config)
    if isinstance(chosen, Unavailable):
        return chosen
    name, backend = chosen
    service = Service(name, _url(name, backend, config), os.environ.get(backend.KEY, ""), config.timeout)
    return name, await backend.search(query, limit, service)


def _lack(name: str, backend: Backend, config: WebConfig) -> Unavailable | None:
    if backend.KEY and not os.environ.get(backend.KEY):
        return Unavailable(f"{backend.KEY} is not set", f"set it to your key for {name}")
    if not backend.MODULES and not _url(name, backend, config):
        return Unavailable(f"the address of {name} is not set", f"set web.search_urls.{name} in config.yaml")
    return missing("web", "httpx", *backend.MODULES)


def _url(name: str, backend: Backend, config: WebConfig) -> str:
    return config.search_urls.get(name) or os.environ.get(f"{name.upper()}_URL") or backend.URL
