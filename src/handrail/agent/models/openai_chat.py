"""Any server that speaks OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ...errors import ModelError
from ..events import Usage
from .base import CallPiece, Finished, Messages, Piece, ReasoningPiece, TextPiece

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChat:
    """One model behind one base URL. The key is held here and nowhere else: it goes into no message and no store."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str = "",
        context_tokens: int = 128_000,
        request_timeout: float = 600.0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.context_tokens = name, context_tokens
        self._base_url, self._api_key, self._timeout = base_url, api_key, request_timeout
        self._options = dict(options or {})

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        import httpx
        import openai

        request: dict[str, Any] = {
            "model": self.name,
            "messages": [dict(message) for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._options,
        }
        if tools:
            request["tools"] = [dict(tool) for tool in tools]
        usage, reason = Usage(), ""
        # A client an answer: one that is kept would belong to the event loop that it was first used in.
        async with self._client() as client:
            try:
                async for chunk in await client.chat.completions.create(**request):
                    usage = _usage(chunk) or usage
                    for choice in chunk.choices[:1]:
                        reason = choice.finish_reason or reason
                        for piece in _pieces(choice.delta):
                            yield piece
            except openai.APIError as error:
                raise _problem(error, self.name, self._base_url) from None
            except (httpx.HTTPError, ValueError) as error:  # in mid-stream the client passes on what it meets
                raise ModelError(f"{self.name}: the answer broke off: {error}", retryable=True) from None
        if not reason:
            raise ModelError(f"{self.name}: the answer was cut off before its end", retryable=True)
        yield Finished(usage, cut_off=reason == "length")

    def _client(self) -> AsyncOpenAI:
        try:
            import openai
        except ImportError:
            raise ModelError("asking a model needs the openai package; pip install 'handrail[agent]'") from None
        # Retries are ours: only the loop knows that nothing was done yet with what had come.
        return openai.AsyncOpenAI(
            api_key=self._api_key or "none", base_url=self._base_url, timeout=self._timeout, max_retries=0
        )


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
        name, arguments = (function.name or "", function.arguments or "") if function else ("", "")
        pieces.append(CallPiece(index, call.id or "", name, arguments))
    return pieces


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


def _problem(error: Any, model: str, base_url: str | None) -> ModelError:
    import openai

    where = base_url or "https://api.openai.com/v1"
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelError(f"{where} refuses the key; set OPENAI_API_KEY to one that is valid there ({error.message})")
    if isinstance(error, openai.NotFoundError):
        return ModelError(f"{where} has no model {model!r}; `handrail model list` shows what it has ({error.message})")
    if isinstance(error, openai.APITimeoutError):
        return ModelError(f"{where} did not answer in time", retryable=True)
    if isinstance(error, openai.APIConnectionError):
        return ModelError(f"{where} cannot be reached: {error.__cause__ or error.message}", retryable=True)
    if isinstance(error, openai.APIStatusError):
        retryable = error.status_code in (408, 409, 425, 429) or error.status_code >= 500
        after = error.response.headers.get("retry-after", "")
        return ModelError(
            f"{where} answers {error.status_code}: {error.message}",
            retryable=retryable,
            retry_after=float(after) if after.replace(".", "", 1).isdigit() else None,
        )
    return ModelError(f"{where}: {error.message}", retryable=True)
