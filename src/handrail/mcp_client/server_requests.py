"""What a server may ask of us: a form for the user, a model call, and its root folders. Each as configured."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import jsonschema_rs

from ..base.safe_text import safe_error
from ..base.workers import pool, run_async
from ..errors import Denied, HandrailError
from ..protocols import Action, ActionKind, Person
from ..settings.services import McpServerConfig
from ..types import CancelToken, JsonDict, ToolContext
from .sdk import mcp_types

T = TypeVar("T")
_OPENED, _NOT_OPENED = "opened", "no"
_MAX_ADDRESS = 2000
# Takes a conversation, returns the model's answer and its name.
Sampler = Callable[[list[JsonDict]], Awaitable[tuple[str, str]]]
# Takes a question and its choices, returns the answer; None if nobody answers.
Ask = Callable[[str, list[str]], str | None]
_LEAVE_OUT = "-"
_TRIES = 3
_YES_OR_NO = {"yes": True, "no": False}
_SHORT_ANSWERS = {"y": "yes", "true": "yes", "n": "no", "false": "no"}


class _NotAnswered(Exception):
    """A field, and so the form, was not answered."""


def fill(schema: Mapping[str, Any], message: str, ask: Ask | None) -> JsonDict | None:
    """Fill in a form by asking field by field: the form's content, or None if it was not answered. A single yes/no field was
    answered by whoever approved the question. Without a user the form's own defaults are used."""
    fields: Mapping[str, JsonDict] = schema.get("properties") or {}
    if len(fields) == 1 and all(field.get("type") == "boolean" for field in fields.values()):
        return dict.fromkeys(fields, True)
    required = schema.get("required") or ()
    content: JsonDict = {}
    try:
        for name, field in fields.items():
            content |= _filled(name, field, message, ask, is_required=name in required)
    except _NotAnswered:
        return None
    return content


def _filled(name: str, field: JsonDict, message: str, ask: Ask | None, *, is_required: bool) -> JsonDict:
    """The field with its value; empty if it is left out."""
    left_out = {name: field["default"]} if "default" in field else {}
    may_be_left_out = bool(left_out) or not is_required
    if ask is None:
        if not may_be_left_out:
            raise _NotAnswered
        return left_out
    label = str(field.get("title") or field.get("description") or name)
    question = f"{safe_error(message)} — {safe_error(label)}"
    if may_be_left_out:
        question += f" (“{_LEAVE_OUT}” " + (f"is {left_out[name]!r})" if left_out else "leaves it out)")
    problem = ""
    for _ in range(_TRIES):
        answer = ask(problem + question, list(_options(field)))
        if answer is None:
            raise _NotAnswered
        if answer.strip() in ("", _LEAVE_OUT) and may_be_left_out:
            return left_out
        try:
            return {name: _checked(_typed(answer.strip(), field), field)}
        except ValueError as error:
            problem = f"{safe_error(str(error))}. "
    raise _NotAnswered


def _options(field: JsonDict) -> dict[str, Any]:
    """The choices by name. For a list, the choices of its items."""
    if field.get("type") == "boolean":
        return _YES_OR_NO
    source = field.get("items") or {} if field.get("type") == "array" else field
    if "enum" in source:
        values = source["enum"]
        return dict(zip(map(str, source.get("enumNames") or values), values, strict=False))
    named = source.get("oneOf") or source.get("anyOf") or ()
    return {str(each.get("title") or each["const"]): each["const"] for each in named if "const" in each}


def _typed(answer: str, field: JsonDict) -> Any:
    """Raises ValueError for an answer of the wrong type."""
    options, kind = _options(field), field.get("type")
    if kind == "array":
        names = {str(number): name for number, name in enumerate(options, 1)}  # as they were shown
        pieces = [each.strip() for each in answer.split(",") if each.strip()]
        return [_chosen(names.get(each, each), options) for each in pieces]
    if kind == "boolean":
        return _chosen(_SHORT_ANSWERS.get(answer.lower(), answer.lower()), options)
    if options:
        return _chosen(answer, options)
    if kind in ("integer", "number"):
        try:
            return int(answer) if kind == "integer" else float(answer)
        except ValueError:
            raise ValueError(f"{answer!r} is not a {'whole number' if kind == 'integer' else 'number'}") from None
    return answer


def _chosen(answer: str, options: dict[str, Any]) -> Any:
    known = {str(value): value for value in options.values()} | options
    if answer in known or not options:
        return known.get(answer, answer)
    raise ValueError(f"{answer!r} is not one of {', '.join(options)}")


def _checked(value: Any, field: JsonDict) -> Any:
    try:
        check = jsonschema_rs.validator_for(field, retriever=_refuse_to_fetch)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return value  # the field's schema is not valid, so there is nothing to check against
    problem = next(iter(check.iter_errors(value)), None)
    if problem is not None:
        raise ValueError(problem.message)
    return value


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")


