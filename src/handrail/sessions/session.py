"""The session object: what a program gives a model to use, for one user or one task.

async with handrail.session(cwd="project", sandbox=True, toolsets=["coding"], approver=ask) as s:
    reply = await client.chat.completions.create(..., tools=s.tools("openai"))
    messages += await s.run(reply.choices[0].message)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..app import Handrail
from ..base.loops import on_worker
from ..base.workers import MAX_SECONDS, Lane, pool, run_async
from ..core.outcome import error_of, parsed
from ..errors import CallNotFound, Denied, HandrailError, InvalidArguments
from ..model_tools import default
from ..protocols import Action, Answer, ApprovalRequest, Approver, Model, Person
from ..runtime.async_driver import adrive, turn_to_begin
from ..runtime.provider_formats import Format
from ..runtime.steps import Call, cause, drive
from ..settings.schema import Config
from ..toolsets import as_names
from ..types import Caller, CancelToken, FileChange, JsonDict, Outcome, ProgressListener, ToolContext
from .formats import read_message, write_answers
from .own_tools import WithOwnTools

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..approval.gate import ApprovalGate
    from ..settings.services import McpServerConfig
    from ..store.call_records import CallRecord

MODES = ("manual", "smart", "off")
_MAX_PREVIEWS = 1000
# Many sessions that open or close at once take turns: more threads would only hold up the caller's loop.
_lane = Lane(pool, 8)
_over = "the session is over"


class Result(NamedTuple):
    """What came of a call. `text` is what the model gets; `data` is the same as a value, where it is JSON.

    A command's `stdout` has its stderr in it, unless the call said `separate_stderr`.
    """

    text: str
    data: Any
    is_error: bool
    error_type: str
    changes: tuple[FileChange, ...]

    @property
    def stdout(self) -> str:
        return str(self.data.get("output", "")) if isinstance(self.data, dict) else ""

    @property
    def stderr(self) -> str:
        return str(self.data.get("stderr", "")) if isinstance(self.data, dict) else ""


class _Options(NamedTuple):
    id: str | None
    environment: JsonDict
    toolsets: Sequence[str] | None
    without: Sequence[str]
    caller: Caller
    mcp_servers: Mapping[str, Any]
    model: str | Sequence[Model] | None


def session(  # noqa: PLR0913  each is something that a session can have of its own
    app: Handrail | None = None,
    *,
    config: Config | None = None,
    home: str | os.PathLike[str] | None = None,
    id: str | None = None,  # noqa: A002  the session's
    cwd: str | os.PathLike[str] | None = None,
    toolsets: Sequence[str] | str | None = None,
    without: Sequence[str] | str = (),
    approver: Approver | Callable[[ApprovalRequest], Any] | None = None,
    person: Person | None = None,
    mode: str = "",
    model: str | Sequence[Model] | None = None,
    mcp_servers: Mapping[str, McpServerConfig | Mapping[str, Any]] | None = None,
    on_question: Callable[[ApprovalRequest], object] | None = None,
    **environment: Any,
) -> Opening:
    """Open a session with `async with`, or with `with` for the sync twin. Leaving it closes all that it opened.

    It is one of `app`'s, by default of the one that your `config.yaml` configures; with `config` or `home` it has a Handrail
    of its own. `approver` is asked, an object or a function; `mode` holds instead of `approvals.mode`; `model` and
    `mcp_servers` (as in `config.yaml`) are for this session alone. `environment` says where its commands run, as for
    `register_task_env_overrides`: `backend`, `sandbox`, `env`, `image`. With an `id` that was used before, what was allowed
    for that session holds again. `on_question` is told when a call begins to wait for an answer.
    """
    if mode and mode not in MODES:
        raise InvalidArguments(f"mode is one of {', '.join(MODES)}, not {mode!r}", argument="mode")
    if app is not None and (config is not None or home is not None):
        raise InvalidArguments("give either app, or config and home: a Handrail that exists has both", argument="app")
    if callable(approver) and not hasattr(approver, "decide"):
        approver = SimpleNamespace(decide=approver, name=getattr(approver, "__name__", "the session's approver"))
    if cwd is not None:
        environment["cwd"] = os.fspath(cwd)
    caller = Caller(cast("Approver | None", approver), person, mode, on_question=on_question)
    chosen = as_names(toolsets) if toolsets is not None else None
    options = _Options(id, environment, chosen, as_names(without), caller, mcp_servers or {}, model)
    is_own = config is not None or home is not None
    make = partial(Handrail, config, home=home) if is_own else (lambda: app or default())
    return Opening(make, options, closes=is_own)


class Opening:
    """A session that is opened by `async with` (a `Session`) or `with` (a `SyncSession`)."""

    def __init__(self, make: Callable[[], Handrail], options: _Options, *, closes: bool) -> None:
        self._make, self._options, self._closes = make, options, closes
        self._session: Session | None = None

    async def __aenter__(self) -> Session:
        waits = self._closes or self._options.mcp_servers
        opening = asyncio.ensure_future(on_worker(self._open, on=pool if waits else _lane))
        try:
            self._session = await asyncio.shield(opening)
        except asyncio.CancelledError:  # what is being opened is closed as soon as it is there
            opening.add_done_callback(_close_late)
            raise
        return self._session

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def __enter__(self) -> SyncSession:
        self._session = self._open()
        return SyncSession(self._session)

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.close_now()

    def _open(self) -> Session:
        return Session(self._make(), self._options, closes_app=self._closes)


def _close_late(opening: asyncio.Future[Session]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        asyncio.get_running_loop().create_task(opening.result().close())


class Session:
    """One caller's tools. Any number of calls may run at once, from any loop or thread."""

    def __init__(self, app: Handrail, options: _Options, *, closes_app: bool = False) -> None:
        self.id = options.id or f"session-{secrets.token_hex(8)}"
        self._options, self._caller = options, options.caller
        self.has_approver = options.caller.approver is not None
        self.waiting: dict[tuple[str, str, str], list[ApprovalRequest]] = {}  # by call; answered by way of a framework
        self._stop = CancelToken()
        self._agents: list[Agent] = []
        self._previewed: dict[tuple[str, str], str] = {}
        self._known_names: tuple[int, frozenset[str]] = (-1, frozenset())  # by the registry's generation
        with contextlib.ExitStack() as closing:
            if closes_app:
                closing.callback(app.close)
            self._app = app
            if options.mcp_servers:
                own = WithOwnTools(app, options.mcp_servers)
                closing.callback(own.close)
                self._app = cast("Handrail", own)
            if options.id is None:
                closing.callback(_forget_grants, app, self.id)
            closing.callback(app.environments.clear_overrides, self.id)
            environment = options.environment
            if environment:
                app.environments.override(self.id, environment)
            if "cwd" not in environment and app.environments.has_host_paths(self.id):
                app.environments.override(self.id, {**environment, "cwd": os.getcwd()})
            closing.callback(app.environments.close, self.id)
            closing.callback(self._end_processes)
            self._names()  # raises UnknownToolset
            self._closing = closing.pop_all()

    def tools(self, format: Format = "openai", *, context_tokens: int | None = None) -> list[JsonDict]:  # noqa: A002  what it is
        """The definitions of the session's tools, as the provider wants them."""
        enabled, disabled = self._chosen()
        room = None if context_tokens is None else self._app.room_for_tools(context_tokens)
        return self._app.definitions.list(enabled, disabled, quiet=True, format=format, max_chars=room)

    async def run(self, message: Any, *, timeout: float | None = None) -> list[JsonDict]:  # noqa: ASYNC109  of the batch
        """Run the calls of a model's message. Returns what to add to the conversation, in the format that the calls had."""
        read = read_message(message)
        answers = await self._app.batches.run(read.calls, timeout=timeout, **self._who())
        return write_answers(read, answers)

    async def call(
        self,
        name: str,
        args: Any,
        *,
        answered: Answer | Sequence[Answer] = (),
        tool_call_id: str = "",
        on_progress: ProgressListener | None = None,
    ) -> Result:
        """Run one call. It never raises for what a tool or a model does. `answered` is the answer to what `preview` returned:
        nobody is asked then, and one that was given to another question is a denial."""
        if (turn := turn_to_begin()) is not None:  # of many that come at once, also the making of each takes its time
            await turn
        call = self._call(name, args, answered, tool_call_id=tool_call_id, on_progress=on_progress)
        return _result(await adrive(self._app.runtime.path(call), has_turn=True), call)

    def call_now(self, name: str, args: Any, answered: Answer | Sequence[Answer] = (), **more: Any) -> Result:
        """`call` from sync code."""
        call = self._call(name, args, answered, **more)
        return _result(drive(self._app.runtime.path(call)), call)

    async def preview(
        self, name: str, args: Any, *, answered: Sequence[Answer] = ()
    ) -> Denied | ApprovalRequest | None:
        """What the gate would say to this call now: refuse it, ask this question, or let it pass (None). It runs nothing but
        the hooks that decide about calls. A call that would ask again after `answered` has another question."""
        gate = _PreviewGate(await on_worker(lambda: self._app.gate), {answer.fingerprint for answer in answered})
        call = self._call(name, args, ())
        try:
            await adrive(self._app.runtime.path.until_run(gate)(call))
        except Exception as raised:
            error = cause(raised)
            if isinstance(error, Denied):
                return error
            if isinstance(error, _Question):
                self._previewed[_key(name, args)] = error.request.fingerprint
                if len(self._previewed) > _MAX_PREVIEWS:
                    self._previewed.pop(next(iter(self._previewed)))
                return error.request
            if not isinstance(error, HandrailError):
                raise
        return None

    def agent(self, **options: Any) -> Agent:
        """An agent that works in this session: with its tools, environment, approver and model. `options` are those of
        `open_agent`. It is closed with the session."""
        from ..agent.agent_factory import open_agent  # a model's client is imported only for who wants an agent

        model, (enabled, disabled) = self._options.model, self._chosen()
        given: JsonDict = {"model": model} if isinstance(model, str) else {"models": model}
        given |= {"toolsets": enabled, "without": disabled, "cwd": self._options.environment.get("cwd")}
        own: JsonDict = {"id": self.id, "environment": self._options.environment, "caller": self._caller}
        made = open_agent(self._app, **{**given, **options}, **own)
        self._agents.append(made)
        return made

    # What its calls have changed. Those that end in `_now` are for sync code; a call of another session raises CallNotFound.

    async def calls(self, count: int = 50) -> list[CallRecord]:
        """The session's calls that changed something, the newest first."""
        return await on_worker(lambda: self.calls_now(count))

    async def effects(self, number: int, *, diff: bool = False) -> JsonDict:
        """What a call has changed: paths `lost`, `changed`, `created` and `moved`, `hosts`, and what was not saved."""
        return await on_worker(lambda: self.effects_now(number, diff=diff))

    async def undo(self, number: int | None = None, **how: Any) -> JsonDict:
        """Take a call back, by default the last that changed something: see `Handrail.undo` (`only`, `force`, `dry_run`)."""
        return await on_worker(lambda: self.undo_now(number, **how))

    async def redo(self, number: int, **how: Any) -> JsonDict:
        """Bring back what an undo took back."""
        return await on_worker(lambda: self.redo_now(number, **how))

    def calls_now(self, count: int = 50) -> list[CallRecord]:
        return self._app.effects.latest(count, session=self.id)

    def effects_now(self, number: int, *, diff: bool = False) -> JsonDict:
        return self._app.effects.describe(self._own(number), diff=diff)

    def undo_now(self, number: int | None = None, **how: Any) -> JsonDict:
        if number is None:
            last = self._app.effects.last(1, session=self.id)
            if not last:
                raise CallNotFound("no call of this session has changed anything that could be undone")
            number = last[0].number
        return self._app.effects.undo(self._own(number), session=self.id, task=self.id, **how)

    def redo_now(self, number: int, **how: Any) -> JsonDict:
        return self._app.effects.redo(self._own(number), session=self.id, task=self.id, **how)

    def _own(self, number: int) -> int:
        if self._app.effects.records.get(number).session != self.id:
            raise CallNotFound(f"call {number} was made by another session; app.undo({number}) takes back any call")
        return number

    async def close(self) -> None:
        """End its calls, commands, background processes and MCP servers. Closing twice is the same as once."""
        await on_worker(self.close_now, on=_lane)

    def close_now(self) -> None:
        """`close` from sync code."""
        self._stop.cancel(_over)
        with self._closing:
            for agent in self._agents:
                agent.close()
            self._agents.clear()

    def _call(self, name: str, args: Any, answered: Answer | Sequence[Answer], **more: Any) -> Call:
        call = Call(name, args, **self._who(), **more)
        if answered:
            known = self._previewed.get(_key(name, args), "none")
            given = (answered,) if isinstance(answered, Answer) else answered
            bound = tuple(each if each.fingerprint else each._replace(fingerprint=known) for each in given)
            call.caller = self._caller._replace(answered=bound)
        call.contained = True
        return call

    def _who(self) -> JsonDict:
        if self._stop.cancelled:
            raise InvalidArguments(_over)
        own: JsonDict = {"cancel": self._stop, "caller": self._caller, "enabled_tools": self._names()}
        return {"task_id": self.id, "session_id": self.id, **own}

    def _chosen(self) -> tuple[list[str] | None, list[str]]:
        enabled, disabled = self._app.chosen_toolsets()
        own = [f"mcp-{name}" for name in self._options.mcp_servers]
        if self._options.toolsets is not None:
            enabled = list(self._options.toolsets)
        return None if enabled is None else [*enabled, *own], [*disabled, *self._options.without]

    def _names(self) -> frozenset[str]:
        generation = self._app.registry.generation
        if self._known_names[0] != generation:
            self._known_names = generation, self._app.definitions.names(*self._chosen())
        return self._known_names[1]

    def _end_processes(self) -> None:
        for tracked in self._app.processes.list(self.id):
            with contextlib.suppress(HandrailError):
                tracked.kill()


