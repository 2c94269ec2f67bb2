"""The environment of each task: opened at its first use, and kept until it is closed or idle for too long."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..errors import HandrailError, InvalidArguments, ToolFailed
from ..settings.schema import Config
from .backend_table import DEFAULT_TASK, Backends, EnvironmentSettings, backends, check_overrides, is_host, resolve

if TYPE_CHECKING:
    from ..egress.networks import Networks
    from ..protocols import Files
    from ..types import ToolContext
    from .base import Environment
    from .live_environment import LiveEnvironment
    from .output import Masker
    from .profiles import Profile

__all__ = ["DEFAULT_TASK", "EnvironmentSettings", "TaskEnvironments"]

log = logging.getLogger(__name__)

_CLOSING_AT_ONCE = 16
_MASKER_SECONDS = 5.0


class _Slot:
    """One task's entry. Its lock is held while its environment is opened, so that other tasks do not wait."""

    __slots__ = ("environment", "has_run", "idled", "is_over", "lock", "settings", "used_at", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.environment: Environment | None = None
        self.settings: EnvironmentSettings | None = None
        self.users = 0
        self.used_at = 0.0
        self.has_run = False
        self.idled = False
        self.is_over = False


class Companion(Protocol):
    """What a tool keeps per task, closed with the task."""

    def close_task(self, task_id: str) -> None: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=Companion)


class ChangeOutput(Protocol):
    """Changes the output of commands before a model sees it. `is_wanted`: whether it would change anything."""

    def is_wanted(self) -> bool: ...

    def __call__(
        self, command: str, output: str, exit_code: int | None, task_id: str | None, session_id: str | None
    ) -> str: ...


