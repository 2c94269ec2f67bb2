"""Which tools can be used now, and why not the others."""

import inspect
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from functools import partial
from importlib.machinery import PathFinder

from ..base.workers import WorkerPool, is_interrupt, run_async
from ..settings.schema import Config
from ..types import Unavailable
from .entry import CheckFn, ToolEntry

log = logging.getLogger(__name__)

KEPT_SECONDS = 30.0
FLAKE_SECONDS = 60.0
CHECK_DEADLINE_SECONDS = 5.0
_pool = WorkerPool(idle_seconds=0)  # checks run seldom: nothing is left of them


class _Seen:
    verdict: object = None
    checked_at = last_success = float("-inf")


class Availability:
    """Runs checks, each bounded in time, and remembers what they said."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        deadline: float = CHECK_DEADLINE_SECONDS,
    ) -> None:
        self._config = config or Config()
        self._clock = clock
        self._deadline = deadline
        # By `_key`: what a check is compared by, as some callables cannot be hashed.
        self._seen: dict[object, _Seen] = {}
        self._running: dict[object, Future[object]] = {}
        self._lock = threading.Lock()

    @property
    def config(self) -> Config:
        return self._config

    @config.setter
    def config(self, config: Config) -> None:
        """What the checks said of another configuration holds no longer, nor what those say that still run."""
        with self._lock:
            self._config = config
            self._seen, self._running = {}, {}

    def why_not(self, tool: ToolEntry) -> Unavailable | None:
        """None when the tool can be used."""
        return self.unavailable([tool]).get(tool.name)

    def unavailable(self, tools: Iterable[ToolEntry]) -> dict[str, Unavailable]:
        """The tools among these that cannot be used now, with the reason. A shared check runs once."""
        checked = [(tool, tool.check_fn) for tool in tools if tool.check_fn is not None]
        if not checked:
            return {}
        checks = {_key(check): check for _, check in checked}
        verdicts = {key: seen.verdict for key, check in checks.items() if (seen := self._fresh(check)) is not None}
        stale = {key: check for key, check in checks.items() if key not in verdicts}
        if stale:
            verdicts.update(self._refresh(stale))
        return {tool.name: _explain(tool, verdict) for tool, check in checked if not (verdict := verdicts[_key(check)])}

    def is_fresh(self, tool: ToolEntry) -> bool:
        """Whether asking about the tool runs nothing."""
        return tool.check_fn is None or self._fresh(tool.check_fn) is not None

    def is_known_good(self, tool: ToolEntry) -> bool:
        """Whether it can be used, as far as is known without running anything."""
        seen = self._fresh(tool.check_fn) if tool.check_fn is not None else None
        return seen is not None and bool(seen.verdict)

    def _fresh(self, check: CheckFn) -> _Seen | None:
        seen = self._seen.get(_key(check))
        return seen if seen is not None and self._clock() - seen.checked_at < KEPT_SECONDS else None

    def forget(self, check: CheckFn | None = None) -> None:
        """Ask anew at the next question: one check, or all."""
        with self._lock:
            if check is None:
                self._seen.clear()
            else:
                self._seen.pop(_key(check), None)

    def _refresh(self, checks: dict[object, CheckFn]) -> dict[object, object]:
        """What each check says in time. One that hangs keeps its thread and is not started again meanwhile."""
        began = self._clock()
        verdicts: dict[object, object] = {}
        asked: dict[object, Future[object]] = {}
        with self._lock:
            known, running = self._seen, self._running  # others once the configuration has changed: this is lost then
            for key, check in checks.items():
                seen = known.get(key)
                if seen is not None and began - seen.checked_at < KEPT_SECONDS:  # another listing has just asked
                    verdicts[key] = seen.verdict
                    continue
                if key not in running:
                    running[key] = _pool.submit(_answer, check, self._config)
                asked[key] = running[key]
        ended = wait(asked.values(), self._deadline).done
        now = self._clock()
        with self._lock:
            for key, answer in asked.items():
                if answer in ended and running.get(key) is answer:
                    del running[key]
                late = Unavailable(f"its check did not answer within {self._deadline:g} s")
                verdict = answer.result() if answer in ended else late
                verdicts[key] = _noted(known.setdefault(key, _Seen()), verdict, now, checks[key])
        for key, answer in asked.items():
            if answer not in ended:  # what it says late is how it was then
                answer.add_done_callback(partial(self._drop, running, key))
        return verdicts

    def _drop(self, running: dict[object, Future[object]], key: object, answer: Future[object]) -> None:
        with self._lock:
            if running.get(key) is answer:
                del running[key]


def _noted(seen: _Seen, verdict: object, now: float, check: CheckFn) -> object:
    if verdict:
        seen.last_success = now
    elif now - seen.last_success < FLAKE_SECONDS:
        log.warning("check %s failed shortly after a success, taken for a flake: %s", _name(check), verdict)
        return True
    seen.verdict, seen.checked_at = verdict, now
    return verdict


def first_lack(*reasons: Unavailable | None) -> Unavailable | None:
    """The first thing that is missing, for checks of several. (`or` would pass it over: what is unavailable is falsy.)"""
    return next((reason for reason in reasons if reason is not None), None)


def usable_unless(lack: Unavailable | None) -> Unavailable | bool:
    """What a check says when this is all that can be missing."""
    return True if lack is None else lack


def missing(extra: str, *modules: str) -> Unavailable | None:
    """What to install, if one of the modules is not there."""
    absent = [module for module in modules if PathFinder.find_spec(module) is None]
    lack = f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed"
    return Unavailable(lack, f"pip install 'handrail[{extra}]'") if absent else None


def _answer(check: CheckFn, config: Config) -> object:
    try:
        verdict = check(config=config) if takes(check, "config") else check()
        if hasattr(verdict, "__await__"):
            verdict = run_async(verdict)
        return verdict if isinstance(verdict, Unavailable) else bool(verdict)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return Unavailable(f"its check failed: {type(error).__name__}: {error}")


def takes(function: Callable[..., object], parameter: str) -> bool:
    """Whether the function declares a parameter of that name."""
    try:
        return parameter in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _key(check: CheckFn) -> object:
    try:
        hash(check)
    except TypeError:
        return id(check)
    return check


def _explain(tool: ToolEntry, verdict: object) -> Unavailable:
    if isinstance(verdict, Unavailable):
        return verdict
    if missing := [name for name in tool.requires_env if not os.environ.get(name)]:
        lack = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"
        return Unavailable(lack, "set it in the environment")
    return Unavailable(f"its check {_name(tool.check_fn)} says that it cannot be used now")


def _name(check: CheckFn | None) -> str:
    return getattr(check, "__qualname__", None) or repr(check)
