"""The tool `web_search`: find pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ...core.availability import missing
from ...core.builtin import family, integer, registry, text
from ...errors import ConfigError
from ...types import Unavailable

if TYPE_CHECKING:
    from ...settings.schema import Config
    from ...settings.services import WebConfig

_tool = family("web", "handrail.tools.web.calls", is_async=True, read_only=True)


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
    if config.search not in ("auto", *BACKENDS):
        raise ConfigError(f"unknown search {config.search!r}; known: auto, {', '.join(BACKENDS)}", key="web.search")
    lack = None
    for name in BACKENDS if config.search == "auto" else [config.search]:
        lack = _lack(name, config)
        if lack is None:
            return name
    assert lack is not None
    return lack  # of the last one, which is the easiest to get


def can_search(config: Config) -> Unavailable | bool:
    """The check of `web_search`."""
    chosen = choose(config.web)
    return chosen if isinstance(chosen, Unavailable) else True


def _lack(name: str, config: WebConfig) -> Unavailable | None:
    facts = BACKENDS[name]
    if facts.key and not os.environ.get(facts.key):
        return Unavailable(f"{facts.key} is not set", f"set it to your key for {name}")
    if not facts.package and not url_of(name, config):
        return Unavailable(f"the address of {name} is not set", f"set web.search_urls.{name} in config.yaml")
    return missing("web", "httpx", *([facts.package] if facts.package else []))


def url_of(name: str, config: WebConfig) -> str:
    return config.search_urls.get(name) or os.environ.get(f"{name.upper()}_URL") or BACKENDS[name].url


registry.register(
    **_tool(
        "web_search",
        "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        ("query",),
        query=text("What to look for, as you would type it."),
        limit=integer("Results at most (8).", minimum=1, maximum=20),
    ),
    check_fn=can_search,
    emoji="🔎",
    timeout=90,
    toolset_description="search the web and read pages",
    example={"query": "handrail climbing", "limit": 3},
)
