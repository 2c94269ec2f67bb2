"""The tools `web_search` and `web_extract`: find pages, and read them."""

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.availability import missing, usable_unless
from ...core.builtin import family, integer, registry, text, texts
from ...errors import ConfigError
from ...settings.schema import Config
from ...settings.services import WebConfig
from ...types import Unavailable

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
        if (lack := _lack(name, config)) is None:
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
registry.register(
    **_tool(
        "web_extract",
        "Read web pages, PDFs and office files as Markdown, several at once. Only public addresses. For pages that need "
        "clicks or scripts use `browser_navigate`.",
        ("urls",),
        urls=texts("The addresses, in full.", min_chars=1, minItems=1, maxItems=20),
        max_chars=integer("Characters of each page at most (20000).", minimum=100, maximum=1000000),
    ),
    check_fn=lambda: usable_unless(missing("web", "httpx", "trafilatura")),
    emoji="📄",
    timeout=180,
    example={"urls": ["https://rails.example/handrails", "https://rails.example/manual.pdf"], "max_chars": 5000},
)
