"""An agent: a session, a model, tools, and a memory. This is what a program embeds.

agent = Agent(default(), [model], store=SessionStore())
print(agent.run("What is in this folder?").answer)
"""

import asyncio
import contextlib
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from ..app import Handrail
from ..base.loops import on_worker
from ..base.workers import run_async
from ..config.paths import state_dir
from ..errors import InvalidArguments
from ..protocols import Model
from ..store.search import search, window
from ..store.sessions import CHILD, MAIN, SessionInfo, SessionStore, StoredMessage
from ..tools.skills.library import Library, skills_prompt
from ..types import NO_CALLER, Caller, CancelToken, JsonDict
from .conversation import Compaction, Conversation
from .delegation import CHILD_MODEL_CALLS, INSTRUCTIONS, MAX_DEPTH, WITHOUT, BackgroundChildren, Lineage, delegate
from .events import DEFAULT_BUDGETS, Budgets, End, Event, TurnEnded, Usage
from .loop import Loop
from .memory import Memory, Store, Todos, restore
from .model_middleware import ModelMiddleware
from .models.base import ModelRequests, StreamingModel, streaming
from .system_prompt import IDENTITY, FolderTrust, Where, assemble, project_files, standard_parts
from .telemetry import Telemetry
from .tool_calls import Listener, Run, ToolCalls, ignore

_NAME = "handrail"
log = logging.getLogger(__name__)


