"""An agent: a session, a model, tools, and what it remembers. This is what a program embeds.

agent = Agent(default(), [model], store=SessionStore())
print(agent.run("What is in this folder?").answer)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArguments
from ..protocols import Model
from ..store.search import search, window
from ..store.sessions import CHILD, MAIN, SessionInfo, SessionStore, StoredMessage
from ..types import CancelToken, JsonDict
from .budgets import DEFAULT_BUDGETS, Budgets
from .compaction import Shortening
from .conversation import Conversation
from .delegation import MAX_DEPTH, delegate
from .events import Event, TurnEnded
from .loop import Loop
from .memory import Memory, Store
from .model_requests import Asking
from .models.base import StreamingModel, streaming
from .system_prompt import IDENTITY, Where, assemble, standard_parts
from .telemetry import Telemetry
from .todos import Todos, restore
from .tool_calls import Calling, Listener, Run

if TYPE_CHECKING:
    from ..app import Handrail


_NAME = "handrail"


class Agent:
    """One session of one agent. Close it to end what it runs. `session` None begins a new one.

    `environment` says where its commands run, as `register_task_env_overrides` does; `play` answers calls in place of the
    tools; `helper` is the model that summarises; `label` is what a person is told when a child agent wants something of them.
    """

    def __init__(  # noqa: PLR0913  each is a part that can be exchanged
        self,
        handrail: Handrail,
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
        depth: int = 0,
        parent: str | None = None,
        label: str = "",
    ) -> None:
        self.handrail, self.store, self.platform, self.depth = handrail, store, platform, depth
        self.models = [streaming(model) for model in models]
        self.cwd = cwd or os.getcwd()
        self.label = label
        self.todos = Todos()
        self.telemetry = telemetry or Telemetry()
        self._memory = memory or Memory()
        self.listener: Listener = _nobody  # of the turn that runs
        self.closing = contextlib.ExitStack()
        kind = MAIN if depth == 0 else CHILD
        info = session or store.create(
            platform=platform, model=self.models[0].name, cwd=self.cwd, parent=parent, kind=kind, title=label
        )
        if session is not None:
            restore(self.todos, store.messages(session.id, hidden=True))
        self._place(info.id, environment or {})
        known = {"memory": self._memory.as_text(), "skills": _skills(handrail, toolsets, without)}
        prompt = assemble(standard_parts(self._where(info.id), identity=identity, **known))
        self._helper = helper
        writers = None if helper is None else Asking([streaming(helper), *self.models])
        self.shortening = Shortening(prompt=prompt, extra=self.todos.as_text, helper=writers)
        self.loop = Loop(
            Asking(self.models),
            Conversation(store, info),
            Calling(
                handrail,
                info.id,
                state=self,
                toolsets=(toolsets, without),
                telemetry=self.telemetry,
                play=play,
            ),
            system=lambda: prompt,
            shorten=self.shortening,
            news=self._news,
            budgets=budgets,
        )
        self.hook("on_session_start", session_id=info.id, platform=platform)

    def _place(self, session_id: str, environment: Mapping[str, Any]) -> None:
        """Where its commands run: as was said for it, else as configured; in its working directory where that is one."""
        environments = self.handrail.environments
        if environment:
            environments.override(session_id, environment)
        if "cwd" not in environment and environments.has_host_paths(session_id):
            environments.override(session_id, {**environment, "cwd": self.cwd})
        self._environment = dict(environment)
        self.closing.callback(environments.clear_overrides, session_id)

    def _where(self, session_id: str) -> Where:
        environments = self.handrail.environments
        if environments.has_host_paths(session_id):
            return Where(Path(environments.cwd(session_id) or self.cwd))
        return Where(Path(self.cwd), environments.settings(session_id).backend, environments.cwd(session_id))

    def _news(self, first: bool) -> list[str]:
        """What happened in the background. At the beginning of a turn also to what an earlier runtime has left."""
        found = self.handrail.processes.drain_notices(self.session_id, take_over=first)
        return [f"[News, not from the person] {notice}" for notice in found]

    @property
    def session_id(self) -> str:
        return self.loop.conversation.info.id

    def run(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        """One turn of the conversation, until the agent has answered."""
        from ..base.async_bridge import run_async

        return run_async(self.arun(text, listener))

    async def arun(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        self.listener = listener or _nobody
        first = len(self.loop.conversation) == 0
        said = text if isinstance(text, str) else "[not text]"
        if first and self.depth == 0 and not self.loop.conversation.info.title:
            self.store.rename(self.session_id, said.strip().partition("\n")[0][:80])
        hooked = self.handrail.runtime.hooks.active
        adding = partial(asyncio.to_thread, self._added_by_hooks, said, first) if hooked else None
        with self.telemetry.turn(self.session_id, agent=self.label or _NAME):
            ended = await self.loop.arun(text, self.listener, adding=adding)
        if hooked:
            await asyncio.to_thread(self._tell_hooks, said, ended)
        return ended

    async def compact(self) -> bool:
        """Put a summary in place of all but the last turn. False when there was nothing to summarise."""
        return await self.shortening.summarise(self.loop.conversation, self.loop.asking) is not None

    def undo(self) -> str:
        """Take back the last turn. Returns what the person had said, "" when there was nothing."""
        return self.loop.conversation.undo()

    def use(self, models: Sequence[Model | StreamingModel]) -> None:
        """Go on with other models."""
        self.models = [streaming(model) for model in models]
        self.loop.asking = Asking(self.models)
        self.store.set_model(self.session_id, self.models[0].name)

    def interrupt(self, reason: str = "the person interrupted") -> None:
        self.loop.interrupt(reason)

    def begun_after(self, session_id: str) -> None:
        """Tell the hooks that the person began anew: this session stands where that one stood."""
        self.hook("on_session_reset", session_id=session_id, new_session_id=self.session_id, platform=self.platform)

    def close(self) -> None:
        """Stop what runs, and end the shell of this session. What was started in the background lives on."""
        with self.closing:
            self.interrupt("the session is over")
            self.hook("on_session_finalize", session_id=self.session_id, platform=self.platform)
            self.handrail.environments.close(self.session_id)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hook(self, name: str, **payload: Any) -> None:
        if self.handrail.runtime.hooks.active:
            self.handrail.runtime.hooks.invoke(name, **payload)

    def _added_by_hooks(self, said: str, first: bool) -> str:
        found = self.handrail.runtime.hooks.invoke(
            "pre_llm_call",
            session_id=self.session_id,
            model=self.models[0].name,
            user_message=said,
            messages=[dict(message) for message in self.loop.conversation.messages],
            is_first_turn=first,
        )
        return "\n\n".join(each for each in found if isinstance(each, str))

    def _tell_hooks(self, said: str, ended: TurnEnded) -> None:
        heard = {"model": self.models[0].name, "user_message": said, "answer": ended.answer}
        self.hook("post_llm_call", session_id=self.session_id, usage=ended.usage._asdict(), **heard)
        self.hook("on_session_end", session_id=self.session_id, platform=self.platform, reason=ended.end.value)

    # What the agent-level tools need.

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
        return [_told(each) for each in found[offset : offset + limit]]

    def messages_around(self, message_id: int, span: int) -> Sequence[Mapping[str, Any]]:
        return [_told(each) for each in window(self.store, message_id, before=span, after=span)]

    async def delegate(
        self, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, tell: Callable[[str], object]
    ) -> Sequence[Mapping[str, Any]]:
        return await delegate(self, tasks, cancel, tell)

    def child(
        self, goal: str, *, toolsets: Sequence[str] | None, never: Sequence[str], instructions: str, model_calls: int
    ) -> Agent:
        """An agent that works for this one. It may use no tool that this one may not."""
        mine, without = self.loop.calling.toolsets
        known = set(self.handrail.toolsets.select(mine, without))
        outside = sorted(set(self.handrail.toolsets.select(list(toolsets))) - known) if toolsets else []
        if outside:
            raise InvalidArguments(f"a child may not use what you may not: {', '.join(outside)}")
        lowest = ("delegation",) if self.depth + 1 >= MAX_DEPTH else ()
        return Agent(
            self.handrail,
            self.models,
            store=self.store,
            toolsets=list(toolsets) if toolsets else mine,
            without=[*without, *never, *lowest],
            budgets=self.loop.left()._replace(model_calls=model_calls),
            identity=f"{IDENTITY}\n{instructions}",
            platform=self.platform,
            cwd=self.cwd,
            memory=self._memory,
            environment=self._environment,
            telemetry=self.telemetry,
            helper=self._helper,
            depth=self.depth + 1,
            parent=self.session_id,
            label=goal.partition("\n")[0][:80],
        )


def _skills(handrail: Handrail, toolsets: Sequence[str] | None, without: Sequence[str]) -> str:
    """What the prompt says of the skills, to an agent that can read them."""
    if "skill_view" not in handrail.toolsets.select(toolsets, without):
        return ""
    from ..tools.skills.library import Library
    from ..tools.skills.prompt import skills_prompt

    return skills_prompt(Library(handrail.config.skills))


def _told(stored: StoredMessage) -> JsonDict:
    return {"message_id": stored.id, "session": stored.session, "at": _when(stored.at), **stored.message}


def _when(at: float) -> str:
    """As a model reads it."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def _nobody(event: Event) -> None:
    """When nobody listens."""
