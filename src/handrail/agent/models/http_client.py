"""A model behind an HTTP API that streams its answer as events: limits per answer, and errors that say what to do."""

from __future__ import annotations

import contextlib
import copy
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from ...base.lazy_module import extra_module
from ...config.keys import without_key
from ...errors import ModelError
from ...net.http_client import server_message, trusted
from ...types import JsonDict
from .base import NO_PRICES, Prices

if TYPE_CHECKING:
    import httpx

# An answer is text: a larger or longer one would never end.
MAX_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 3_600.0
_MAX_LINE_BYTES = 16 * 1024 * 1024
_RETRYABLE = (408, 409, 425, 429)
# How servers report that a request exceeds the context window.
_TOO_LONG = re.compile("context[ _]length|context (?:window|size)|prompt is too long|maximum context", re.IGNORECASE)
# No other separators: the text inside an event may have those of Unicode. A last "\r" may be half of a line's end.
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)


class HttpModel:
    """One model behind one base URL; `address` is the provider's own. The key is kept here only: it is in no message and no
    store, and `key_variable` is where the user can set another one. `listing` is the path that names the models there are."""

    address = listing = key_variable = ""
    context_tokens = 128_000

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str = "",
        key_variable: str = "",
        context_tokens: int = 0,
        request_timeout: float = 600.0,
        prices: Prices = NO_PRICES,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self._prices = name, prices
        self.context_tokens = context_tokens or self.context_tokens
        self.key_variable = key_variable or self.key_variable
        self.where = (base_url or self.address).rstrip("/")
        self._api_key, self._timeout = api_key, request_timeout
        self._options = dict(options or {})  # further fields of every request

    def headers(self, key: str) -> dict[str, str]:
        """Those that give the key to the server."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def tuned(self, name: str, options: Mapping[str, Any]) -> Self:
        """The model of that name at the same place, with further fields in its requests, such as `temperature`."""
        other = copy.copy(self)
        other.name, other._options = name, {**self._options, **options}
        return other

    def load(self) -> None:
        """Load what a request needs: better while the user is typing than while they wait."""
        with contextlib.suppress(ModelError):  # reported when the model is asked
            self._client()

    async def available(self) -> list[str]:
        """The names of the models that the server has."""
        with self.problems():
            async with self._client() as client, client.stream("GET", self.where + self.listing) as response:
                body = b"".join([piece async for piece in self._body(response)])
        try:
            return sorted(str(model["id"]) for model in json.loads(body)["data"])
        except (ValueError, LookupError, TypeError):
            raise ModelError(f"{self.where} does not list its models") from None

    async def events(self, path: str, body: JsonDict) -> AsyncGenerator[JsonDict, None]:
        """What the server sends until its last event. Use it within `problems`."""
        content = json.dumps({"model": self.name, "stream": True, **body, **self._options}).encode()
        headers = {"content-type": "application/json"}
        async with (
            self._client() as client,
            client.stream("POST", self.where + path, content=content, headers=headers) as response,
        ):
            async for data in _event_data(self._body(response)):
                if data == b"[DONE]":  # not every server ends the connection then
                    return
                event = json.loads(data)
                if event.get("error"):
                    message = self._reason(data)
                    raise ModelError(f"{self.where}: {message}", retryable=True, too_long=says_too_long(message))
                yield event

    @contextlib.contextmanager
    def problems(self) -> Iterator[None]:
        """Turns every failure of a request into an error that says what to do and never shows the key."""
        httpx = _package()
        try:
            yield
        except httpx.TimeoutException:
            raise ModelError(f"{self.where} did not answer in time", retryable=True) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise ModelError(f"{self.where} is not an http address; see `model.base_url`") from None
        except httpx.ConnectError as error:
            raise ModelError(f"{self.where} cannot be reached: {self._masked(str(error))}", retryable=True) from None
        except (httpx.HTTPError, httpx.StreamError, ValueError, LookupError, TypeError, AttributeError) as error:
            message = self._masked(str(error) or type(error).__name__)
            raise ModelError(f"{self.name}: the answer broke off: {message}", retryable=True) from None

    def _masked(self, text: str) -> str:
        return without_key(text, self._api_key)

    def _reason(self, body: bytes) -> str:
        return server_message(self._masked(body.decode("utf-8", "replace")).encode()) or "it gave no reason"

    def _client(self) -> httpx.AsyncClient:
        """One per answer: a client that is kept belongs to the event loop that it was first used in. It does not retry, as only
        the loop knows that nothing was done yet with the pieces so far; nor does it follow redirects, which would get the key."""
        package, headers = _package(), self.headers(self._api_key)
        client: httpx.AsyncClient = package.AsyncClient(verify=trusted(), timeout=self._timeout, headers=headers)
        return client

    async def _body(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """The pieces of an answer. Raises ModelError for one that is no success, or never ends."""
        received, end, pieces = 0, time.monotonic() + MAX_SECONDS, list[bytes]()
        async for piece in response.aiter_bytes():
            received += len(piece)
            if received > MAX_BYTES:
                raise ModelError(f"the answer has more than {MAX_BYTES:,} bytes and was stopped")
            if time.monotonic() > end:
                raise ModelError(f"the answer had not ended after {MAX_SECONDS:,.0f} s and was stopped")
            if response.is_success:
                yield piece
            else:
                pieces.append(piece)
        if not response.is_success:
            raise self._refusal(response, self._reason(b"".join(pieces)))

    def _refusal(self, response: httpx.Response, message: str) -> ModelError:
        name, where, variable, status = self.name, self.where, self.key_variable, response.status_code
        if status in (401, 403):
            return ModelError(f"{where} refuses the key; set {variable} to one that is valid there ({message})")
        if status == 404:
            return ModelError(f"{where} has no model {name!r}; `handrail model list` shows what it has ({message})")
        after = response.headers.get("retry-after", "")
        return ModelError(
            f"{where} answers {status}: {message}",
            retryable=status in _RETRYABLE or status >= 500,
            retry_after=float(after) if after.replace(".", "", 1).isdigit() else None,
            too_long=says_too_long(message),
        )


def says_too_long(message: str) -> bool:
    return _TOO_LONG.search(message) is not None


def _package() -> Any:
    return extra_module("httpx", "agent", "asking a model", ModelError)


async def _event_data(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event; one that was cut off is left out."""
    rest, data = bytearray(), list[bytes]()
    async for piece in pieces:
        searched, lines = max(0, len(rest) - 1), list[bytes]()
        rest += piece
        if _LINE_END.search(rest, searched):  # splitting a long line anew with every piece would take quadratic time
            *lines, last = _LINE_END.split(rest)
            rest = bytearray(last)
        if len(rest) > _MAX_LINE_BYTES:
            raise ModelError(f"the answer has a line of more than {_MAX_LINE_BYTES:,} bytes and was stopped")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
