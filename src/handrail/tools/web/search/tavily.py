"""Tavily: a search API made for models."""

from __future__ import annotations

from .service import Hit, Service


async def search(query: str, limit: int, service: Service) -> list[Hit]:
    found = await service.ask(
        "/search", body={"query": query, "max_results": limit}, headers={"authorization": f"Bearer {service.key}"}
    )
    return [
        Hit(one.get("title") or "", one.get("url") or "", one.get("content") or "", one.get("published_date") or "")
        for one in found.get("results", [])
    ]