class SyncSession:
    """A session for sync code; see `Session`."""

    def __init__(self, session: Session) -> None:
        self.twin = session  # the same session for async code
        self.id, self.tools, self.agent = session.id, session.tools, session.agent
        self.call, self.close = session.call_now, session.close_now
        self.calls, self.effects, self.undo, self.redo = (
            session.calls_now, session.effects_now, session.undo_now, session.redo_now,
        )  # fmt: skip

    def run(self, message: Any, *, timeout: float | None = None) -> list[JsonDict]:
        return run_async(self.twin.run(message, timeout=timeout), timeout=MAX_SECONDS)

    def preview(self, name: str, args: Any, *, answered: Sequence[Answer] = ()) -> Denied | ApprovalRequest | None:
        return run_async(self.twin.preview(name, args, answered=answered))


def _forget_grants(app: Handrail, session_id: str) -> None:
    if "gate" in app.__dict__:  # else nobody was ever asked
        with contextlib.suppress(HandrailError):
            app.gate.forget_session(session_id)


class _Question(HandrailError):
    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(request.reason)
        self.request = request


class _PreviewGate:
    """Stops a call at the first question that has no answer yet."""

    def __init__(self, gate: ApprovalGate, answered: set[str]) -> None:
        self._gate, self._answered = gate, answered

    async def review(self, actions: Sequence[Action], context: ToolContext) -> None:
        request = await self._gate.preview(actions, context)
        if request is not None and request.fingerprint not in self._answered:
            raise _Question(request)


def _result(outcome: Outcome, call: Call) -> Result:
    text, failure = outcome, error_of(outcome)
    if not isinstance(text, str):
        text = "\n".join(part["text"] for part in text["content"] if part.get("type") == "text")
    kind = str(failure.get("error_type", "tool_failed")) if failure else ""
    return Result(text, parsed(outcome), failure is not None, kind, tuple(call.changes))


def _key(name: str, args: Any) -> tuple[str, str]:
    """The same for arguments as a dict and as the JSON text of it."""
    if isinstance(args, str):
        with contextlib.suppress(ValueError):
            args = json.loads(args)
    return name, json.dumps(args, sort_keys=True, default=repr)