class Caller(NamedTuple):
    """Who made a call, and where: the server's questions during the call are asked there, through the call's own gate."""

    context: ToolContext
    loop: asyncio.AbstractEventLoop | None  # None: a thread waits for the call
    variables: contextvars.Context

    @classmethod
    def of(cls, context: ToolContext) -> Caller:
        return cls(context, asyncio._get_running_loop(), contextvars.copy_context())

    async def run(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        given_up = CancelToken()
        if self.loop is not None:
            waiting = self.variables.run(asyncio.run_coroutine_threadsafe, question(), self.loop)
        else:
            waiting = self.variables.run(pool.submit, lambda: run_async(question(), cancel=given_up))
        try:
            return await asyncio.wrap_future(waiting)
        except asyncio.CancelledError:
            given_up.cancel("the server stopped waiting")
            raise


# Set in the task of a call: in newer protocol revisions the server's questions arrive in the call itself.
calling: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("mcp_calling", default=None)


class ServerRequests:
    """Knows the calls in flight, so that a server's question reaches whoever made the call."""

    def __init__(self) -> None:
        self.sampler: Sampler | None = None
        # By identity: comparing hundreds of callers would take longer than the call. Used from any thread.
        self._in_flight: dict[str, dict[int, Caller]] = {}

    def begin(self, server: str, caller: Caller) -> None:
        self._in_flight.setdefault(server, {})[id(caller)] = caller

    def end(self, server: str, caller: Caller) -> None:
        del self._in_flight[server][id(caller)]

    def callbacks(self, server: str, settings: McpServerConfig) -> JsonDict:
        """For the SDK's client. The server sees only the capabilities that have a callback."""
        given: JsonDict = {}
        if settings.elicitation:
            given["elicitation_callback"] = lambda _, params: self._elicit(server, params, settings.timeout)
        if settings.sampling:
            given["sampling_callback"] = lambda _, params: self._sample(server, params)
        if settings.roots:
            given["list_roots_callback"] = lambda _: _roots(settings.roots)
        return given

    async def _elicit(self, server: str, params: Any, seconds: float) -> Any:
        in_flight = list(self._in_flight.get(server, {}).values())  # copied: other threads add and remove
        caller = calling.get() or (in_flight[-1] if in_flight else None)
        if caller is None:  # no call in flight
            return mcp_types.ElicitResult(action="decline")
        url, schema = getattr(params, "url", ""), getattr(params, "requested_schema", None) or {}
        try:
            async with asyncio.timeout(seconds):  # the call itself has timed out by then
                if url:
                    has_opened = await caller.run(lambda: _opened(server, params.message, url, caller.context))
                    return mcp_types.ElicitResult(action="accept" if has_opened else "decline")
                content = await caller.run(lambda: _answered(server, params.message, schema, caller.context))
        except TimeoutError:
            return mcp_types.ElicitResult(action="cancel")
        if content is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=content)

    async def _sample(self, server: str, params: Any) -> Any:
        """Only during a call: a server has no business with the model otherwise."""
        if self.sampler is None or not self._in_flight.get(server):
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message="no model is available now")
        try:
            text, model = await self.sampler(_conversation(params))
        except (HandrailError, ValueError) as error:
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=safe_error(str(error)))
        content = mcp_types.TextContent(text=text)
        return mcp_types.CreateMessageResult(role="assistant", content=content, model=model, stop_reason="endTurn")


def _conversation(params: Any) -> list[JsonDict]:
    """In the format of model requests. Raises ValueError for anything but text."""
    system = [{"role": "system", "content": params.system_prompt}] if params.system_prompt else []
    messages = []
    for message in params.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        if any(block.type != "text" for block in blocks):
            raise ValueError("only text can be sent to the model")
        messages.append({"role": message.role, "content": "\n".join(block.text for block in blocks)})
    return [*system, *messages]


async def _may_ask(text: str, why: str, context: ToolContext) -> bool:
    """Whether the gate lets a server's question through to the user."""
    if context.gate is None:
        return False
    try:
        waiting = context.gate.review([Action(ActionKind.TOOL, safe_error(text), details={"why": why})], context)
        if waiting is not None:
            await waiting
    except Denied:
        return False
    return True


async def _answered(server: str, message: str, schema: Mapping[str, Any], context: ToolContext) -> JsonDict | None:
    """The form as the user fills it in, or None: the gate denied it, or nobody answered."""
    if not await _may_ask(message, f"the MCP server {server} asks this", context):
        return None
    return await asyncio.wrap_future(pool.submit(fill, schema, message, _asker_of(context.person)))


async def _opened(server: str, message: str, url: str, context: ToolContext) -> bool:
    """Whether the user has opened the page that the server wants them to see. Nothing opens it for them."""
    ask, page = _asker_of(context.person), visible_address(url)
    if ask is None or not page:
        return False
    if not await _may_ask(f"{message}\n{page}", f"the MCP server {server} wants you to open this page", context):
        return False
    question = f"Open this page, then answer {_OPENED}: {page}"
    return await asyncio.wrap_future(pool.submit(ask, question, [_OPENED, _NOT_OPENED])) == _OPENED


def visible_address(url: str) -> str:
    """A web address as the user may be shown it, in plain ASCII; empty for anything else."""
    if not re.fullmatch(r"https?://[^\s\x00-\x1f\x7f]+", url) or len(url) > _MAX_ADDRESS:
        return ""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(UnicodeError):
        url = url.replace(host, host.encode("idna").decode(), 1)
    return quote(url, safe="%/:?#[]@!$&'()*+,;=-._~")


def _asker_of(person: Person | None) -> Callable[[str, list[str]], str | None] | None:
    if person is None:
        return None

    def ask(question: str, choices: list[str]) -> str | None:
        answer = person.ask(question, choices)
        return answer if answer is None or isinstance(answer, str) else run_async(answer)

    return ask


async def _roots(folders: tuple[str, ...]) -> Any:
    paths = [Path(os.path.abspath(os.path.expanduser(folder))) for folder in folders]  # noqa: ASYNC240  reads no disk
    roots = [{"uri": path.as_uri(), "name": path.name} for path in paths]
    return mcp_types.ListRootsResult.model_validate({"roots": roots})
