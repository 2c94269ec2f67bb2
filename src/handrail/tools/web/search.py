"""Choose the search backend of `web_search`. The functions that ask them are in `search_services`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ...core.availability import missing
from ...errors import ConfigError
from ...types import Unavailable

if TYPE_CHECKING:
    from ...settings.schema import Config
    from ...settings.services import WebConfig
    from .search_services import Hit


class Facts(NamedTuple):
    """What a backend needs: the variable with its key, its address (empty: the user must give it), a package."""

    key: str = ""
    url: str = ""
    package: str = ""


# By the name of the function, in the order of preference. Kept here, so that listing tools imports no HTTP client.
BACKENDS = {
    "searxng": Facts(),
    "tavily": Facts(key="TAVILY_API_KEY", url="https://api.tavily.com"),
    "brave": Facts(key="BRAVE_API_KEY", url="https://api.search.brave.com"),
    "exa": Facts(key="EXA_API_KEY", url="https://api.exa.ai"),
    "ddgs": Facts(package="ddgs"),
}


def choose(config: WebConfig) -> str | Unavailable:
    """The backend to use by the configuration, or what is missing for one."""
    name = config.search
    if name != "auto":
        if name not in BACKENDS:
            raise ConfigError(f"unknown search {name!r}; known: auto, {', '.join(BACKENDS)}", key="web.search")
        lack = _lack(name, config)
        return name if lack is None else lack
    lack = None
    for name in BACKENDS:
        lack = _lack(name, config)
        if lack is None:
            return name
    assert lack is not None
    return lack  # of the last one, which is the easiest to get


def can_search(config: Config) -> Unavailable | bool:
    """The check of `web_search`."""
    chosen = choose(config.web)
    return chosen if isinstance(chosen, Unavailable) else True


async def search(name: str, query: str, limit: int, config: WebConfig) -> list[Hit]:
    """What the backend of that name finds."""
    from . import search_services  # listing tools imports this module, but not an HTTP client

    service = search_services.Service(name, _url(name, config), os.environ.get(BACKENDS[name].key, ""), config.timeout)
    backend: search_services.Backend = getattr(search_services, name)
    return await backend(query, limit, service)


def _lack(name: str, config: WebConfig) -> Unavailable | None:
    facts = BACKENDS[name]
    if facts.key and not os.environ.get(facts.key):
        return Unavailable(f"{facts.key} is not set", f"set it to your key for {name}")
    if not facts.package and not _url(name, config):
        return Unavailable(f"the address of {name} is not set", f"set web.search_urls.{name} in config.yaml")
    return missing("web", "httpx", *([facts.package] if facts.package else []))


def _url(name: str, config: WebConfig) -> str:
    return config.search_urls.get(name) or os.environ.get(f"{name.upper()}_URL") or BACKENDS[name].url
