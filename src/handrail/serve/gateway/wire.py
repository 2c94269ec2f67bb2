"""Talk to a platform's HTTP API: patient when told to wait, and clear about what may be sent again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...config.keys import key_of, without_key
from ...errors import ConfigError, ToolFailed
from .base import Unreachable

if TYPE_CHECKING:
    import httpx

_ATTEMPTS = 3
_LONGEST_WAIT_SECONDS = 30.0
_SECONDS = 30.0


def token_of(variable: str) -> str:
    """Raises ConfigError when it is not set."""
    token = key_of(variable)
    if not token:
        raise ConfigError(f"{variable or 'the variable of the token'} is not set; it holds the account's token")
    return token


class Wire:
    """One kept connection. `key` goes into no message."""

    def __init__(self, what: str, base_url: str, *, key: str, headers: dict[str, str] | None = None) -> None:
        try:
            import httpx
        except ImportError:
            raise ConfigError(f"{what} needs one more package: pip install 'handrail[messages]'") from None
        self._what, self._key = what, key
        self._client = httpx.AsyncClient(base_url=base_url, headers=headers, timeout=_SECONDS, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def call(self, method: str, path: str, *, again: bool = False, **content: Any) -> Any:
        """The answer's JSON. `again`: asking twice does no harm, so that a lost answer is Unreachable too.

        Raises ToolFailed for a refusal.
        """
        import httpx

        for _ in range(_ATTEMPTS):
            try:
                reply = await self._client.request(method, path, **content)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
                raise Unreachable(f"{self._what} cannot be reached") from None
            except httpx.HTTPError as error:
                lost = f"{self._what}: the answer was lost ({type(error).__name__})"
                raise Unreachable(lost) if again else ToolFailed(f"{lost}; it may have arrived") from None
            if reply.status_code != 429:
                return self._told(reply)
            await asyncio.sleep(_wait_of(reply))
        raise Unreachable(f"{self._what} wants us to wait")

    def _told(self, reply: httpx.Response) -> Any:
        if reply.status_code >= 500:
            raise Unreachable(f"{self._what} answers {reply.status_code}")
        try:
            told = reply.json() if reply.content else {}
        except ValueError:
            told = {}
        if reply.status_code >= 400 or (isinstance(told, dict) and told.get("ok") is False):
            said = without_key(str(told)[:200], self._key)
            raise ToolFailed(f"{self._what} answers {reply.status_code}: {said}", status=reply.status_code)
        return told


def _wait_of(reply: httpx.Response) -> float:
    """How long the platform wants us to wait, in the ways that platforms say it."""
    try:
        told = reply.json()
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    nested = told.get("parameters")
    for value in (told.get("retry_after"), nested.get("retry_after") if isinstance(nested, dict) else None,
                  reply.headers.get("retry-after")):  # fmt: skip
        try:
            return max(0.0, min(float(value), _LONGEST_WAIT_SECONDS))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return 1.0