class TaskEnvironments:
    """Environments by task. Thread-safe; after `close_all` new ones may be opened.

    A task id of None is the task `default`. Nothing is started here: an environment starts with its first command.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        backends: Backends = backends,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config or Config()
        self.backends = backends
        self.change_output: ChangeOutput | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}
        self._overrides: dict[str, dict[str, Any]] = {}
        self._timer: threading.Timer | None = None
        self._has_opened = False
        self._companions: dict[type, Companion] = {}
        self._networks: Networks | None = None
        self._masker: Masker | None = None
        self._masked_at = 0.0

    def of(self, task_id: str | None) -> Environment:
        """The task's environment. To run something in it, hold it with `use`, so that it does not count as idle."""
        slot = self._slot(task_id)
        if (environment := slot.environment) is None:
            environment = self._open(slot, task_id or DEFAULT_TASK)
        slot.used_at = self._clock()
        return environment

    @contextmanager
    def use(self, task_id: str | None) -> Iterator[Environment]:
        """The task's environment, which does not count as idle meanwhile."""
        slot = self._slot(task_id)
        with self._lock:
            slot.users += 1
        try:
            slot.has_run = True
            if self._timer is None:
                self._watch()
            yield self.of(task_id)
        finally:
            with self._lock:
                slot.users -= 1
                slot.used_at = self._clock()

    def peek(self, task_id: str | None) -> Environment | None:
        """The task's environment, if it has one already."""
        slot = self._slots.get(task_id or DEFAULT_TASK)
        return slot.environment if slot is not None else None

    def cwd(self, task_id: str | None) -> str:
        """Where the task's shell is, or will start; empty if that is not known before the start."""
        slot = self._slots.get(task_id or DEFAULT_TASK)
        if slot is not None and slot.environment is not None and slot.has_run:
            return slot.environment.cwd
        return self.settings(task_id).cwd or ""

    def files(self, task_id: str | None) -> Files:
        """The task's files; nothing is opened before they are used."""
        return TaskFiles(self, task_id)

    def files_before(self, task_id: str | None) -> Files | None:
        """The files of a task without an environment, if they can be read without one."""
        settings = self.settings(task_id)
        files = getattr(self.backends.get(settings.backend), "files_before_start", None)
        if files is None or settings.cwd is None:
            return None
        return cast("Files | None", files(settings.options, settings.cwd))

    def readable_files(self, task_id: str | None) -> Files | str | None:
        """Where the judge may look at the task's files: "host" for this machine, or an environment that has started already."""
        if self.has_host_paths(task_id):
            return "host"
        environment = self.peek(task_id)
        return environment.files if environment is not None and getattr(environment, "is_connected", False) else None

    def has_host_paths(self, task_id: str | None) -> bool:
        """Whether the task's paths mean the same as on this machine."""
        return is_host(self.backends.get(self.settings(task_id).backend))

    @property
    def masker(self) -> Masker:
        """Hides the secrets of this runtime, and those that commands were given. Refreshed every few seconds."""
        now = self._clock()
        if self._masker is None or now - self._masked_at > _MASKER_SECONDS:
            from .output import Masker, secret_values

            terminal = self.config.terminal
            configured = [one.get("env") for one in (*terminal.backends.values(), *self._overrides.values())]
            given = [os.environ, terminal.env, *(env for env in configured if isinstance(env, Mapping))]
            hidden = set().union(*map(secret_values, given))
            if self._networks is not None:
                hidden.update(self._networks.known_values())
            self._masker, self._masked_at = Masker(hidden), now
        return self._masker

    def idled(self, task_id: str | None) -> bool:
        """Whether the task's previous environment was closed because it was idle. True only once."""
        slot = self._slot(task_id)
        idled, slot.idled = slot.idled, False
        return idled

    def companion(self, kind: type[C], make: Callable[[], C]) -> C:
        """What a tool keeps per task: made at its first use, notified when a task is closed."""
        with self._lock:
            kept = self._companions.get(kind)
            if kept is None:
                kept = self._companions[kind] = make()
            return cast("C", kept)

    def settings(self, task_id: str | None) -> EnvironmentSettings:
        """How the task's environment was made, or would be made now."""
        slot = self._slots.get(task_id or DEFAULT_TASK)
        if slot is not None and slot.settings is not None:
            return slot.settings
        name = task_id or DEFAULT_TASK
        return resolve(name, self.config, self._overrides.get(name, {}), self.backends)

    def open(self, settings: EnvironmentSettings) -> Environment:
        """Open a separate environment, which the caller closes."""
        return settings.open(self.backends)

    def override(self, task_id: str, overrides: Mapping[str, Any]) -> None:
        """Set how the task's environment is made: `backend`, `cwd`, `env`, `allowed_secrets`, `profile`, and settings of it.

        This replaces all overrides of an earlier call. An open environment that was made with other settings is closed.
        """
        checked = check_overrides(overrides)
        wanted = resolve(task_id, self.config, checked, self.backends)
        self._overrides[task_id], self._masker = checked, None
        slot = self._slots.get(task_id)
        if slot is not None and slot.settings is not None and slot.settings != wanted:
            self._close_environment(task_id)

    def set_profile(self, task_id: str, profile: Profile) -> None:
        """The profile of the task's commands from now on; its shell is closed. Raises InvalidArguments if they run elsewhere."""
        if not self.has_host_paths(task_id):
            raise InvalidArguments("its commands do not run on this machine, and have no profile")
        self.override(task_id, {**self._overrides.get(task_id, {}), "profile": profile.value})

    def clear_overrides(self, task_id: str) -> None:
        """Make the task's next environment by the configuration alone. An open one stays."""
        self._overrides.pop(task_id, None)

    def close(self, task_id: str | None) -> None:
        """Close the task's environment, if it has one, and what tools keep for it. A running command is ended too."""
        self._close_environment(task_id or DEFAULT_TASK)
        for companion in list(self._companions.values()):
            companion.close_task(task_id or DEFAULT_TASK)

    def _close_environment(self, task_id: str) -> None:
        with self._lock:
            slot = self._slots.pop(task_id, None)
        if slot is not None:
            _close(slot)

    def close_all(self) -> None:
        with self._lock:
            slots, self._slots = list(self._slots.values()), {}
            timer, self._timer = self._timer, None
            companions, self._companions, self._networks = list(self._companions.values()), {}, None
        if timer is not None:
            timer.cancel()
            timer.join()
        for companion in companions:
            companion.close()
        if slots:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(len(slots), _CLOSING_AT_ONCE)) as closing:
                list(closing.map(_close, slots))

    def __enter__(self) -> TaskEnvironments:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_all()

    def close_idle(self) -> None:
        """Close environments that have not been used for long and in which nothing runs. A timer calls this."""
        limit, now = self.config.terminal.idle_seconds, self._clock()
        with self._lock:
            open_now = [(task, slot) for task, slot in self._slots.items() if slot.environment is not None]
            due = [(task, slot) for task, slot in open_now if not slot.users and now - slot.used_at >= limit]
        for task, slot in due:
            if _runs_something(slot):
                slot.used_at = now
                continue
            with self._lock:
                if slot.users or self._slots.get(task) is not slot:
                    continue
                fresh = self._slots[task] = _Slot()
                fresh.idled = slot.has_run
            _close(slot)

    def _slot(self, task_id: str | None) -> _Slot:
        name = task_id or DEFAULT_TASK
        if (slot := self._slots.get(name)) is None:
            with self._lock:
                slot = self._slots.setdefault(name, _Slot())
        return slot

    def _open(self, slot: _Slot, task_id: str) -> Environment:
        with slot.lock:
            if slot.is_over:  # it was closed meanwhile
                return self.of(task_id)
            if slot.environment is None:
                settings = resolve(task_id, self.config, self._overrides.get(task_id, {}), self.backends)
                backend, contain = self.backends.get(settings.backend), self.config.network.contain
                is_here, is_far = is_host(backend), getattr(backend, "can_tunnel", False)
                asks = contain == "on" or bool((settings.effects or {}).get("holds_network"))
                has_network = asks or settings.options.get("network") != "none"
                has_proxy = is_here and (self.config.secrets or contain == "on")
                has_proxy = has_proxy or (is_far and (asks or self.config.secrets) and has_network)
                network = self.networks().variables(task_id, asks=asks, is_far=is_far) if has_proxy else {}
                slot.environment = settings._replace(env={**settings.env, **network}).open(self.backends)
                slot.settings = settings
                if network and is_far:
                    from .transport.tunnel import Tunnel  # few tasks have one

                    end = self.networks().far_end(task_id)
                    cast("LiveEnvironment", slot.environment).way_out = lambda transport: Tunnel(transport, *end)
                if hasattr(slot.environment, "pool") and self.config.terminal.pool:
                    if self._has_opened:  # most programs have one task
                        from .shell_pool import ShellPool

                        slot.environment.pool = self.companion(ShellPool, lambda: ShellPool(self.config.terminal.pool))
                    self._has_opened = True
                if (network or asks) and hasattr(slot.environment, "held"):
                    from .held_calls import decide_connections  # only where commands run

                    decide_connections(slot.environment.held, self.networks, task_id, asks=asks)
                if not is_here:  # there even reading a file starts something
                    self._watch()
            return slot.environment

    def networks(self) -> Networks:
        """The proxies, keys and name servers of tasks, made when one is first needed."""
        if self._networks is None:
            from ..egress.networks import Networks  # imports asyncio and cryptography

            self._networks = self.companion(Networks, lambda: Networks(self.config))
        return self._networks

    @property
    def has_networks(self) -> bool:
        return self._networks is not None

    def begin_call(self, context: ToolContext) -> None:
        """A call is about to run commands: what these want to connect to is asked of its approver."""
        if self._networks is not None:
            self._networks.begin(context, context.task_id or DEFAULT_TASK)

    def network_notes(self, task_id: str | None) -> list[str]:
        """Which connections of the task's call were refused, for the model."""
        return self._networks.notes(task_id or DEFAULT_TASK) if self._networks is not None else []

    def _watch(self) -> None:
        """Keep a timer while there is something that it could close."""
        limit = self.config.terminal.idle_seconds
        with self._lock:
            if not limit or self._timer is not None:
                return
            self._timer = threading.Timer(max(1.0, limit / 4), self._on_timer)
            self._timer.name, self._timer.daemon = "handrail-idle", True
            self._timer.start()

    def _on_timer(self) -> None:
        self.close_idle()
        with self._lock:
            self._timer = None
            goes_on = any(slot.environment is not None for slot in self._slots.values())
        if goes_on:
            self._watch()


