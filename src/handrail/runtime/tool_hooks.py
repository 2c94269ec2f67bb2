"""Ask the hooks before a call, and a person where one of them wants that; tell them after it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base.async_bridge import run_async
from ..core.outcome import Outcome, error_of, failure_outcome
from ..errors import Denied
from ..plugins.hooks import Ask, Block, Change
from ..protocols import Action, ActionKind
from ..types import CancelToken
from .arguments import prepare
from .decoding import plain_copy
from .steps import Flow, Foreign, Step, drive

if TYPE_CHECKING:
    from ..core.registry import ToolEntry
    from ..plugins.hook_manager import Implementation
    from ..types import JsonDict
    from .dispatch import Call, Plan, Runtime


class HooksAroundCall:
    """Unknown means no: a policy hook that fails, and a question that nobody answers, both block the call."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._hooks = runtime, runtime.hooks

    def before(self, call: Call, entry: ToolEntry, arguments: JsonDict) -> Flow[JsonDict]:
        """The arguments to run with. Raises Denied."""
        questions: list[Ask] = []
        for implementation in self._hooks.implementations("pre_tool_call"):
            try:
                verdict = _verdict((yield self._step(implementation, _about(call, arguments))))
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line, or a refusal
                self._failed(call, implementation, error)
                continue
            arguments = _settled(verdict, entry, arguments, questions)
        # Only now: what a person says yes to is what runs.
        for question in questions:
            yield from self._ask(call, arguments, question)
        return arguments

    def run_at_once(self, plan: Plan, call: Call) -> Outcome:
        """A whole call of a tool that only has to be called, with hooks that are all trusted to return at once."""
        started, arguments = time.perf_counter(), {}
        entry, blocked = plan.entry, True
        try:
            arguments = prepare(entry.contract, call.arguments, max_chars=self._runtime.config.calls.max_argument_chars)
            questions: list[Ask] = []
            for implementation in self._hooks.implementations("pre_tool_call"):
                try:
                    verdict = _verdict(implementation.call(partial(_known, call, arguments)))
                except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line, or a refusal
                    self._failed(call, implementation, error)
                    continue
                if verdict is not None:
                    arguments = _settled(verdict, entry, arguments, questions)
            for question in questions:
                drive(self._ask(call, arguments, question))
            blocked = False
            value = entry.handler(arguments, task_id=call.task_id, session_id=call.session_id, user_task=call.user_task)
            outcome = self._runtime.finished(plan, run_async(value) if hasattr(value, "__await__") else value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:  # noqa: BLE001  a handler's bug becomes the model's result
            cause = _cause(raised)
            outcome = failure_outcome(cause)
            blocked = blocked and isinstance(cause, Denied)
        if not any(map(self._hooks.implementations, ("post_tool_call", "transform_tool_result"))):
            return outcome
        told = drive(self.after(call, arguments, outcome, blocked=blocked, started=started))
        return self._runtime.finished(plan, told)

    def _failed(self, call: Call, implementation: Implementation, error: Exception) -> None:
        self._hooks.failed("pre_tool_call", implementation, _cause(error))
        if implementation.options.policy:
            raise Denied(
                f"{call.name} was blocked: a hook of {implementation.plugin} that has to let it pass failed; tell the user"
            ) from None

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
                said = yield self._step(implementation, {**_about(call, arguments), **told})
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line
                self._hooks.failed("post_tool_call", implementation, _cause(error))
                continue
            if isinstance(said, Block):
                outcome = _with_remark(outcome, said.message)
        for implementation in self._hooks.implementations("transform_tool_result"):
            if not isinstance(outcome, str):
                break
            try:
                changed = yield self._step(implementation, {**_about(call, arguments), "result": outcome})
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line
                self._hooks.failed("transform_tool_result", implementation, _cause(error))
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
        context = self._runtime.context(call, call.cancel or CancelToken())
        gate = self._runtime.gate_for_questions()
        yield Step(lambda: gate.review([action], context), self._runtime.gate_limit, call.cancel)


def _settled(
    verdict: Block | Ask | Change | None, entry: ToolEntry, arguments: JsonDict, questions: list[Ask]
) -> JsonDict:
    """The arguments to go on with after one hook. Raises Denied; a question is put off until all hooks have been heard."""
    if isinstance(verdict, Block):
        raise Denied(verdict.message)
    if isinstance(verdict, Ask):
        questions.append(verdict)
    if isinstance(verdict, Ask | Change) and verdict.args is not None:
        return prepare(entry.contract, verdict.args)
    return arguments


def _known(call: Call, arguments: JsonDict, name: str) -> Any:
    """One of the things that every hook may know."""
    return plain_copy(arguments) if name == "args" else call.name if name == "tool_name" else getattr(call, name)


def _about(call: Call, arguments: JsonDict) -> JsonDict:
    """What every hook may know. The arguments are a copy: looking is not changing."""
    return {
        "tool_name": call.name,
        "args": plain_copy(arguments),
        "task_id": call.task_id,
        "session_id": call.session_id,
        "tool_call_id": call.tool_call_id,
    }


def _with_remark(outcome: Outcome, remark: str) -> Outcome:
    """What came of a call, and what a hook has to say about it. The result itself stays as it is."""
    if isinstance(outcome, dict):
        return {**outcome, "content": [*outcome["content"], {"type": "text", "text": remark}]}
    try:
        result = json.loads(outcome)
    except (ValueError, RecursionError):
        result = None
    if isinstance(result, dict):
        return json.dumps({**result, "remark": remark}, ensure_ascii=False)
    return f"{outcome}\n\n{remark}"


def _cause(error: BaseException) -> BaseException:
    return error.error if isinstance(error, Foreign) else error


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
