"""Ask the hooks before a call, and a person where one of them wants that; tell them after it."""

import inspect
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..base.workers import run_async
from ..core.entry import ToolEntry
from ..core.outcome import error_of, parsed
from ..errors import Denied
from ..plugins.hook_manager import HookManager, Implementation
from ..plugins.hook_specs import Ask, Block, Change
from ..protocols import Action, ActionKind
from ..types import JsonDict, Outcome
from .arguments import plain_copy, prepare
from .steps import Call, Flow, Step, cause, drive


class HooksAroundCall:
    """Unknown means no: a policy hook that fails, and a question that nobody answers, both block the call."""

    def __init__(
        self, hooks: HookManager, ask: Callable[[Call, Action], Flow[None]], *, isolates: Callable[[], bool]
    ) -> None:
        self._hooks, self._ask, self._isolates = hooks, ask, isolates

    def before(self, call: Call, entry: ToolEntry) -> Flow[JsonDict]:
        """The arguments to run with. Raises Denied."""
        questions: list[Ask] = []
        arguments = call.arguments
        for implementation in self._hooks.implementations("pre_tool_call"):
            try:
                payload = _payload(call, arguments) | {"original_args": call.arguments}
                verdict = _verdict((yield from self._called(implementation, payload)))
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line, or a refusal
                self._failed(call, implementation, error)
                continue
            if verdict is not None:
                arguments = _settled(verdict, entry, arguments, questions)
        # Only now: what a person says yes to is what runs.
        for question in questions:
            details = {"why": question.message, "rule": question.rule_key, "arguments": plain_copy(arguments)}
            text = f"{call.name} {json.dumps(arguments, ensure_ascii=False, default=str)}"
            yield from self._ask(call, Action(ActionKind.TOOL, text, details=details))
        return arguments

    def _failed(self, call: Call, implementation: Implementation, error: Exception) -> None:
        self._hooks.failed("pre_tool_call", implementation, cause(error))
        if implementation.options.policy:
            raise Denied(
                f"{call.name} was blocked: a hook of {implementation.plugin} that has to let it pass failed; tell the user"
            ) from None

    def after(self, call: Call, outcome: Outcome) -> Flow[Outcome]:
        """The outcome, as the hooks leave it."""
        notified = self._hooks.implementations("post_tool_call")
        if notified:
            failure = error_of(outcome)
            payload = {
                **_payload(call, call.arguments),
                "result": outcome,
                "status": "blocked" if call.blocked else "error" if failure else "ok",
                "error_type": failure.get("error_type") if failure else None,
                "duration_ms": (time.perf_counter() - call.started) * 1000,
            }
        for implementation in notified:
            answer = yield from self._answer("post_tool_call", implementation, payload)
            if isinstance(answer, Block):
                outcome = _with_remark(outcome, answer.message)
        for implementation in self._hooks.implementations("transform_tool_result"):
            if not isinstance(outcome, str):
                break
            given = {**_payload(call, call.arguments), "result": outcome}
            changed = yield from self._answer("transform_tool_result", implementation, given)
            outcome = changed if isinstance(changed, str) else outcome
        return outcome

    def _answer(self, hook: str, implementation: Implementation, payload: JsonDict) -> Flow[Any]:
        """What a hook returns; None if it fails."""
        try:
            return (yield from self._called(implementation, payload))
        except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line
            self._hooks.failed(hook, implementation, cause(error))
            return None

    def wrapped(self, call: Call, handler: Callable[[], Any], path: Callable[[Call], Flow[Outcome]]) -> Any:
        """The handler, with the middleware of plugins around it. Arguments that they change are a call of their own, which goes
        the whole `path`, so that it is checked and judged as such."""

        def base(arguments: Any) -> Any:
            if arguments == call.arguments:
                value = handler()
                return run_async(value) if inspect.isawaitable(value) else value
            who = (call.task_id, call.user_task, call.session_id)
            caller = call.caller._replace(answered=(), asked=None, journal=None)
            more: JsonDict = {"cancel": call.cancel, "on_progress": call.on_progress, "agent": call.agent}
            rewritten = Call(call.name, arguments, *who, client=call.client, caller=caller, **more)
            rewritten.is_rewritten = True
            return drive(path(rewritten))

        about = {key: value for key, value in _payload(call, {}).items() if key != "args"}
        return self._hooks.chain("tool_execution", "args", about).wrapped(plain_copy(call.arguments), base)

    def _called(self, implementation: Implementation, payload: JsonDict) -> Flow[Any]:
        timeout = implementation.timeout(self._hooks.timeout)
        is_apart = not implementation.is_builtin and self._isolates()
        value = yield Step(implementation.bind(payload), timeout, in_caller=timeout is None, apart=is_apart)
        return value


def _settled(verdict: Block | Ask | Change, entry: ToolEntry, arguments: JsonDict, questions: list[Ask]) -> JsonDict:
    """The arguments to go on with after one hook. Raises Denied; a question is put off until all hooks have been heard."""
    if isinstance(verdict, Block):
        raise Denied(verdict.message)
    if isinstance(verdict, Ask):
        questions.append(verdict)
    if isinstance(verdict, Ask | Change) and verdict.args is not None:
        return prepare(entry.contract, verdict.args)
    return arguments


def _payload(call: Call, arguments: JsonDict) -> JsonDict:
    """What every hook may know."""
    return {
        "tool_name": call.name,
        "args": arguments,
        "task_id": call.task_id,
        "session_id": call.session_id,
        "tool_call_id": call.tool_call_id,
        "call_number": call.number,
    }


def _with_remark(outcome: Outcome, remark: str) -> Outcome:
    """What came of a call, and what a hook has to say about it. The result itself stays as it is."""
    if isinstance(outcome, dict):
        return {**outcome, "content": [*outcome["content"], {"type": "text", "text": remark}]}
    if isinstance(result := parsed(outcome), dict):
        return json.dumps({**result, "remark": remark}, ensure_ascii=False)
    return f"{outcome}\n\n{remark}"


def _verdict(value: Any) -> Block | Ask | Change | None:
    """A hook's answer, whichever way it is written. Raises for what is no answer."""
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
