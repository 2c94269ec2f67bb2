"""Ask the `pre_tool_call` hooks, and a person where one of them wants that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import Denied
from ..protocols import ApprovalRequest
from .arguments import prepare
from .decoding import plain_copy
from .steps import Flow, Foreign, Step

if TYPE_CHECKING:
    from ..plugins.hooks import Ask, Block, Change
    from ..plugins.manager import HookManager
    from ..protocols import Approver
    from ..tools.registry import ToolEntry
    from ..types import JsonDict
    from .dispatch import Call

_HOOK = "pre_tool_call"


class HookPolicy:
    """Unknown means no: a policy hook that fails, and a question that nobody answers, both block the call."""

    def __init__(self, hooks: HookManager, approver: Approver | None) -> None:
        self._hooks = hooks
        self._approver = approver

    def judge(self, call: Call, entry: ToolEntry, arguments: JsonDict) -> Flow[JsonDict]:
        """The arguments to run with. Raises Denied."""
        from ..plugins.hooks import Ask, Block, Change

        questions: list[Ask] = []
        for implementation in self._hooks.implementations(_HOOK):
            payload = {
                "tool_name": call.name,
                "args": plain_copy(arguments),
                "task_id": call.task_id,
                "session_id": call.session_id,
                "tool_call_id": call.tool_call_id,
            }
            timeout = implementation.timeout(self._hooks.timeout)
            try:
                verdict = _verdict((yield Step(implementation.bind(payload), timeout, in_caller=timeout is None)))
            except Exception as error:  # noqa: BLE001  a plugin's bug becomes a log line, or a refusal
                self._hooks.failed(_HOOK, implementation, error)
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

    def _ask(self, call: Call, arguments: JsonDict, question: Ask) -> Flow[None]:
        advice = "Do not try the same in another way; tell the user what you wanted to do."
        approver = self._approver
        if approver is None:
            raise Denied(f"{call.name} needs approval ({question.message}) and there is nobody to ask. {advice}")
        request = ApprovalRequest(
            call.name, arguments, question.message, question.rule_key, call.task_id, call.session_id
        )
        try:
            decision = yield Step(lambda: approver.decide(request), cancel=call.cancel, in_caller=False)
        except Foreign as raised:
            raise Denied(f"{call.name} needs approval and asking failed: {raised}. {advice}") from None
        if not getattr(decision, "allows", False):
            raise Denied(f"{call.name} was denied ({question.message}). {advice}")


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
