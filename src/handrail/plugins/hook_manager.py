"""Call hooks: in a defined order, each one bounded in time, none able to break a call by failing."""

from __future__ import annotations

import inspect
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent import futures
from copy import deepcopy
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.suggest import did_you_mean
from ..base.workers import Lane, is_interrupt, pool, run_async, run_bounded
from ..errors import RegistrationError

if TYPE_CHECKING:
    from ..protocols import Answer, ApprovalRequest
    from .hook_specs import HookOptions
    from .middleware import Chain, Middleware, Traces

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_SECONDS = 5.0
AROUND_CALLS = ("pre_tool_call", "post_tool_call", "transform_tool_result")
# Called where nothing may wait for them, such as while an answer streams.
OBSERVERS = frozenset(
    "on_stream_start on_stream_delta on_stream_end on_interim_message agent_loop_stopped pre_command "
    "pre_auxiliary_call post_auxiliary_call".split()
)
_MAX_WAITING = 1000


class Implementation(NamedTuple):
    """One plugin's function for one hook."""

    plugin: str
    function: Callable[..., Any]
    wants: frozenset[str] | None  # the names of its arguments; None when it takes whatever comes
    options: HookOptions

    def bind(self, payload: Mapping[str, Any]) -> Callable[[], Any]:
        """The call, with the arguments that the function asked for. It can change its copies, and nothing else by that."""
        given = {name: payload[name] for name in (payload if self.wants is None else self.wants)}
        copied = {name: deepcopy(value) for name, value in given.items() if isinstance(value, dict | list)}
        return partial(self.function, **given | copied)

    @property
    def is_builtin(self) -> bool:
        """Whether it is code of this package."""
        return str(getattr(self.function, "__module__", "")).startswith("handrail.")

    def timeout(self, default: float) -> float | None:
        if self.options.inline:
            return None
        return default if self.options.timeout is None else self.options.timeout


class _Observer:
    """The events that one plugin observes: in order, on one thread at a time."""

    def __init__(self) -> None:
        self._lane, self._waiting, self._lock = Lane(pool, 1), deque[futures.Future[Any]](), threading.Lock()

    def put(self, call: Callable[[], Any]) -> None:
        with self._lock:
            while self._waiting and (self._waiting[0].done() or len(self._waiting) >= _MAX_WAITING):
                self._waiting.popleft().cancel()
            self._waiting.append(self._lane.submit(call))

    def waiting(self) -> list[futures.Future[Any]]:
        with self._lock:
            return [*self._waiting]


class HookManager:
    """Knows the plugins' hook functions. With no plugin it costs an attribute look-up."""

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        self.timeout = timeout
        self.active = False
        self.around_calls = False  # whether some of them are called around tool calls
        self.at_once = False  # whether all of those run inline
        self.failures: dict[str, int] = {}
        # By the name that they were registered under, in the order of registration: the plugin's object, and its functions.
        self._registered: dict[str, tuple[object, list[tuple[str, Implementation]]]] = {}
        self._implementations: dict[str, tuple[Implementation, ...]] = {}
        self._changing = threading.RLock()  # threads may register at the same time
        self.middleware: dict[str, tuple[Middleware, ...]] = {}  # by kind, in the order of registration
        self.traces: Traces = {}
        self._observers: defaultdict[str, _Observer] = defaultdict(_Observer)  # by plugin

    def register(self, plugin: object, name: str | None = None) -> str:
        """Add a plugin: an object or module whose hook functions are marked with `@hookimpl`. Returns its name."""
        from .hook_specs import marked_hooks

        with self._changing:
            name = name or self._free_name(type(plugin).__qualname__)
            if name in self._registered or any(each is plugin for each, _ in self._registered.values()):
                raise RegistrationError(f"plugin {name!r}: it is registered already")
            return self._add(name, plugin, [_checked(name, *each) for each in marked_hooks(plugin)])

    def register_hook(self, hook: str, function: Callable[..., Any], *, plugin: str = "", **options: Any) -> str:
        """Add a single function, of a plugin if it has one. The options are those of `@hookimpl`."""
        from .hook_specs import HookOptions

        label = plugin or getattr(function, "__qualname__", type(function).__name__)
        with self._changing:
            name = self._free_name(label)
            return self._add(name, object(), [_checked(plugin or name, hook, function, HookOptions(**options))])

    def _add(self, name: str, plugin: object, functions: list[tuple[str, Implementation]]) -> str:
        self._registered[name] = (plugin, functions)
        self._refresh()
        return name

    def unregister_plugin(self, plugin: str) -> None:
        """Remove every function that was registered for a plugin."""
        with self._changing:
            of_plugin = [(name, found) for name, (_, found) in self._registered.items()]
            for name in [name for name, found in of_plugin if any(each.plugin == plugin for _, each in found)]:
                self.unregister(name)
            for kind, found in self.middleware.items():
                self.middleware[kind] = tuple(each for each in found if each.plugin != plugin)

    def unregister(self, name: str) -> bool:
        with self._changing:
            found = self._registered.pop(name, None)
            self._refresh()
            return found is not None

    def chain(self, kind: str, key: str, about: Mapping[str, Any]) -> Chain:
        """The middleware of one kind, around a payload of that name."""
        from .middleware import Chain

        return Chain(self.middleware.get(kind, ()), key, about, partial(self.failed, f"middleware {kind}"), self.traces)

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        return self._implementations.get(hook, ())

    def invoke(self, hook: str, **payload: Any) -> list[Any]:
        """What the implementations returned, without the Nones. Failures are logged and counted, never raised. `OBSERVERS` are
        called later, and return nothing."""
        if hook in OBSERVERS:
            for each in self.implementations(hook):
                self._observers[each.plugin].put(partial(self._result, hook, each, payload))
            return []
        results = [self._result(hook, each, payload) for each in self.implementations(hook)]
        return [result for result in results if result is not None]

    def announce(self, surface: str, command: str, line: str, session: str | None, platform: str = "cli") -> None:
        """A user typed a slash command, which is about to run."""
        alias, _, rest = line.lstrip("/").partition(" ")
        about = {"surface": surface, "command": command, "platform": platform, "session_id": session or ""}
        self.invoke("pre_command", **about, alias_used=alias, args_raw=rest.strip())

    def wait_for_observers(self) -> None:
        """Until they have been told all so far; a slow one for at most the timeout of a hook."""
        futures.wait([each for one in [*self._observers.values()] for each in one.waiting()], self.timeout)

    def transform(self, hook: str, changes: str, **payload: Any) -> str:
        """Let the implementations change one text of the payload, each the previous one's result."""
        for implementation in self.implementations(hook):
            result = self._result(hook, implementation, payload)
            if isinstance(result, str):
                payload[changes] = result
        return str(payload[changes])

    def _result(self, hook: str, implementation: Implementation, payload: Mapping[str, Any]) -> Any:
        """None also for an implementation that fails."""
        try:
            timeout = implementation.timeout(self.timeout)
            call = implementation.bind(payload)
            made = call() if timeout is None else run_bounded(call, timeout=timeout)
            if inspect.isawaitable(made):
                made = run_bounded(partial(run_async, made), timeout=timeout or self.timeout)
            return made
        except BaseException as error:
            if is_interrupt(error):
                raise
            self.failed(hook, implementation, error)
            return None

    def failed(self, hook: str, implementation: Implementation | Middleware, error: BaseException) -> None:
        self.failures[implementation.plugin] = self.failures.get(implementation.plugin, 0) + 1
        log.warning("hook %s of %s failed: %s: %s", hook, implementation.plugin, type(error).__name__, error)

    def _refresh(self) -> None:
        found: dict[str, list[Implementation]] = {}
        for _, functions in self._registered.values():
            for hook, each in functions:
                found.setdefault(hook, []).append(each)
        for of_hook in found.values():
            of_hook.sort(key=lambda one: one.options.trylast - one.options.tryfirst)
        self._implementations = {hook: tuple(of_hook) for hook, of_hook in found.items()}
        self.active = bool(found)
        around = [each for hook in AROUND_CALLS for each in found.get(hook, ())]
        self.around_calls = bool(around)
        self.at_once = all(each.options.inline for each in around)

    def _free_name(self, wanted: str) -> str:
        names = (f"{wanted}-{number}" if number > 1 else wanted for number in count(1))
        return next(name for name in names if name not in self._registered)


