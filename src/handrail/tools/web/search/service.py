"""What a search backend is, and how it talks to its service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ....errors import ToolFailed
from ....net.http_client import Reply, ask

_MAX_BYTES = 5_000_000


class Hit(NamedTuple):
    """One search result."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""


class Backend(Protocol):
    """What a module of this package offers."""

    async def search(self, query: str, limit: int, service: Service, /) -> list[Hit]: ...


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
