"""The middleware of plugins around the requests to a model: it may rewrite a request, and wrap the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

from ..errors import ModelError
from ..plugins.hook_manager import HookManager
from ..types import JsonDict
from .events import Event, Usage
from .models.base import Answer, Messages, ModelRequests, whole_answer

_KNOWN = ("model", "messages", "tools", "extra_body", "stream", "stream_options")


class ModelMiddleware:
    """For one agent. A request is `model`, `messages` and `tools` as in OpenAI's API, and whatever fields a plugin adds; an
    answer has the shape that this API's client returns."""

    def __init__(self, hooks: HookManager, platform: str) -> None:
        self._hooks, self._platform = hooks, platform

    def is_wanted(self) -> bool:
        return any(self._hooks.middleware.get(kind) for kind in ("llm_request", "llm_execution"))

    async def rewritten(
        self, requests: ModelRequests, messages: Messages, tools: Messages, about: JsonDict
    ) -> JsonDict:
        """The request that is to be sent."""
        request = {"model": requests.models[0].name, "messages": list(messages), "tools": list(tools)}
        if not self._hooks.middleware.get("llm_request"):
            return request
        chain = self._hooks.chain("llm_request", "request", self._context(requests, about))
        return await asyncio.to_thread(chain.rewritten, request)

    async def ask(self, requests: ModelRequests, request: JsonDict, about: JsonDict) -> AsyncIterator[Event | Answer]:
        """As `ModelRequests.ask`."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[Event | None]()
        answers: list[Answer] = []

        async def sent(request: JsonDict) -> Answer:
            more = {name: value for name, value in request.items() if name not in _KNOWN}
            tuned = requests.tuned(str(request.get("model")), {**(request.get("extra_body") or {}), **more})
            messages, tools = request.get("messages") or [], request.get("tools") or []
            answers.append(await whole_answer(tuned, messages, tools, events.put_nowait))
            return answers[-1]

        if not self._hooks.middleware.get("llm_execution"):
            work: asyncio.Future[Any] = asyncio.ensure_future(sent(request))
        else:
            pending: list[Any] = []

            def base(request: JsonDict) -> Any:
                pending.append(asyncio.run_coroutine_threadsafe(sent(request), loop))
                try:
                    return _as_response(pending[0].result())
                except CancelledError:
                    raise ModelError("the request was stopped") from None

            chain = self._hooks.chain("llm_execution", "request", self._context(requests, about))
            work = asyncio.ensure_future(asyncio.to_thread(chain.wrapped, request, base))
            work.add_done_callback(lambda _: [each.cancel() for each in pending])
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            found = await work
        finally:
            work.cancel()
        yield found if isinstance(found, Answer) else _as_answer(found, answers, requests.models[0].name)

    def _context(self, requests: ModelRequests, about: JsonDict) -> JsonDict:
        provider = getattr(requests.models[0], "provider", "")
        return {**about, "provider": provider, "platform": self._platform, "api_mode": "chat_completions"}


def _as_response(answer: Answer) -> Any:
    calls = [
        SimpleNamespace(id=each["id"], type="function", function=SimpleNamespace(**each["function"]))
        for each in answer.message.get("tool_calls") or ()
    ]
    message = SimpleNamespace(role="assistant", content=answer.message.get("content"), tool_calls=calls or None)
    used = answer.usage
    usage = SimpleNamespace(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.input_tokens + used.output_tokens,
    )
    reason = "length" if answer.cut_off else "tool_calls" if calls else "stop"
    choice = SimpleNamespace(index=0, message=message, finish_reason=reason)
    return SimpleNamespace(choices=[choice], usage=usage, model=answer.model)


def _as_answer(response: Any, answers: list[Answer], model: str) -> Answer:
    """What a plugin returned. Usage, and the model's own name, are those of the answer that it was given, if it asked for one."""
    try:
        message = response.choices[0].message
        calls = [
            {"id": each.id, "type": "function", "function": {"name": each.function.name, "arguments": _text(each)}}
            for each in message.tool_calls or ()
        ]
        made: JsonDict = {
            "role": "assistant",
            "content": message.content or "",
            **({"tool_calls": calls} if calls else {}),
        }
    except (AttributeError, LookupError, TypeError) as error:
        raise ModelError(
            f"a plugin's llm_execution returned {type(response).__name__}, not an answer: {error}"
        ) from None
    given = (
        answers[-1] if answers else Answer(made, Usage(), str(getattr(response, "model", "") or model), cut_off=False)
    )
    return given._replace(message=made)


def _text(call: Any) -> str:
    arguments = call.function.arguments
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
