"""The settings of what reaches into the web: searching, reading pages, the browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .options import MIB, Section, named, option, seconds, size


class WebConfig(Section):
    """How the web is searched and read, and what of the private network may be reached."""

    allow_private: tuple[str, ...] = option(
        (),
        "Private addresses that the web tools and the browser may reach: networks such as 10.0.0.0/8, addresses and names, "
        "alone or with a port such as 127.0.0.1:8080.",
    )
    search: str = option(
        "auto",
        "Who searches: searxng, tavily, brave, exa, ddgs. auto: searxng if its address is set, else the one whose key is set "
        "(TAVILY_API_KEY, BRAVE_API_KEY, EXA_API_KEY), else ddgs, which needs none.",
    )
    search_urls: Mapping[str, str] = named(
        "Address of a search service, by its name; searxng has no other. SEARXNG_URL is asked next."
    )
    timeout: float = seconds(20.0, "Seconds that one page or search may take.")
    max_bytes: int = size(10 * MIB, "How much of a page is read; of a longer one the beginning.", minimum=1024)
    user_agent: str = option("", "What pages are told of who reads them; Handrail's name and version if empty.")


class BrowserConfig(Section):
    """Which browser is driven, and what bounds it."""

    executable: str = option("", "The browser to start; a Chromium or Chrome of this machine if empty.")
    cdp_url: str = option("", "Address of a running browser to use instead, such as http://127.0.0.1:9222.")
    headless: bool = option(True, "Show no window.")
    sandbox: Literal["auto", "off"] = option(
        "auto", "auto uses the browser's own sandbox unless we are root, where it cannot; off never does."
    )
    timeout: float = seconds(30.0, "Seconds that a page may take to load, or one action.")
    idle_seconds: float = seconds(
        900.0, "Seconds after which a task's pages are closed when nobody uses them. 0 keeps them open.", or_zero=True
    )
    max_download_bytes: int = size(100 * MIB, "Size of the largest file that a page may download.", minimum=0)
