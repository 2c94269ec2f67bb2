"""Ask the hooks before a call, and a person where one of them wants that; tell them after it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import Denied
from ..protocols import Action, ActionKind
from ..tools.outcome import Outcome, error_of
from ..types import CancelToken
from .arguments import prepare
from .decoding import plain_copy
from .steps import Flow, Step

if TYPE_CHECKING:
    from ..plugins.hooks import Ask, Block, Change
    from ..plugins.manager import HookManager, Implementation
    from ..protocols import Gate
    from ..tools.registry import ToolEntry
    from ..types import JsonDict, ToolContext
    from .dispatch import Call


class HooksAroundCall:
    """Unknown means no: a policy hook that fails, and a question that nobody answers, both block the call."""

    def __init__(
        self, hooks: HookManager, gate: Gate, context: Callable[[Call, CancelToken], ToolContext], *, limit: float
    ) -> None:
        """`limit`: seconds that the gate may take for an answer."""
        self._hooks = hooks
        self._gate, self._limit = gate, limit
        self._context = context

    def before(self, call: Call, entry: ToolEntry, arguments: JsonDict) -> Flow[JsonDict]:
        """The arguments to run with. Raises Denied."""
        from ..plugins.hooks import Ask, Block, Change

        questions: list[Ask] = []
        for implementation in self._hooks.implementations("pre_tool_call"):
            try:
                verdict = _verdict((yield self._step(implementation, _about(call, arguments))))
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line, or a refusal
                self._hooks.failed("pre_tool_call", implementation, error)
                if implementation.options.policy:
                    raise Denied(
                        f"{call.name} was blocked: the policy of plugin {implementation.plugin} failed"
                    ) from None
                continue
            if isinstance(verdict, Block):
                raise Denied(verdict.message)
            if isinstance(verdict, Ask):
                questions.append(verdict)
            if isinstance(verdict, Change):
                arguments = prepare(entry.contract, verdict.args)
        # Only now: what a person says yes to is what runs.
        for question in questions:
            yield from self._ask(call, arguments, question)
        return arguments

    def after(
        self, call: Call, arguments: JsonDict, outcome: Outcome, *, blocked: bool, started: float
    ) -> Flow[Outcome]:
        """The outcome, as the hooks leave it."""
        failure = error_of(outcome)
        told = {
            "result": outcome,
            "status": "blocked" if blocked else "error" if failure else "ok",
            "error_type": failure.get("error_type") if failure else None,
            "duration_ms": (time.perf_counter() - started) * 1000,
        }
        for implementation in self._hooks.implementations("post_tool_call"):
            try:
                yield self._step(implementation, {**_about(call, arguments), **told})
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line
                self._hooks.failed("post_tool_call", implementation, error)
        for implementation in self._hooks.implementations("transform_tool_result"):
            if not isinstance(outcome, str):
                break
            try:
                changed = yield self._step(implementation, {**_about(call, arguments), "result": outcome})
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line
                self._hooks.failed("transform_tool_result", implementation, error)
                continue
            if isinstance(changed, str):
                outcome = changed
        return outcome

    def _step(self, implementation: Implementation, payload: JsonDict) -> Step:
        timeout = implementation.timeout(self._hooks.timeout)
        return Step(implementation.bind(payload), timeout, in_caller=timeout is None)

    def _ask(self, call: Call, arguments: JsonDict, question: Ask) -> Flow[None]:
        details = {"why": question.message, "rule": question.rule_key, "arguments": plain_copy(arguments)}
        text = f"{call.name} {json.dumps(arguments, ensure_ascii=False, default=str)}"
        action = Action(ActionKind.TOOL, text, details=details)
        context = self._context(call, call.cancel or CancelToken())
        yield Step(lambda: self._gate.review([action], context), self._limit, call.cancel)


def _about(call: Call, arguments: JsonDict) -> JsonDict:
    """What every hook may know. The arguments are a copy: looking is not changing."""
    return {
        "tool_name": call.name,
        "args": plain_copy(arguments),
        "task_id": call.task_id,
        "session_id": call.session_id,
        "tool_call_id": call.tool_call_id,
    }


def _verdict(value: Any) -> Block | Ask | Change | None:
    """A hook's answer, whichever way it is written. Raises for what is no answer."""
    from ..plugins.hooks import Ask, Block, Change

    if value is None or isinstance(value, Block | Ask | Change):
        return value
    if isinstance(value, Mapping):
        action = value.get("action")
        if action in ("allow", "pass"):
            return None
        if action == "block":
            return Block(str(value.get("message") or "a plugin forbids it"))
        if action in ("approve", "ask"):
            return Ask(str(value.get("message") or "a plugin asks"), str(value.get("rule_key") or ""))
        if action == "modify" and isinstance(value.get("args"), dict):
            return Change(value["args"])
    raise TypeError(f"a pre_tool_call hook returned {value!r}; it returns None, Block, Ask or Change")
