"""Brave Search: an index of its own, by key."""

from __future__ import annotations

import re

from .service import Hit, Service


async def search(query: str, limit: int, service: Service) -> list[Hit]:
    found = await service.ask(
        "/res/v1/web/search",
        params={"q": query, "count": limit},
        headers={"x-subscription-token": service.key, "accept": "application/json"},
    )
    return [
        Hit(one.get("title") or "", one.get("url") or "", _plain(one.get("description") or ""), one.get("age") or "")
        for one in found.get("web", {}).get("results", [])
    ]


def _plain(text: str) -> str:
    """Without the tags around matching words."""
    return re.sub(r"</?strong>", "", text)
