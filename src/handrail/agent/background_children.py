"""Child agents that work while their parent goes on: started, listed, told something more, stopped."""

from __future__ import annotations

import threading
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
        self.name, self.goal = name, str(task["goal"])
        self.cancel = CancelToken()
        self.doing, self.is_reported = "", False
        self._began = time.monotonic()
        self._child: Child | None = None
        work = run_child(parent, 0, task, self.cancel, self._note, self._started)
        self.work: Future[JsonDict] = pool.submit(run_async, work)

    def _started(self, child: Child) -> None:
        self._child = child

    def _note(self, text: str) -> None:
        self.doing = text

    def result(self) -> JsonDict:
        """How it ended; that it runs, if it does."""
        if not self.work.done():
            return {"status": "running", "doing": self.doing, "seconds": round(time.monotonic() - self._began, 1)}
        if error := self.work.exception():
            return {"status": "failed", "summary": f"{type(error).__name__}: {error}"}
        return {key: value for key, value in self.work.result().items() if key != "task"}

    def steer(self, message: str) -> None:
        if self.work.done() or self._child is None:
            raise ToolFailed(f"{self.name} is not running; start another one")
        self._child.inbox.append(message)


class BackgroundChildren:
    """Those of one agent."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._children: dict[str, BackgroundChild] = {}
        self._lock = threading.Lock()

    def manage(self, action: str, *, tasks: Sequence[Mapping[str, Any]], child: str, message: str) -> list[JsonDict]:
        """What `delegate_task` does besides waiting for children. Raises InvalidArguments, ToolFailed."""
        if action == "start":
            chosen = self._start(tasks)
        elif action == "list":
            chosen = list(self._children.values())
        else:
            chosen = [self._get(child)]
            if action == "stop":
                chosen[0].cancel.cancel("stopped by the agent that started it")
                wait([chosen[0].work], timeout=_CLOSE_SECONDS)
            elif not message.strip():
                raise InvalidArguments("steer needs a message")
            else:
                chosen[0].steer(message)
        return [{"child": each.name, "goal": each.goal, **each.result()} for each in chosen]

    def _start(self, tasks: Sequence[Mapping[str, Any]]) -> list[BackgroundChild]:
        with self._lock:
            running = sum(not each.work.done() for each in self._children.values())
            if running + len(tasks) > MAX_AT_ONCE:
                raise ToolFailed(
                    f"{running} children run already, and at most {MAX_AT_ONCE} do at a time; stop one, or wait"
                )
            first = len(self._children) + 1
            made = [BackgroundChild(self._parent, f"child-{first + n}", task) for n, task in enumerate(tasks)]
            self._children.update({each.name: each for each in made})
        return made

    def _get(self, name: str) -> BackgroundChild:
        if name not in self._children:
            raise InvalidArguments(f"there is no child {name!r}; {did_you_mean(name, self._children)}")
        return self._children[name]

    def notices(self) -> list[str]:
        """What ended since the last time."""
        ended = [each for each in self._children.values() if each.work.done() and not each.is_reported]
        for each in ended:
            each.is_reported = True
        results = [(each, each.result()) for each in ended]
        return [f"{each.name} ({each.goal[:80]}) has ended: {how['status']}. {how['summary']}" for each, how in results]

    def close(self) -> None:
        for each in self._children.values():
            each.cancel.cancel("the session is over")
        wait([each.work for each in self._children.values()], timeout=_CLOSE_SECONDS)