def _checked(plugin: str, hook: str, function: Callable[..., Any], options: HookOptions) -> tuple[str, Implementation]:
    """Raises RegistrationError for an unknown hook, and for an argument that it does not offer."""
    from .hook_specs import HOOK_NAMES, HookSpecs

    if hook not in HOOK_NAMES:
        raise RegistrationError(f"plugin {plugin!r}: unknown hook {hook!r}; {did_you_mean(hook, HOOK_NAMES)}")
    offered = inspect.signature(getattr(HookSpecs, hook)).parameters
    parameters = inspect.signature(function).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if not takes_all and (unknown := ", ".join(sorted(parameters.keys() - offered.keys()))):
        offers = f"it offers {list(offered)[1:]}"
        raise RegistrationError(f"plugin {plugin!r}: hook {hook!r} has no argument {unknown}; {offers}")
    return hook, Implementation(plugin, function, None if takes_all else frozenset(parameters), options)


hooks = HookManager()


def invoke_hook(hook: str, **payload: Any) -> list[Any]:
    """Call a hook of the default manager by name."""
    return hooks.invoke(hook, **payload)


class ApprovalHooks:
    """Notifies the hooks of every approval request and answer."""

    def __init__(self, hooks: HookManager) -> None:
        self._hooks = hooks

    def is_wanted(self) -> bool:
        return any(map(self._hooks.implementations, ("pre_approval_request", "post_approval_response")))

    def about_to_ask(self, request: ApprovalRequest) -> None:
        self._hooks.invoke("pre_approval_request", **_about(request))

    def answered(self, request: ApprovalRequest, answer: Answer, seconds: float) -> None:
        outcome = {"decision": answer.decision.value, "answered_by": answer.by, "duration_ms": seconds * 1000}
        self._hooks.invoke("post_approval_response", **_about(request), **outcome)


class OutputHooks:
    """Lets the hooks change what commands have printed."""

    def __init__(self, hooks: HookManager) -> None:
        self._hooks = hooks

    def is_wanted(self) -> bool:
        return bool(self._hooks.implementations("transform_terminal_output"))

    def __call__(
        self, command: str, output: str, exit_code: int | None, task_id: str | None, session_id: str | None
    ) -> str:
        about = {"command": command, "exit_code": exit_code, "task_id": task_id, "session_id": session_id}
        return self._hooks.transform("transform_terminal_output", "output", output=output, **about)


def _about(request: ApprovalRequest) -> dict[str, Any]:
    about = {name: getattr(request, name) for name in ("reason", "rule_key", "task_id", "session_id")}
    return {"tool_name": request.tool, "args": dict(request.arguments), **about}
