"""The middleware of plugins around the requests to a model: it may rewrite a request, and wrap the answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
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

    def __init__(self, hooks: HookManager) -> None:
        self._hooks = hooks

    def is_wanted(self) -> bool:
        return any(self._hooks.middleware.get(kind) for kind in ("llm_request", "llm_execution"))

    async def rewritten(
        self, requests: ModelRequests, messages: Messages, tools: Messages, about: JsonDict
    ) -> JsonDict:
        # A copy: what a plugin changes is changed in this request only.
        request = deepcopy({"model": requests.models[0].name, "messages": list(messages), "tools": list(tools)})
        return await asyncio.to_thread(self._hooks.chain("llm_request", "request", about).rewritten, request)

    async def ask(self, requests: ModelRequests, request: JsonDict, about: JsonDict) -> AsyncIterator[Event | Answer]:
        """As `ModelRequests.ask`."""
        loop, events, sent = asyncio.get_running_loop(), asyncio.Queue[Event | None](), list[Any]()
        answers: list[Answer] = []

        async def send(request: JsonDict) -> Any:
            more = {name: value for name, value in request.items() if name not in _KNOWN}
            tuned = requests.tuned(str(request.get("model")), {**(request.get("extra_body") or {}), **more})
            messages, tools = request.get("messages") or [], request.get("tools") or []
            answers.append(await whole_answer(tuned.ask(messages, tools), events.put_nowait))
            return _as_response(answers[-1])

        def base(request: JsonDict) -> Any:
            sent.append(asyncio.run_coroutine_threadsafe(send(request), loop))
            return sent[0].result()

        chain = self._hooks.chain("llm_execution", "request", about)
        work = asyncio.ensure_future(asyncio.to_thread(chain.wrapped, request, base))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            response = await work
        finally:
            for each in (*sent, work):
                each.cancel()
        # Usage, and the model's own name, are those of the answer that a plugin was given, if it asked for one.
        given = answers[-1] if answers else Answer({}, Usage(), requests.models[0].name, cut_off=False)
        yield given._replace(message=_message_in(response))


def _as_response(answer: Answer) -> Any:
    used, calls = answer.usage, answer.message.get("tool_calls")
    reason = "length" if answer.cut_off else "tool_calls" if calls else "stop"
    found = {
        "choices": [{"index": 0, "message": {"tool_calls": None, **answer.message}, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": used.input_tokens,
            "completion_tokens": used.output_tokens,
            "total_tokens": used.input_tokens + used.output_tokens,
        },
        "model": answer.model,
    }
    return json.loads(json.dumps(found), object_hook=lambda each: SimpleNamespace(**each))


def _message_in(response: Any) -> JsonDict:
    """The message of an answer that a plugin returned. Raises ModelError."""
    try:
        message = json.loads(json.dumps(response, default=vars))["choices"][0]["message"]
        return {name: value for name, value in message.items() if value is not None}
    except (AttributeError, LookupError, TypeError) as error:
        raise ModelError(f"a plugin's llm_execution returned {type(response).__name__}, no answer: {error}") from None
