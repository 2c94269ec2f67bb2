"""The search backends, each a function `(query, limit, service)` under its name in `search.BACKENDS`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...base.workers import pool
from ...errors import ToolFailed
from ...net.http_client import Reply, ask

_MAX_BYTES = 5_000_000
_SNIPPET_CHARS = 500


class Hit(NamedTuple):
    """One search result."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""


class Service:
    """The service behind a backend: its address and key. The user chose it, so its address is not guarded."""

    def __init__(self, name: str, url: str, key: str, timeout: float) -> None:
        self.name, self.url, self.key, self.timeout = name, url.rstrip("/"), key, timeout

    async def ask(
        self,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """A JSON object: by POST when there is a body. Raises ToolFailed with what to do."""
        reply = await ask(
            "GET" if body is None else "POST",
            self.url + path,
            what=self.name,
            seconds=self.timeout,
            max_bytes=_MAX_BYTES,
            headers=dict(headers or {}),
            params=params,
            json=body,
        )
        if not reply.is_good:
            raise _refusal(self.name, reply)
        found = reply.json()
        if not isinstance(found, dict):
            raise ToolFailed(f"{self.name} answered with something that is not its JSON; is {self.url} its address?")
        return found


def _refusal(name: str, reply: Reply) -> ToolFailed:
    why = {
        401: "the key is not accepted",
        403: "access is denied (for SearXNG: add json to search.formats in its settings)",
        429: "too many requests; wait, or use another backend",
    }.get(reply.status)
    return ToolFailed(f"{name} answers {reply.status}: {why}") if why else reply.failure(name)


Backend = Callable[[str, int, Service], Awaitable[list[Hit]]]


async def searxng(query: str, limit: int, service: Service) -> list[Hit]:
    """SearXNG (and searx): a self-hosted metasearch engine."""
    found = await service.ask("/search", params={"q": query, "format": "json"})
    return _hits(found.get("results", [])[:limit], published="publishedDate")


async def tavily(query: str, limit: int, service: Service) -> list[Hit]:
    """Tavily: a search API made for models."""
    found = await service.ask(
        "/search", body={"query": query, "max_results": limit}, headers={"authorization": f"Bearer {service.key}"}
    )
    return _hits(found.get("results", []), published="published_date")


async def exa(query: str, limit: int, service: Service) -> list[Hit]:
    """Exa: search by meaning, by key."""
    found = await service.ask(
        "/search",
        body={"query": query, "numResults": limit, "contents": {"text": {"maxCharacters": _SNIPPET_CHARS}}},
        headers={"x-api-key": service.key},
    )
    return _hits(found.get("results", []), snippet="text", published="publishedDate")


async def brave(query: str, limit: int, service: Service) -> list[Hit]:
    """Brave Search: an index of its own, by key."""
    found = await service.ask(
        "/res/v1/web/search",
        params={"q": query, "count": limit},
        headers={"x-subscription-token": service.key, "accept": "application/json"},
    )
    hits = _hits(found.get("web", {}).get("results", []), snippet="description", published="age")
    return [hit._replace(snippet=re.sub(r"</?strong>", "", hit.snippet)) for hit in hits]  # around matching words


async def ddgs(query: str, limit: int, service: Service) -> list[Hit]:
    """DDGS: the result pages of public search engines, with no key."""
    return await asyncio.wrap_future(pool.submit(_ask_engines, query, limit, service.timeout))


def _ask_engines(query: str, limit: int, timeout: float) -> list[Hit]:
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        found = DDGS(timeout=max(1, round(timeout))).text(query, max_results=limit)
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise ToolFailed(
            f"the public search engines cannot be asked: {error}. If that stays so, set up another backend: web.search"
        ) from None
    return _hits(found[:limit], url="href", snippet="body")


def _hits(
    found: Sequence[Mapping[str, Any]], *, url: str = "url", snippet: str = "content", published: str = ""
) -> list[Hit]:
    """The results of a service that has these names for their parts."""
    return [Hit(*(one.get(name) or "" for name in ("title", url, snippet, published))) for one in found]
