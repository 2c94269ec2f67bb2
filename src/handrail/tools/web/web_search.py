"""The tool `web_search`: find pages."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.availability import missing
from ...core.builtin import family, integer, registry, text
from ...errors import ConfigError
from ...types import Unavailable

if TYPE_CHECKING:
    from ...settings.schema import Config
    from ...settings.services import WebConfig

_tool = family("web", "handrail.tools.web.calls", is_async=True, read_only=True)


class Backend(NamedTuple):
    """A search service: the variable with its key, its address (empty: the user must give it) or its package; how it is asked,
    with the header for its key and its names for the query and the number of results; its names for the parts of a result."""

    key: str = ""
    url: str = ""
    package: str = ""
    path: str = ""
    is_post: bool = False
    key_header: str = ""
    query: str = "query"
    limit: str = ""
    fixed: Mapping[str, Any] = {}
    snippet: str = "content"
    published: str = ""
    marks: str = ""  # around matching words


@functools.cache
def backends() -> dict[str, Backend]:
    """In the order of preference."""
    table = json.loads(Path(__file__).with_name("backends.json").read_text("utf-8"))
    return {name: Backend(**facts) for name, facts in table.items()}


def choose(config: WebConfig) -> str | Unavailable:
    """The backend to use by the configuration, or what is missing for one."""
    if config.search not in ("auto", *backends()):
        raise ConfigError(f"unknown search {config.search!r}; known: auto, {', '.join(backends())}", key="web.search")
    lack = None
    for name in backends() if config.search == "auto" else [config.search]:
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
    facts = backends()[name]
    if facts.key and not os.environ.get(facts.key):
        return Unavailable(f"{facts.key} is not set", f"set it to your key for {name}")
    if not facts.package and not url_of(name, config):
        return Unavailable(f"the address of {name} is not set", f"set web.search_urls.{name} in config.yaml")
    return missing("web", "httpx", *([facts.package] if facts.package else []))


def url_of(name: str, config: WebConfig) -> str:
    return config.search_urls.get(name) or os.environ.get(f"{name.upper()}_URL") or backends()[name].url


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