class TaskFiles:
    """`protocols.Files` of the environment that the task has when they are used."""

    __slots__ = ("_before", "_environments", "_task_id")

    def __init__(self, environments: TaskEnvironments, task_id: str | None) -> None:
        self._environments, self._task_id = environments, task_id
        self._before: Files | None = None

    def __getattr__(self, name: str) -> Any:
        if self._environments.peek(self._task_id) is None:
            if self._before is None:
                self._before = self._environments.files_before(self._task_id)
            if self._before is not None:
                return getattr(self._before, name)
        return getattr(self._environments.of(self._task_id).files, name)


def _runs_something(slot: _Slot) -> bool:
    """Whether closing it would end something that was left running."""
    environment = slot.environment
    if environment is None or not slot.has_run:
        return False
    from .base import ProcessState

    try:
        if environment.left_running():
            return True
        mine = [process for process in environment.processes() if not process.survives]
        return any(process.poll().state is ProcessState.RUNNING for process in mine)
    except (HandrailError, OSError):
        return False  # it is gone, and what ran in it too


def _close(slot: _Slot) -> None:
    with slot.lock:
        environment, slot.environment, slot.is_over = slot.environment, None, True
    if environment is None:
        return
    try:
        environment.close()
    except Exception as error:  # noqa: BLE001  one that cannot be closed must not keep the others open
        log.warning("an environment could not be closed: %s: %s", type(error).__name__, error)


def environments_of(context: ToolContext | None) -> TaskEnvironments:
    if context is None or context.environments is None:
        raise ToolFailed(
            "this runtime has no environments to run commands in; give it some: environments=TaskEnvironments()"
        )
    return context.environments  # type: ignore[return-value]  # every call comes here, and a cast is one more
