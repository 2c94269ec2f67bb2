"""A model behind the client of a provider's package, and the HTTP below it: limits per answer, and errors that say what to do."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from ...config.keys import without_key
from ...errors import ModelError
from .base import NO_PRICES, Prices

if TYPE_CHECKING:
    import ssl

    import httpx2

# An answer is text: a larger or longer one would never end.
MAX_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 3_600.0
_REASON_CHARS = 500
_STATUS = re.compile(r"\AError code: \d+(?: - )?")
_RETRYABLE = (408, 409, 425, 429)
# How servers report that a request exceeds the context window.
_TOO_LONG = re.compile("context[ _]length|context (?:window|size)|prompt is too long|maximum context", re.IGNORECASE)


class SdkModel:
    """A model behind the client of its provider's package. Those of `OpenAI` and `Anthropic` come from one generator: all but the
    `brand` in their names is the same. `extra` installs the package, `resource` is what is asked, `where` is what errors call the
    server. The key is kept here only: it is in no message and no store, and `key_variable` is where the user can set another one.
    """

    brand = extra = resource = where = key_variable = ""
    context_tokens = 128_000
    _options: Mapping[str, Any] = {}  # further fields of every request

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
    ) -> None:
        self.name, self._prices = name, prices
        self.context_tokens = context_tokens or self.context_tokens
        self.key_variable = key_variable or self.key_variable
        self._base_url, self._api_key, self._timeout = base_url, api_key, request_timeout

    def tuned(self, name: str, options: Mapping[str, Any]) -> Self:
        """The model of that name at the same place, with further fields in its requests, such as `temperature`."""
        other = copy.copy(self)
        other.name, other._options = name, {**self._options, **options}
        return other

    def load(self) -> None:
        """Load the package, which takes a second: better while the user is typing than while they wait."""
        with contextlib.suppress(ModelError):  # reported when the model is asked
            attrgetter(self.resource)(self.open())

    def open(self) -> Any:
        """One client per answer: a client that is kept belongs to the event loop that it was first used in."""
        package = self._package()
        # We retry: only the loop knows that nothing was done yet with the pieces so far.
        return getattr(package, f"Async{self.brand}")(
            api_key=self._api_key or "none",
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=0,
            http_client=package.DefaultAsyncHttpxClient(verify=_certificates(), event_hooks={"response": [_bound]}),
        )

    async def available(self) -> list[str]:
        """The names of the models that the server has."""
        async with self.open() as client:
            with self.problems():
                return sorted([model.id async for model in client.models.list()])

    @contextlib.contextmanager
    def problems(self) -> Iterator[None]:
        """Turns every client error into one that says what to do and never shows the key."""
        import httpx2

        package = self._package()
        try:
            yield
        except package.APIError as error:
            raise self._problem(package, error) from None
        except (getattr(package, f"{self.brand}Error"), httpx2.HTTPError, ValueError) as error:  # raised in mid-stream
            message = without_key(str(error), self._api_key)
            raise ModelError(f"{self.name}: the answer broke off: {message}", retryable=True) from None

    def _package(self) -> Any:
        name = self.brand.lower()
        try:
            return import_module(name)
        except ImportError:
            raise ModelError(f"asking a model needs the {name} package; pip install 'handrail[{self.extra}]'") from None

    def _problem(self, package: Any, error: Any) -> ModelError:
        where, message = self.where, without_key(reason(error), self._api_key)
        if isinstance(error, package.AuthenticationError | package.PermissionDeniedError):
            return ModelError(
                f"{where} refuses the key; set {self.key_variable} to one that is valid there ({message})"
            )
        if isinstance(error, package.NotFoundError):
            return ModelError(
                f"{where} has no model {self.name!r}; `handrail model list` shows what it has ({message})"
            )
        if isinstance(error, package.APITimeoutError):
            return ModelError(f"{where} did not answer in time", retryable=True)
        if isinstance(error, package.APIConnectionError):
            return ModelError(f"{where} cannot be reached: {error.__cause__ or message}", retryable=True)
        if isinstance(error, package.APIStatusError):
            after = error.response.headers.get("retry-after", "")
            return ModelError(
                f"{where} answers {error.status_code}: {message}",
                retryable=error.status_code in _RETRYABLE or error.status_code >= 500,
                retry_after=float(after) if after.replace(".", "", 1).isdigit() else None,
                too_long=says_too_long(message),
            )
        return ModelError(f"{where}: {message}", retryable=True)


def says_too_long(message: str) -> bool:
    return _TOO_LONG.search(message) is not None


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Loading them takes tens of milliseconds, and a client is made for every answer."""
    import httpx2

    return httpx2.create_ssl_context()


def reason(error: Any) -> str:
    """The server's message, without the status that the client puts before it. Some servers send it only in the body."""
    message = _STATUS.sub("", str(error.message))
    body = getattr(error, "body", None)
    if not message and body:
        message = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return " ".join(message.split())[:_REASON_CHARS] or "it gave no reason"


async def _bound(response: httpx2.Response) -> None:
    import httpx2

    stream: Any = response.stream

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received, end = 0, time.monotonic() + MAX_SECONDS
            async for data in stream:
                received += len(data)
                if received > MAX_BYTES:
                    raise ModelError(f"the answer has more than {MAX_BYTES:,} bytes and was stopped")
                if time.monotonic() > end:
                    raise ModelError(f"the answer had not ended after {MAX_SECONDS:,.0f} s and was stopped")
                yield data

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()