class Agent:
    """One session of one agent. Close it to end what it runs. Without a `session` it starts a new one. `environment` says where
    its commands run, as for `register_task_env_overrides`; `play` answers calls instead of the tools; `helper` is the model
    that writes summaries; `lineage` is that of a child agent; `caller` says who is asked."""

    def __init__(  # noqa: PLR0913  each is a part that can be replaced
        self,
        app: Handrail,
        models: Sequence[Model | StreamingModel],
        *,
        store: SessionStore,
        session: SessionInfo | None = None,
        toolsets: Sequence[str] | None = None,
        without: Sequence[str] = (),
        budgets: Budgets = DEFAULT_BUDGETS,
        identity: str = IDENTITY,
        platform: str = "cli",
        cwd: str | None = None,
        memory: Memory | None = None,
        environment: Mapping[str, Any] | None = None,
        telemetry: Telemetry | None = None,
        play: Run | None = None,
        helper: Model | StreamingModel | None = None,
        lineage: Lineage = Lineage(),  # noqa: B008  an immutable value
        caller: Caller = NO_CALLER,
    ) -> None:
        self.app, self.store, self.platform, self.lineage = app, store, platform, lineage
        self.models = [streaming(model) for model in models]
        self.cwd = cwd or os.getcwd()
        self.todos = Todos()
        self.telemetry = telemetry or Telemetry()
        self._memory = memory or Memory(state_dir(app.config.home) / "memory")
        self.listener: Listener = ignore  # of the current turn
        self.unheard: list[str] = []  # said by the user while it works
        self.inbox: list[str] = []  # what a parent adds to the task while this works on it
        self._injected: list[str] = []  # by plugins
        self.wake: Callable[[], None] = lambda: None  # a surface whose user is idle may start a turn then
        self._children = BackgroundChildren(self)
        self.closing = contextlib.ExitStack()
        self._end: End | None = None  # of the last turn here
        self._helper = helper
        info = self._session(session)
        self._place_commands(info.id, environment or {})
        prompt = self._prompt(info.id, identity, toolsets, without)
        writers = None if helper is None else ModelRequests([streaming(helper), *self.models])
        hook = partial(self.hook, platform=platform)
        self.compaction = Compaction(prompt=prompt, extra=self.todos.as_text, helper=writers, hook=hook)
        given: Any = {"toolsets": (toolsets, without), "telemetry": self.telemetry, "play": play, "caller": caller}
        self.loop = Loop(
            ModelRequests(self.models),
            Conversation(store, info),
            ToolCalls(app, info.id, state=self, **given),
            system=lambda: prompt,
            compaction=self.compaction,
            notifications=self._notifications,
            budgets=budgets,
            hook=hook if app.runtime.hooks.active else None,
            ask_for_more=None if lineage.depth else self._ask_for_more,
            middleware=ModelMiddleware(app.runtime.hooks) if app.plugins is not None else None,
        )
        if app.plugins is not None and not lineage.depth:
            sessions = app.plugins.contributions.sessions
            sessions[info.id] = self
            self.closing.callback(sessions.pop, info.id, None)
        self.hook("on_session_start", **self._about())

    def _session(self, known: SessionInfo | None) -> SessionInfo:
        """The session that goes on, with its todo list, or a new one."""
        if known is not None:
            restore(self.todos, self.store.messages(known.id, hidden=True))
        info = known or self.store.create(
            platform=self.platform,
            model=self.models[0].name,
            cwd=self.cwd,
            parent=self.lineage.parent,
            kind=CHILD if self.lineage.depth else MAIN,
            title=self.lineage.label,
        )
        if self.lineage.parent:
            self.app.inherit_mode(info.id, self.lineage.parent)
            self.closing.callback(self.app.forget_mode, info.id)
        return info

    def _prompt(self, session_id: str, identity: str, toolsets: Sequence[str] | None, without: Sequence[str]) -> str:
        app, where = self.app, self._where(session_id)
        known = {"memory": self._memory.as_text()}
        skills = Library(app.config.skills).all()
        if "skill_view" in app.toolsets.select(toolsets, without):  # it can read them
            known["skills"] = skills_prompt(skills)
        if app.mcp is not None:
            known["servers"] = app.mcp.instructions(app.definitions.names(toolsets, list(without)))
        trusted = FolderTrust(where.folder, app.config.home).is_trusted()
        if not self.lineage.depth:
            unused = [] if trusted else [f"{path} (--trust-folder)" for path, _ in project_files(where.folder)]
            waiting = [each.name for each in skills if each.waits]
            app.warn_untrusted(*unused, *(f"the skill {name} (`handrail skills trust {name}`)" for name in waiting))
        return assemble(standard_parts(where, identity=identity, is_trusted=trusted, **known))

    def _place_commands(self, session_id: str, environment: Mapping[str, Any]) -> None:
        """Set where its commands run: as given, else as configured; in its working directory if that exists there."""
        environments = self.app.environments
        if environment:
            environments.override(session_id, environment)
        if "cwd" not in environment and environments.has_host_paths(session_id):
            environments.override(session_id, {**environment, "cwd": self.cwd})
        self._environment = dict(environment)
        self.closing.callback(environments.clear_overrides, session_id)

    def _where(self, session_id: str) -> Where:
        environments = self.app.environments
        if environments.has_host_paths(session_id):
            return Where(Path(environments.cwd(session_id) or self.cwd))
        return Where(Path(self.cwd), environments.settings(session_id).backend, environments.cwd(session_id))

    @property
    def label(self) -> str:
        """What the user sees when a child agent asks for something; empty for the main agent."""
        return self.lineage.label

    def _notifications(self, first: bool) -> list[str]:
        """What happened in the background. When a turn starts, also to processes that an earlier runtime has left."""
        found = [*self.app.processes.drain_notices(self.session_id, take_over=first), *self._children.notices()]
        interrupted = self.app.effects.interrupted(self.session_id) if first else []
        notices = [f"[Notification, not from the user] {notice}" for notice in [*found, *interrupted]]
        notices += self.take_injected()
        if not first:
            notices += [f"[From the agent that gave you the task] {text}" for text in self.inbox]
            self.inbox.clear()
            notices += [f"[The user says while you work] {text}" for text in self.take_unheard()]
        return notices

    def steer(self, text: str) -> None:
        """Say something to the agent while it works: it hears it before it asks its model again."""
        self.unheard.append(text)

    def inject(self, text: str) -> None:
        """A plugin's message: the agent hears it before it asks its model again, or in its next turn."""
        self._injected.append(text)
        self.wake()

    def take_injected(self) -> list[str]:
        """What plugins have said, and it has not heard yet."""
        said, self._injected = self._injected, []
        return said

    def take_unheard(self) -> list[str]:
        """What was said while it worked, and it has not heard yet."""
        said, self.unheard = self.unheard, []
        return said

    @property
    def session_id(self) -> str:
        return self.loop.conversation.info.id

    def run(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        """One turn of the conversation, until the agent has answered."""
        return run_async(self.arun(text, listener))

    async def arun(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        self.listener = listener or ignore
        first = len(self.loop.conversation) == 0
        message = text if isinstance(text, str) else "[not text]"
        if first and self.lineage.depth == 0 and not self.loop.conversation.info.title:
            self.store.rename(self.session_id, message.strip().partition("\n")[0][:80])
        hooked = self.app.runtime.hooks.active
        adding = partial(asyncio.to_thread, self._added_by_hooks, message, first) if hooked else None
        with self.telemetry.turn(self.session_id, agent=self.label or _NAME):
            ended = await self.loop.arun(text, self.listener, adding=adding)
        self._end = ended.end
        return await asyncio.to_thread(self._notify_hooks, message, ended) if hooked else ended

    async def stream(self, text: str | list[JsonDict]) -> AsyncIterator[Event]:
        """One turn, event by event; the last one is `TurnEnded`. Leaving the loop early ends the turn."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        turn = asyncio.ensure_future(self.arun(text, events.put_nowait))
        turn.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await turn
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    def resume(self, listener: Listener | None = None) -> TurnEnded:
        """Go on with a turn that was cut off: by a kill, an interruption, or a budget."""
        return run_async(self.aresume(listener))

    async def aresume(self, listener: Listener | None = None) -> TurnEnded:
        """`resume` for async callers. Without anything to go on with, the last answer."""
        messages = self.loop.conversation.messages
        last = messages[-1] if messages else {}
        has_answer = last.get("role", "assistant") == "assistant" and not last.get("tool_calls")
        if has_answer and self._end in (None, End.ANSWERED):
            return TurnEnded(End.ANSWERED, str(last.get("content") or ""), Usage(), 0, "there is nothing to go on with")
        self.listener = listener or ignore
        if has_answer:  # a part of one, which was cut off
            self.loop.conversation.say("Your answer was cut off. Go on where it ends.", by=_NAME)
        with self.telemetry.turn(self.session_id, agent=self.label or _NAME):
            ended = await self.loop.arun(None, self.listener)
        self._end = ended.end
        return ended

    async def _ask_for_more(self, over: End) -> bool:
        if (person := self.loop.tool_calls.caller.person or self.app.runtime.person) is None:
            return False
        question = f"The budget of this turn for {over.value} is used up. Go on with as much again?"
        answer = await on_worker(person.ask, question, ["yes", "no"])
        answer = await answer if inspect.isawaitable(answer) else answer
        return answer == "yes"

    async def compact(self) -> bool:
        """Replace all but the last turn by a summary. False when there was nothing to summarise."""
        return await self.compaction.summarise(self.loop.conversation, self.loop.requests) is not None

    def undo(self) -> str:
        """Remove the last turn. Returns the user's message, "" when there was none."""
        return self.loop.conversation.undo()

    def use(self, models: Sequence[Model | StreamingModel]) -> None:
        """Continue with other models."""
        self.models = [streaming(model) for model in models]
        self.loop.requests = ModelRequests(self.models)
        self.store.set_model(self.session_id, self.models[0].name)

    def interrupt(self, reason: str = "the user interrupted") -> None:
        self.loop.interrupt(reason)

    def started_after(self, session_id: str) -> None:
        """Notify the hooks that the user started over: this session replaces that one."""
        self.hook("on_session_reset", session_id=session_id, new_session_id=self.session_id, platform=self.platform)

    def close(self) -> None:
        """Stop what runs, and end the shell of this session. Background processes keep running."""
        with self.closing:
            self.interrupt("the session is over")
            self._children.close()
            self.app.runtime.hooks.wait_for_observers()
            self.hook("on_session_finalize", session_id=self.session_id, platform=self.platform)
            self.app.environments.close(self.session_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hook(self, name: str, **payload: Any) -> list[Any]:
        """What the hooks of this name return; nothing for those that are called later."""
        hooks = self.app.runtime.hooks
        return hooks.invoke(name, **payload) if hooks.active else []

    def _added_by_hooks(self, message: str, first: bool) -> str:
        about = {"user_message": message, "messages": self._messages(), "is_first_turn": first}
        found = self.hook("pre_llm_call", **self._about(), **about)
        return "\n\n".join(each for each in found if isinstance(each, str))

    def _notify_hooks(self, message: str, ended: TurnEnded) -> TurnEnded:
        hooks, about = self.app.runtime.hooks, self._about()
        text = hooks.transform("transform_llm_output", "response_text", response_text=ended.answer, **about)
        ended = ended._replace(answer=text)
        payload = {"user_message": message, "answer": text, "messages": self._messages()}
        self.hook("post_llm_call", **about, **payload, usage=ended.usage._asdict())
        self.hook("on_session_end", **about, reason=ended.end.value)
        return ended

    def _about(self) -> JsonDict:
        return {"session_id": self.session_id, "model": self.models[0].name, "platform": self.platform}

    def _messages(self) -> list[JsonDict]:
        return [dict(each) for each in self.loop.conversation.messages]

    def remember(self, store: str, action: str, *texts: str) -> tuple[Sequence[str], int, int]:
        which = Store[store.upper()]
        getattr(self._memory, action)(which, *texts)
        return (self._memory.entries(which), *self._memory.used(which))

    def search_sessions(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
        return [{**hit._asdict(), "at": _when(hit.at)} for hit in search(self.store, query, limit=limit)]

    def recent_sessions(self, limit: int, offset: int) -> Sequence[Mapping[str, Any]]:
        return [
            {"session": each.id, "title": each.title, "used": _when(each.updated), "cwd": each.cwd}
            for each in self.store.recent(limit=limit, offset=offset)
        ]

    def messages_of(self, session: str, limit: int, offset: int) -> Sequence[Mapping[str, Any]]:
        found = self.store.messages(self.store.get(session).id, hidden=True)
        return [_as_dict(each) for each in found[offset : offset + limit]]

    def messages_around(self, message_id: int, span: int) -> Sequence[Mapping[str, Any]]:
        return [_as_dict(each) for each in window(self.store, message_id, before=span, after=span)]

    async def delegate(
        self, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, tell: Callable[[str], object]
    ) -> Sequence[Mapping[str, Any]]:
        return await delegate(self, tasks, cancel, tell)

    def manage_children(
        self, action: str, *, tasks: Sequence[Mapping[str, Any]] = (), child: str = "", message: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        return self._children.manage(action, tasks=tasks, child=child, message=message)

    def charge(self, usage: Usage) -> None:
        """Add a child's usage to this turn."""
        self.loop.turn.charge(usage)

    def child(self, goal: str, toolsets: Sequence[str] | None) -> "Agent":
        """An agent that works for this one, with no tool that this one may not use."""
        mine, disabled = self.loop.tool_calls.toolsets
        known = set(self.app.toolsets.select(mine, disabled))
        outside = sorted(set(self.app.toolsets.select(list(toolsets))) - known) if toolsets else []
        if outside:
            raise InvalidArguments(f"a child may not use what you may not: {', '.join(outside)}")
        depth = self.lineage.depth + 1
        lowest = ("delegation",) if depth >= MAX_DEPTH else ()
        return Agent(
            self.app,
            self.models,
            store=self.store,
            toolsets=list(toolsets) if toolsets else mine,
            without=[*disabled, *WITHOUT, *lowest],
            budgets=self.loop.turn.left()._replace(model_calls=CHILD_MODEL_CALLS),
            identity=f"{IDENTITY}\n{INSTRUCTIONS}",
            platform=self.platform,
            cwd=self.cwd,
            memory=self._memory,
            environment=self._environment,
            telemetry=self.telemetry,
            helper=self._helper,
            lineage=Lineage(self.session_id, depth, goal.partition("\n")[0][:80]),
            caller=self.loop.tool_calls.caller,
        )


def _as_dict(stored: StoredMessage) -> JsonDict:
    return {"message_id": stored.id, "session": stored.session, "at": _when(stored.at), **stored.message}


def _when(at: float) -> str:
    """As ISO 8601 in local time."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
