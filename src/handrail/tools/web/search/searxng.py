"""SearXNG (and searx): a self-hosted metasearch engine."""

from __future__ import annotations

from .service import Hit, Service


async def search(query: str, limit: int, service: Service) -> list[Hit]:
    found = await service.ask("/search", params={"q": query, "format": "json"})
    return [
        Hit(one.get("title") or "", one.get("url") or "", one.get("content") or "", one.get("publishedDate") or "")
        for one in found.get("results", [])[:limit]
    ]
