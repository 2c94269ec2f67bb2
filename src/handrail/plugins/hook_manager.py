"""Call hooks: in a defined order, each one bounded in time, none able to break a call by failing."""

from __future__ import annotations

import inspect
import logging
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.suggest import did_you_mean
from ..base.workers import is_interrupt, run_bounded
from ..errors import RegistrationError

if TYPE_CHECKING:
    import pluggy

    from ..protocols import Answer, ApprovalRequest
    from .hook_specs import HookOptions
    from .middleware import Chain, Middleware

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_SECONDS = 5.0
AROUND_CALLS = ("pre_tool_call", "post_tool_call", "transform_tool_result")


class Implementation(NamedTuple):
    """One plugin's function for one hook."""

    plugin: str
    function: Callable[..., Any]
    wants: frozenset[str] | None
    options: HookOptions

    def bind(self, payload: Mapping[str, Any]) -> Callable[[], Any]:
        """The call, with the arguments that the function asked for."""
        wanted = payload if self.wants is None else {name: payload[name] for name in self.wants}
        return partial(self.function, **wanted)

    @property
    def is_builtin(self) -> bool:
        """Whether it is code of this package."""
        return str(getattr(self.function, "__module__", "")).startswith("handrail.")

    def timeout(self, default: float) -> float | None:
        if self.options.inline:
            return None
        return default if self.options.timeout is None else self.options.timeout


class HookManager:
    """Knows the plugins' hook functions. With no plugin it costs an attribute look-up; pluggy is not even imported."""

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        self.timeout = timeout
        self.active = False
        self.around_calls = False  # whether some of them are called around tool calls
        self.at_once = False  # whether all of those run inline
        self.failures: dict[str, int] = {}
        self._pluggy: pluggy.PluginManager | None = None
        self._implementations: dict[str, tuple[Implementation, ...]] = {}
        self._changing = threading.RLock()  # threads may register at the same time
        self._plugins: dict[str, str] = {}  # by pluggy's name
        self.middleware: dict[str, tuple[Middleware, ...]] = {}  # by kind, in the order of registration

    def register(self, plugin: object, name: str | None = None) -> str:
        """Add a plugin: an object or module whose hook functions are marked with `@hookimpl`. Returns its name."""
        with self._changing:
            manager = self._manager()
            name = name or _free_name(manager, type(plugin).__qualname__)
            try:
                registered = manager.register(plugin, name)
                manager.check_pending()  # a hook that does not exist
            except Exception as error:  # noqa: BLE001  pluggy raises its own validation errors and ValueError
                if manager.is_registered(plugin) and manager.get_name(plugin) == name:
                    manager.unregister(plugin)
                raise RegistrationError(f"plugin {name!r}: {error}") from None
            self._refresh()
            return registered or ""

    def register_hook(self, hook: str, function: Callable[..., Any], *, plugin: str = "", **options: Any) -> str:
        """Add a single function, of a plugin if it has one. The options are those of `@hookimpl`."""
        from .hook_specs import HOOK_NAMES, HookSpecs, hookimpl

        if hook not in HOOK_NAMES:
            raise RegistrationError(f"unknown hook {hook!r}; {did_you_mean(hook, HOOK_NAMES)}")
        offered = inspect.signature(getattr(HookSpecs, hook)).parameters
        unknown = (_wanted(function) or frozenset()) - offered.keys()
        if unknown:
            raise RegistrationError(
                f"hook {hook!r} has no argument {', '.join(sorted(unknown))}; it offers {list(offered)[1:]}"
            )
        marked = hookimpl(**options)(_wrapper(function))
        label = plugin or getattr(function, "__qualname__", type(function).__name__)
        with self._changing:
            name = _free_name(self._manager(), label)
            if plugin:
                self._plugins[name] = plugin
            return self.register(types.SimpleNamespace(**{hook: marked}), name)

    def unregister_plugin(self, plugin: str) -> None:
        """Remove every function that was registered for a plugin."""
        with self._changing:
            for name in [name for name, of in self._plugins.items() if of == plugin]:
                self.unregister(name)
            for kind, found in self.middleware.items():
                self.middleware[kind] = tuple(each for each in found if each.plugin != plugin)

    def unregister(self, name: str) -> bool:
        with self._changing:
            if self._pluggy is None or self._pluggy.get_plugin(name) is None:
                return False
            self._pluggy.unregister(name=name)
            self._plugins.pop(name, None)
            self._refresh()
            return True

    def chain(self, kind: str, key: str, about: Mapping[str, Any]) -> Chain:
        """The middleware of one kind, around a payload of that name."""
        from .middleware import Chain

        return Chain(self.middleware.get(kind, ()), key, about, partial(self.failed, f"middleware {kind}"))

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        return self._implementations.get(hook, ())

    def invoke(self, hook: str, **payload: Any) -> list[Any]:
        """What the implementations returned, without the Nones. Failures are logged and counted, never raised."""
        results = []
        for implementation in self.implementations(hook):
            result = self._result(hook, implementation, payload)
            if result is not None:
                results.append(result)
        return results

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
            return call() if timeout is None else run_bounded(call, timeout=timeout)
        except BaseException as error:
            if is_interrupt(error):
                raise
            self.failed(hook, implementation, error)
            return None

    def failed(self, hook: str, implementation: Implementation | Middleware, error: BaseException) -> None:
        self.failures[implementation.plugin] = self.failures.get(implementation.plugin, 0) + 1
        log.warning("hook %s of %s failed: %s: %s", hook, implementation.plugin, type(error).__name__, error)

    def _manager(self) -> pluggy.PluginManager:
        if self._pluggy is None:
            import pluggy

            from .hook_specs import PROJECT, HookSpecs

            self._pluggy = pluggy.PluginManager(PROJECT)
            self._pluggy.add_hookspecs(HookSpecs)
        return self._pluggy

    def _refresh(self) -> None:
        manager = self._manager()
        self._implementations = {
            caller.name: tuple(_in_order(caller.get_hookimpls(), self._plugins))
            for caller in vars(manager.hook).values()
            if caller.spec
        }
        self.active = any(self._implementations.values())
        around = [each for hook in AROUND_CALLS for each in self._implementations.get(hook, ())]
        self.around_calls = bool(around)
        self.at_once = all(each.options.inline for each in around)


def _in_order(found: list[pluggy.HookImpl], plugins: Mapping[str, str]) -> Iterator[Implementation]:
    from .hook_specs import HookOptions

    # pluggy calls the last registered first; changes that chain read better in the order of registration.
    for impl in sorted(found, key=lambda impl: impl.trylast - impl.tryfirst):
        options = getattr(impl.function, "handrail_hook", HookOptions())
        plugin = plugins.get(impl.plugin_name, impl.plugin_name)
        yield Implementation(plugin, impl.function, _wanted(impl.function), options)


def _wanted(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names of the arguments that a function takes; None when it takes whatever comes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def _wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of our own to mark, so that the same callable can serve several hooks with other options."""

    def call(**payload: Any) -> Any:
        return function(**payload)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    call.__module__ = getattr(function, "__module__", "") or ""
    return call


def _free_name(manager: pluggy.PluginManager, wanted: str) -> str:
    number, name = 1, wanted
    while manager.has_plugin(name):
        number += 1
        name = f"{wanted}-{number}"
    return name


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
    return {
        "tool_name": request.tool,
        "args": dict(request.arguments),
        "reason": request.reason,
        "rule_key": request.rule_key,
        "task_id": request.task_id,
        "session_id": request.session_id,
    }
