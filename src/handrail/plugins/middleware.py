"""What plugins of Hermes Agent put around calls of tools and requests to the model: they may change and wrap them."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from ..base.workers import is_interrupt
from ..types import JsonDict

# The first two see a payload before it is used and may replace it; the others wrap its use.
KINDS = ("tool_request", "llm_request", "tool_execution", "llm_execution")
VERSIONS = {"telemetry_schema_version": "hermes.observer.v1", "middleware_schema_version": "hermes.middleware.v1"}
# What middleware says of its changes, by call or request, for the hooks that are called later.
Traces = dict[Any, list[JsonDict]]
_MAX_TRACED = 200


def traced(about: Mapping[str, Any]) -> Any:
    """What a hook or a middleware is called about: a call of a tool, or a request to the model."""
    return about.get("call_number") or (about.get("session_id"), about.get("api_call_count"))


def note_change(traces: Traces, about: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    said = {name: answer[name] for name in ("source", "reason", "name") if isinstance(answer.get(name), str)}
    traces.setdefault(traced(about), []).append(said or {"source": "plugin"})
    while len(traces) > _MAX_TRACED:
        del traces[next(iter(traces))]


class Middleware(NamedTuple):
    """One function of a plugin, called with the arguments that it names."""

    plugin: str
    function: Callable[..., Any]


class _NextCall:
    """What a wrapper calls to go on, once."""

    def __init__(self, go_on: Callable[[Any], Any]) -> None:
        self._go_on = go_on
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self._is_used = False

    def __call__(self, payload: Any) -> Any:
        if self._is_used:
            raise RuntimeError("next_call was called before; it would do the same again")
        self._is_used = True
        try:
            self.results.append(self._go_on(payload))
        except BaseException as error:
            self.error = error
            raise
        return self.results[0]


class Chain(NamedTuple):
    """The middleware of one kind around one payload, which is the argument `key`. `failed` is told of what goes wrong in it."""

    middleware: Sequence[Middleware]
    key: str
    about: Mapping[str, Any]
    failed: Callable[[Middleware, BaseException], None]
    traces: Traces

    def rewritten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload as each in turn replaces it. One that fails changes nothing."""
        original = payload
        self.traces.pop(traced(self.about), None)
        for each in self.middleware:
            try:
                answer = each.function(**self._payload(deepcopy(payload), deepcopy(original)))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                self.failed(each, error)
                continue
            if isinstance(answer, dict) and isinstance(answer.get(self.key), dict):
                payload = answer[self.key]
                note_change(self.traces, self.about, answer)
        return payload

    def wrapped(self, payload: Any, base: Callable[[Any], Any]) -> Any:
        """What `base` returns, or the wrappers around it; the first is the outermost. One that fails counts as not there, and
        what goes wrong inside it is raised."""
        return self._at(0, payload, payload, base)

    def _at(self, place: int, payload: Any, original: Any, base: Callable[[Any], Any]) -> Any:
        if place == len(self.middleware):
            return base(payload)
        next_call = _NextCall(lambda changed: self._at(place + 1, changed, original, base))
        try:
            return self.middleware[place].function(**self._payload(payload, original), next_call=next_call)
        except BaseException as error:
            if is_interrupt(error) or error is next_call.error:
                raise
            self.failed(self.middleware[place], error)
        if next_call.error is not None:
            raise next_call.error
        return next_call.results[0] if next_call.results else self._at(place + 1, payload, original, base)

    def _payload(self, payload: Any, original: Any) -> dict[str, Any]:
        return {**VERSIONS, **self.about, self.key: payload, f"original_{self.key}": original}
