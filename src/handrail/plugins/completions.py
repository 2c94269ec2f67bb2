"""Questions of a plugin to the user's model, as plugins of Hermes Agent ask them: `ctx.llm`."""

import asyncio
import base64
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import jsonschema_rs

from ..base.workers import run_async
from ..types import JsonDict

log = logging.getLogger(__name__)
_DEFAULT_SECONDS = 120.0
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
_AS_JSON = "Answer with JSON only, without any text around it."
Messages = Sequence[Mapping[str, Any]]


class Completion(NamedTuple):
    """An answer. `parsed` is the JSON in it if that was wanted and fits its schema; `content_type` is "json" then. `usage` has
    `input_tokens`, `output_tokens`, `total_tokens`, `cache_read_tokens` and `cost_usd`."""

    text: str
    provider: str
    model: str
    usage: SimpleNamespace
    audit: JsonDict
    agent_id: str = ""
    parsed: Any = None
    content_type: str = "text"


class Completions:
    """The user's model, for one plugin. `ask` takes messages and further fields of the request, and returns what a Completion
    begins with. A plugin cannot choose another model, provider or account: such arguments are refused."""

    def __init__(self, plugin: str, ask: Callable[[Messages, JsonDict], Awaitable[tuple[Any, ...]]]) -> None:
        self._plugin, self._ask = plugin, ask

    def complete(self, messages: Messages, **options: Any) -> Completion:
        return run_async(self.acomplete(messages, **options))

    def complete_structured(self, **options: Any) -> Completion:
        return run_async(self.acomplete_structured(**options))

    async def acomplete(
        self,
        messages: Messages,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  the name that plugins know
        purpose: str | None = None,
        **overrides: Any,
    ) -> Completion:
        """One answer to a conversation. Raises ValueError, PermissionError, ModelError and TimeoutError."""
        if refused := sorted(name for name, value in overrides.items() if value is not None):
            raise PermissionError(f"plugin {self._plugin} may not set {', '.join(refused)}: it asks your model")
        if not messages:
            raise ValueError("there is nothing to ask: give messages")
        options = {"temperature": temperature, "max_tokens": max_tokens}
        given = {name: value for name, value in options.items() if value is not None}
        async with asyncio.timeout(timeout or _DEFAULT_SECONDS):
            text, provider, model, usage = await self._ask(messages, given)
        log.info("plugin %s asked %s for %s", self._plugin, model, purpose or "itself")
        return Completion(text, provider, model, usage, {"plugin_id": self._plugin, "purpose": purpose})

    async def acomplete_structured(
        self,
        *,
        instructions: str,
        input: Sequence[Mapping[str, Any]],  # noqa: A002  the name that plugins know
        json_schema: JsonDict | None = None,
        json_mode: bool = False,
        schema_name: str | None = None,
        system_prompt: str | None = None,
        **options: Any,
    ) -> Completion:
        """One answer about texts and images, as JSON if a schema is given or `json_mode` is on."""
        if not instructions.strip() or not input:
            raise ValueError("there is nothing to ask: give instructions and input")
        schema = f" It must fit this JSON Schema:\n{json.dumps(json_schema, ensure_ascii=False)}" if json_schema else ""
        wants_json = json_mode or json_schema is not None
        orders = [system_prompt, instructions, f"{_AS_JSON}{schema}" if wants_json else ""]
        system = {"role": "system", "content": "\n\n".join(filter(None, orders))}
        made = await self.acomplete([system, {"role": "user", "content": [_part(each) for each in input]}], **options)
        made.audit.update({"schema_name": schema_name} if schema_name else {})
        parsed = _parsed(made.text, json_schema) if wants_json else None
        return made if parsed is None else made._replace(parsed=parsed, content_type="json")


def _part(block: Mapping[str, Any]) -> JsonDict:
    if block.get("type") != "image":
        return {"type": "text", "text": str(block.get("text") or "")}
    data, kind = block.get("data"), block.get("mime_type") or "image/png"
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}" if data else str(block.get("url") or "")
    return {"type": "image_url", "image_url": {"url": url}}


def _parsed(text: str, schema: JsonDict | None) -> Any:
    """The JSON of an answer, which models like to put into a block of code. None if it is none, or does not fit."""
    fenced = _FENCED.match(text)
    try:
        found = json.loads(fenced[1] if fenced else text)
        return found if schema is None or jsonschema_rs.is_valid(schema, found) else None
    except (ValueError, RecursionError):  # also of a schema that is none
        return None
