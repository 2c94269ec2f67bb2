"""Exa: search by meaning, by key."""

from __future__ import annotations

from .service import Hit, Service

_SNIPPET_CHARS = 500


async def search(query: str, limit: int, service: Service) -> list[Hit]:
    found = await service.ask(
        "/search",
        body={"query": query, "numResults": limit, "contents": {"text": {"maxCharacters": _SNIPPET_CHARS}}},
        headers={"x-api-key": service.key},
    )
    return [
        Hit(one.get("title") or "", one.get("url") or "", one.get("text") or "", one.get("publishedDate") or "")
        for one in found.get("results", [])
    ]
