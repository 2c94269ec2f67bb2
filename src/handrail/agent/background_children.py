"""Child agents that work while their parent goes on: started, listed, told something more, stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from ..base.async_bridge import run_async
from ..base.suggest import did_you_mean
from ..base.workers import pool
from ..errors import InvalidArguments, ToolFailed
from ..types import CancelToken, JsonDict
from .delegation import MAX_AT_ONCE, Child, Parent, run_child

_CLOSE_SECONDS = 5.0


class BackgroundChild:
    """One child, on a thread of its own."""

    def __init__(self, parent: Parent, name: str, task: Mapping[str, Any]) -> None:
        self.name, self.goal, self.cancel, self.is_reported = name, str(task["goal"]), CancelToken(), False
        self.child: Child | None = None
        self._began, self._doing = time.monotonic(), ""
        work = run_child(parent, 0, task, self.cancel, self._note, self._started)
        self.work: Future[JsonDict] = pool.submit(run_async, work)

    def _started(self, child: Child) -> None:
        self.child = child

    def _note(self, text: str) -> None:
        self._doing = text

    def described(self) -> JsonDict:
        """What it does, or how it ended."""
        about: JsonDict = {"child": self.name, "goal": self.goal}
        if not self.work.done():
            seconds = round(time.monotonic() - self._began, 1)
            return {**about, "status": "running", "doing": self._doing, "seconds": seconds}
        if error := self.work.exception():
            return {**about, "status": "failed", "summary": f"{type(error).__name__}: {error}"}
        return {**about, **{key: value for key, value in self.work.result().items() if key != "task"}}


class BackgroundChildren:
    """Those of one agent."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._children: dict[str, BackgroundChild] = {}

    def manage(self, action: str, *, tasks: Sequence[Mapping[str, Any]], child: str, message: str) -> list[JsonDict]:
        """What `delegate_task` does besides waiting for children. Raises InvalidArguments, ToolFailed."""
        if action == "start":
            return [each.described() for each in self._start(tasks)]
        if action == "list":
            return [each.described() for each in self._children.values()]
        if child not in self._children:
            raise InvalidArguments(f"there is no child {child!r}; {did_you_mean(child, self._children)}")
        chosen = self._children[child]
        if action == "stop":
            chosen.cancel.cancel("stopped by the agent that started it")
            wait([chosen.work], timeout=_CLOSE_SECONDS)
        elif not message.strip():
            raise InvalidArguments("steer needs a message")
        elif chosen.work.done() or chosen.child is None:
            raise ToolFailed(f"{child} is not running; start another one")
        else:
            chosen.child.inbox.append(message)
        return [chosen.described()]

    def _start(self, tasks: Sequence[Mapping[str, Any]]) -> list[BackgroundChild]:
        running = sum(not each.work.done() for each in self._children.values())
        if running + len(tasks) > MAX_AT_ONCE:
            raise ToolFailed(
                f"{running} children run already, and at most {MAX_AT_ONCE} do at a time; stop one, or wait"
            )
        made = []
        for task in tasks:
            made.append(BackgroundChild(self._parent, f"child-{len(self._children) + 1}", task))
            self._children[made[-1].name] = made[-1]
        return made

    def notices(self) -> list[str]:
        """What ended since the last time."""
        ended = [each for each in self._children.values() if each.work.done() and not each.is_reported]
        for each in ended:
            each.is_reported = True
        results = [each.described() for each in ended]
        return [f"{how['child']} ({how['goal'][:80]}) has ended: {how['status']}. {how['summary']}" for how in results]

    def close(self) -> None:
        for each in self._children.values():
            each.cancel.cancel("the session is over")
        wait([each.work for each in self._children.values()], timeout=_CLOSE_SECONDS)
