"""What a search backend is, and how it talks to its service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ....errors import CallTimeout, ToolFailed

_MOST_BYTES = 5_000_000


class Hit(NamedTuple):
    """One thing that was found."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""


class Backend(Protocol):
    """What a module of this package offers."""

    async def search(self, query: str, limit: int, service: Service, /) -> list[Hit]: ...


class Service:
    """The service behind a backend: where it is and with which key. The user chose it, so no guard stands before it."""

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
        import httpx

        method = "GET" if body is None else "POST"
        try:
            async with httpx.AsyncClient(timeout=self.timeout) as client:
                answer = await client.request(method, self.url + path, params=params, json=body, headers=headers)
        except httpx.TimeoutException:
            raise CallTimeout(f"{self.name} did not answer within {self.timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolFailed(f"{self.name} cannot be reached: {type(error).__name__}: {error}") from None
        if answer.status_code != 200:
            raise ToolFailed(_refusal(self.name, answer.status_code, answer.text))
        try:
            found = json.loads(answer.content[:_MOST_BYTES])
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ToolFailed(f"{self.name} answered with something that is not its JSON; is {self.url} its address?")
        return found


def _refusal(name: str, status: int, text: str) -> str:
    why = {
        401: "the key is not accepted",
        403: "it does not let us in (for SearXNG: add json to search.formats in its settings)",
        429: "too many requests; wait, or use another backend",
    }.get(status, text[:200])
    return f"{name} answered {status}: {why}"
