"""An agent: a session, a model, tools, and what it remembers. This is what a program embeds.

agent = Agent(default(), [model], store=SessionStore())
print(agent.run("What is in this folder?").answer)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocols import Model
from ..store.search import search, window
from ..store.sessions import CHILD, MAIN, SessionInfo, SessionStore
from ..types import CancelToken, JsonDict
from .asking import Asking
from .conversation import Conversation
from .delegation import delegate
from .events import Event, Notice, TurnEnded
from .loop import DEFAULT_BUDGETS, Budgets, Listener, Loop
from .memory import Memory, Store
from .models.base import StreamingModel, streaming
from .prompt import IDENTITY, assemble, standard_parts
from .shortening import Shortening
from .todos import Todos

if TYPE_CHECKING:
    from ..model_tools import Handrail


class Agent:
    """One session of one agent. Close it to end what it runs. `session` None begins a new one."""

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
        depth: int = 0,
        parent: str | None = None,
    ) -> None:
        self.handrail, self.store, self.platform, self.depth = handrail, store, platform, depth
        self.models = [streaming(model) for model in models]
        self.cwd = cwd or os.getcwd()
        self.todos = Todos()
        self._memory = memory or Memory()
        self._budgets = budgets
        self._listener: Listener = _nobody
        kind = MAIN if depth == 0 else CHILD
        info = session or store.create(
            platform=platform, model=self.models[0].name, cwd=self.cwd, parent=parent, kind=kind
        )
        known = {"memory": self._memory.as_text(), "skills": _skills(handrail, toolsets, without)}
        prompt = assemble([*standard_parts(Path(self.cwd), identity=identity, **known)])
        self.shortening = Shortening(extra=self.todos.as_text)
        self.loop = Loop(
            handrail,
            Asking(self.models),
            Conversation(store, info),
            store,
            state=self,
            system=lambda: prompt,
            shorten=self.shortening,
            toolsets=(toolsets, without),
            budgets=budgets,
        )
        self.hook("on_session_start", session_id=info.id, platform=platform)

    @property
    def session_id(self) -> str:
        return self.loop.conversation.info.id

    def run(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        """One turn of the conversation, until the agent has answered."""
        from ..async_bridge import run_async

        return run_async(self.arun(text, listener))

    async def arun(self, text: str | list[JsonDict], listener: Listener | None = None) -> TurnEnded:
        self._listener = listener or _nobody
        first = len(self.loop.conversation) == 0
        said = text if isinstance(text, str) else "[not text]"
        if first and self.depth == 0 and not self.loop.conversation.info.title:
            self.store.rename(self.session_id, said.strip().partition("\n")[0][:80])
        added = await asyncio.to_thread(self._added_by_hooks, said, first)
        ended = await self.loop.arun(f"{text}\n\n{added}" if added and isinstance(text, str) else text, self._listener)
        told = {"session_id": self.session_id, "platform": self.platform}
        await asyncio.to_thread(self.hook, "on_session_end", reason=ended.end.value, **told)
        return ended

    def interrupt(self, reason: str = "the person interrupted") -> None:
        self.loop.interrupt(reason)

    def close(self) -> None:
        self.interrupt("the session is over")
        self.hook("on_session_finalize", session_id=self.session_id, platform=self.platform)

    def hook(self, name: str, **payload: Any) -> None:
        if self.handrail.runtime.hooks.active:
            self.handrail.runtime.hooks.invoke(name, **payload)

    def _added_by_hooks(self, said: str, first: bool) -> str:
        hooks = self.handrail.runtime.hooks
        if not hooks.active:
            return ""
        found = hooks.invoke(
            "pre_llm_call",
            session_id=self.session_id,
            model=self.models[0].name,
            user_message=said,
            messages=[dict(message) for message in self.loop.conversation.messages],
            is_first_turn=first,
        )
        return "\n\n".join(each for each in found if isinstance(each, str))

    # What the agent-level tools need.

    def remember(self, store: str, action: str, *texts: str) -> tuple[Sequence[str], int, int]:
        which = Store[store.upper()]
        getattr(self._memory, action)(which, *texts)
        return (self._memory.entries(which), *self._memory.used(which))

    def search_sessions(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
        return [hit._asdict() for hit in search(self.store, query, limit=limit)]

    def recent_sessions(self, limit: int) -> Sequence[Mapping[str, Any]]:
        found = self.store.recent(limit=limit)
        return [{"session": each.id, "title": each.title, "updated": each.updated, "cwd": each.cwd} for each in found]

    def messages_around(self, message_id: int, span: int) -> Sequence[Mapping[str, Any]]:
        found = window(self.store, message_id, before=span, after=span)
        return [{"message_id": each.id, "session": each.session, "at": each.at, **each.message} for each in found]

    async def delegate(self, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken) -> Sequence[Mapping[str, Any]]:
        return await delegate(self, tasks, cancel)

    def child(
        self, goal: str, *, toolsets: Sequence[str] | None, never: Sequence[str], instructions: str, model_calls: int
    ) -> Agent:
        """An agent that works for this one. It may use no tool that this one may not."""
        mine, without = self.loop.toolsets
        allowed = list(toolsets) if toolsets else mine
        if toolsets and mine is not None:
            known = set(self.handrail.toolsets.select(mine, without))
            outside = sorted(set(self.handrail.toolsets.select(list(toolsets))) - known)
            if outside:
                from ..errors import InvalidArguments

                raise InvalidArguments(f"a child may not use what you may not: {', '.join(outside)}")
        lower = ("delegation",) if self.depth + 1 >= 2 else ()
        child = Agent(
            self.handrail,
            self.models,
            store=self.store,
            toolsets=allowed,
            without=[*without, *never, *lower],
            budgets=self._budgets._replace(model_calls=model_calls),
            identity=f"{IDENTITY}\n{instructions}",
            platform=self.platform,
            cwd=self.cwd,
            memory=self._memory,
            depth=self.depth + 1,
            parent=self.session_id,
        )
        self.store.rename(child.session_id, goal[:80])
        return child

    def child_listener(self, child: Agent) -> Callable[[Event], object]:
        """What the person hears of a child: that it works, and what it waits for; not each of its words."""

        def listen(event: Event) -> None:
            if isinstance(event, Notice):
                self._listener(Notice(f"[{child.session_id[-6:]}] {event.text}"))

        return listen


def _skills(handrail: Handrail, toolsets: Sequence[str] | None, without: Sequence[str]) -> str:
    """What the prompt says of the skills, to an agent that can read them."""
    if "skill_view" not in handrail.toolsets.select(toolsets, without):
        return ""
    from ..tools.skills.library import Library
    from ..tools.skills.prompt import skills_prompt

    return skills_prompt(Library(handrail.config.skills))


def _nobody(event: Event) -> None:
    """When nobody listens."""
