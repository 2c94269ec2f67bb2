"""Connect what plugins added to the parts that use it: the gate, the backends, and the commands' output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.suggest import did_you_mean
from ..errors import ConfigError

if TYPE_CHECKING:
    from ..environments.backend_table import Backends
    from ..protocols import Answer, ApprovalRequest, Approver
    from .api import Contributions
    from .hook_manager import HookManager


def add_environments(contributions: Contributions, backends: Backends) -> None:
    for backend in contributions.environments.values():
        backends.add(backend)


def remove_environments(contributions: Contributions, backends: Backends) -> None:
    for name in contributions.environments:
        backends.remove(name)


def chosen_approver(contributions: Contributions | None, name: str) -> Approver:
    """The approver that `approvals.approver` names. Raises ConfigError if no plugin has it: no other may stand in."""
    known: dict[str, Any] = contributions.approvers if contributions is not None else {}
    if name not in known:
        hint = did_you_mean(name, list(known)) if known else "no plugin has one"
        raise ConfigError(f"approvals.approver: unknown approver {name!r}; {hint}")
    approver: Approver = known[name]
    return approver


class ApprovalHooks:
    """Notifies the hooks of every approval request and answer."""

    def __init__(self, hooks: HookManager) -> None:
        self._hooks = hooks

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
