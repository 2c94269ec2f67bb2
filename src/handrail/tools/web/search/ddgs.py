"""DDGS: the result pages of public search engines, with no key."""

from __future__ import annotations

import asyncio

from ....base.workers import pool
from ....errors import ToolFailed
from .service import Hit, Service


async def search(query: str, limit: int, service: Service) -> list[Hit]:
    return await asyncio.wrap_future(pool.submit(_search, query, limit, service.timeout))


def _search(query: str, limit: int, timeout: float) -> list[Hit]:
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
    return [Hit(one.get("title") or "", one.get("href") or "", one.get("body") or "") for one in found[:limit]]
