"""Which tools can be used now, and why not the others."""

from __future__ import annotations

import contextvars
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import Protocol

from ..types import Unavailable

log = logging.getLogger(__name__)

CheckFn = Callable[[], object]

KEPT_SECONDS = 30.0
FLAKE_SECONDS = 60.0
CHECK_DEADLINE_SECONDS = 5.0
_CHECK_THREADS = 4


class Checked(Protocol):
    """The part of a tool's entry that decides whether it can be used."""

    @property
    def name(self) -> str: ...
    @property
    def check_fn(self) -> CheckFn | None: ...
    @property
    def requires_env(self) -> tuple[str, ...]: ...


class _Seen:
    __slots__ = ("checked_at", "last_success", "verdict")

    def __init__(self) -> None:
        self.verdict: object = None
        self.checked_at = self.last_success = float("-inf")


class Availability:
    """Runs checks, each bounded in time, and remembers what they said."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, deadline: float = CHECK_DEADLINE_SECONDS
    ) -> None:
        self._clock = clock
        self._deadline = deadline
        self._seen: dict[CheckFn, _Seen] = {}
        self._running: dict[CheckFn, Future[object]] = {}
        self._lock = threading.Lock()

    def why_not(self, tool: Checked) -> Unavailable | None:
        """None when the tool can be used."""
        return self.unavailable([tool]).get(tool.name)

    def unavailable(self, tools: Iterable[Checked]) -> dict[str, Unavailable]:
        """The tools among these that cannot be used now, with the reason. A shared check runs once."""
        checked = [tool for tool in tools if tool.check_fn is not None]
        if not checked:
            return {}
        now = self._clock()
        verdicts: dict[CheckFn, object] = {}
        stale: list[CheckFn] = []
        for tool in checked:
            check = tool.check_fn
            if check is None or check in verdicts:
                continue
            seen = self._seen.get(check)
            if seen is not None and now - seen.checked_at < KEPT_SECONDS:
                verdicts[check] = seen.verdict
            else:
                verdicts[check] = None
                stale.append(check)
        if stale:
            verdicts.update(self._refresh(stale))
        return {
            tool.name: _explain(tool, verdict)
            for tool in checked
            if not (verdict := verdicts[tool.check_fn]) and tool.check_fn is not None  # type: ignore[index]
        }

    def is_fresh(self, tool: Checked) -> bool:
        """Whether asking about the tool runs nothing."""
        if tool.check_fn is None:
            return True
        seen = self._seen.get(tool.check_fn)
        return seen is not None and self._clock() - seen.checked_at < KEPT_SECONDS

    def forget(self) -> None:
        """Check everything anew at the next question."""
        with self._lock:
            self._seen.clear()

    def keep_only(self, live: Iterable[CheckFn]) -> None:
        """Drop what is remembered of checks that no tool uses any more."""
        alive = set(live)
        with self._lock:
            for check in [check for check in self._seen if check not in alive]:
                del self._seen[check]

    @property
    def remembered(self) -> int:
        return len(self._seen)

    def _refresh(self, checks: list[CheckFn]) -> dict[CheckFn, object]:
        answers = self._run(checks)
        now = self._clock()
        verdicts: dict[CheckFn, object] = {}
        with self._lock:
            for check in checks:
                seen = self._seen.setdefault(check, _Seen())
                verdict = answers.get(check, Unavailable(f"its check did not answer within {self._deadline:g} s"))
                if verdict:
                    seen.last_success = now
                elif now - seen.last_success < FLAKE_SECONDS:
                    log.warning("check %s failed shortly after a success, taken for a flake: %s", _name(check), verdict)
                    verdicts[check] = True
                    continue
                seen.verdict, seen.checked_at = verdict, now
                verdicts[check] = verdict
        return verdicts

    def _run(self, checks: list[CheckFn]) -> dict[CheckFn, object]:
        """What each check said in time. One that hangs keeps its thread and is not started again meanwhile."""
        queue: deque[CheckFn] = deque()
        with self._lock:
            for check in checks:
                if check not in self._running:
                    self._running[check] = Future()
                    queue.append(check)
            asked = {check: self._running[check] for check in checks}
        for _ in range(min(_CHECK_THREADS, len(queue))):
            run = contextvars.copy_context().run
            threading.Thread(target=run, args=(self._work, queue), name="handrail-check", daemon=True).start()
        wait(asked.values(), timeout=self._deadline)
        with self._lock:
            while queue:  # every thread hangs in another check: these were never started
                self._running.pop(queue.popleft())
        return {check: answer.result() for check, answer in asked.items() if answer.done()}

    def _work(self, queue: deque[CheckFn]) -> None:
        while True:
            try:
                check = queue.popleft()
            except IndexError:
                return
            verdict = _answer(check)
            with self._lock:
                answer = self._running.pop(check)
            answer.set_result(verdict)


def _answer(check: CheckFn) -> object:
    try:
        verdict = check()
        return verdict if isinstance(verdict, Unavailable) else bool(verdict)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a check may raise anything; "could not tell" means "not available"
        return Unavailable(f"its check failed: {type(error).__name__}: {error}")


def _explain(tool: Checked, verdict: object) -> Unavailable:
    if isinstance(verdict, Unavailable):
        return verdict
    missing = [name for name in tool.requires_env if not os.environ.get(name)]
    if missing:
        names = ", ".join(missing)
        return Unavailable(
            f"{names} is not set" if len(missing) == 1 else f"{names} are not set", "set it in the environment"
        )
    return Unavailable(f"its check {_name(tool.check_fn)} says that it cannot be used now")


def _name(check: CheckFn | None) -> str:
    return getattr(check, "__qualname__", None) or repr(check)
