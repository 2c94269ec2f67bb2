"""Any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from ....config.keys import without_key
from ....errors import ModelError
from ...events import Usage
from ..base import NO_PRICES, CallPiece, Finished, Messages, Piece, Prices, ReasoningPiece, TextPiece, says_too_long
from ..http_client import http_options, reason
from ..images import images_apart

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChat:
    """One model behind one base URL. The key is kept here only: it is in no message and no store. `key_variable` is where the
    user can set another one."""

    provider = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str = "",
        key_variable: str = "OPENAI_API_KEY",
        context_tokens: int = 128_000,
        request_timeout: float = 600.0,
        prices: Prices = NO_PRICES,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.context_tokens, self._prices = name, context_tokens, prices
        self._base_url, self._api_key, self._timeout = base_url, api_key, request_timeout
        self._key_variable = key_variable
        self._options = dict(options or {})

    def load(self) -> None:
        """Load the client, which takes a second: better while the user is typing than while they wait."""
        with contextlib.suppress(ModelError):  # reported when the model is asked
            _ = self._client().chat.completions

    async def available(self) -> list[str]:
        """The names of the models that the server has."""
        async with self._client() as client:
            with self._problems():
                return sorted([model.id async for model in client.models.list()])

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        # As `extra_body`: the client would validate every field of every message, which blocks the loop for long conversations.
        body: dict[str, Any] = {"messages": images_apart(messages), **self._options}
        if tools:
            body["tools"] = list(tools)
        usage, reason = Usage(), ""
        # One client per answer: a client that is kept belongs to the event loop that it was first used in.
        async with self._client() as client:
            with self._problems():
                stream = await client.chat.completions.create(
                    model=self.name, messages=[], stream=True, stream_options={"include_usage": True}, extra_body=body
                )
                async for chunk in stream:
                    usage = _usage(chunk) or usage
                    for choice in (chunk.choices or ())[:1]:
                        reason = choice.finish_reason or reason
                        for piece in _pieces(choice.delta):
                            yield piece
        if not reason:
            raise ModelError(f"{self.name}: the answer was cut off before its end", retryable=True)
        yield Finished(self._prices.added_to(usage), cut_off=reason == "length")

    def _client(self) -> AsyncOpenAI:
        try:
            import openai
        except ImportError:
            raise ModelError("asking a model needs the openai package; pip install 'handrail[agent]'") from None
        # We retry: only the loop knows that nothing was done yet with the pieces so far.
        return openai.AsyncOpenAI(
            api_key=self._api_key or "none",
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(**http_options()),
        )

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """Turns every client error into one that says what to do and never shows the key."""
        import httpx2
        import openai

        try:
            yield
        except openai.APIError as error:
            raise self._problem(error) from None
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:  # raised in mid-stream
            message = without_key(str(error), self._api_key)
            raise ModelError(f"{self.name}: the answer broke off: {message}", retryable=True) from None

    def _problem(self, error: Any) -> ModelError:
        import openai

        where = self._base_url or "https://api.openai.com/v1"
        message = without_key(reason(error), self._api_key)
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return ModelError(
                f"{where} refuses the key; set {self._key_variable} to one that is valid there ({message})"
            )
        if isinstance(error, openai.NotFoundError):
            return ModelError(
                f"{where} has no model {self.name!r}; `handrail model list` shows what it has ({message})"
            )
        if isinstance(error, openai.APITimeoutError):
            return ModelError(f"{where} did not answer in time", retryable=True)
        if isinstance(error, openai.APIConnectionError):
            return ModelError(f"{where} cannot be reached: {error.__cause__ or message}", retryable=True)
        if isinstance(error, openai.APIStatusError):
            retryable = error.status_code in (408, 409, 425, 429) or error.status_code >= 500
            after = error.response.headers.get("retry-after", "")
            return ModelError(
                f"{where} answers {error.status_code}: {message}",
                retryable=retryable,
                retry_after=float(after) if after.replace(".", "", 1).isdigit() else None,
                too_long=says_too_long(message),
            )
        return ModelError(f"{where}: {message}", retryable=True)


MODEL = OpenAIChat


def _pieces(delta: Any) -> list[Piece]:
    if delta is None:
        return []
    pieces: list[Piece] = []
    thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
    if isinstance(thought, str) and thought:
        pieces.append(ReasoningPiece(thought))
    if delta.content:
        pieces.append(TextPiece(str(delta.content)))
    for number, call in enumerate(delta.tool_calls or ()):
        function = call.function
        index = call.index if isinstance(call.index, int) else number
        pieces.append(CallPiece(index, call.id or "", *_function(function)))
    if getattr(delta, "function_call", None):  # the predecessor of tool calls, which some servers still send
        pieces.append(CallPiece(0, "", *_function(delta.function_call)))
    return pieces


def _function(function: Any) -> tuple[str, str]:
    """Its name and arguments. Some servers send the arguments as an object, not as text."""
    if function is None:
        return "", ""
    arguments = function.arguments
    if arguments and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return str(function.name or ""), arguments or ""


def _usage(chunk: Any) -> Usage | None:
    found = getattr(chunk, "usage", None)
    if found is None:
        return None
    details = getattr(found, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    cost = getattr(found, "cost", None)
    return Usage(
        found.prompt_tokens or 0,
        found.completion_tokens or 0,
        cached,
        float(cost) if isinstance(cost, int | float) else None,
    )
