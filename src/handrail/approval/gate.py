"""The one door that everything dangerous goes through: judge it, decide what can be decided, ask about the rest, record it all.

What is harmless passes in microseconds. What is to be asked gives back an awaitable, so that waiting for a person holds no
thread. The approver is the call's own (`ToolContext.approver`): a terminal, a chat, a queue; none means that nobody is there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from ..base.workers import pool
from ..errors import ConfigError, StoreError
from ..protocols import Answer, ApprovalRequest, Approver, Concern, Decision
from .action_review import Judge, builtin_assess
from .grants import PROCESS_SCOPE, Kind, parse_kind
from .policy import By, Open, Policy, Ruling
from .refusals import refused, unanswered, unusable
from .self_protection import Own, own_folders
from .settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from ..protocols import Action
    from ..store.approvals import ApprovalStore
    from ..types import ToolContext
    from .action_review import Assess
    from .records import Records
    from .requests import Asking

STORE_NAME, HISTORY_NAME = "approvals.db", "actions.jsonl"
# Who decides without being a person.
_AUTOMATIC = frozenset({"policy", "smart", "nobody"})


class Notices(Protocol):
    """Who wants to know of questions. Both may take a while, and neither may raise."""

    def about_to_ask(self, request: ApprovalRequest) -> None: ...

    def answered(self, request: ApprovalRequest, answer: Answer, seconds: float) -> None: ...


class ApprovalGate:
    """`settings` are what the user configured. In `folder` the requests, grants and decisions are kept, and a record of every
    action; without one they last as long as the gate. `assess` is the judge of commands, `smart` the model's approver.
    `notices` hear of every question."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        folder: Path | None = None,
        assess: Assess = builtin_assess,
        smart: Approver | None = None,
        notices: Notices | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._notices = notices
        self._folder, self._given_smart = folder, smart
        self._judge = Judge(assess, Own(own_folders()))
        self._scope = f"{PROCESS_SCOPE}{os.urandom(8).hex()}"

    def review(self, actions: Sequence[Action], context: ToolContext) -> Awaitable[None] | None:
        """Raise Denied, now or when awaited, unless all of it may happen."""
        try:
            policy = self.settings.policy()
            rulings = [self._ruling(action, context, policy) for action in actions]
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None
        for ruling in rulings:
            if not ruling.open:
                self._record(ruling, context)
            if ruling.refused is not None:
                raise refused(ruling)
        left = [item for ruling in rulings for item in ruling.open]
        return self._ask(left, context, policy) if left else None

    @cached_property
    def store(self) -> ApprovalStore:
        """Opened by the first action that is not harmless."""
        from ..store.approvals import ApprovalStore

        return ApprovalStore(None if self._folder is None else self._folder / STORE_NAME)

    @cached_property
    def _asking(self) -> Asking:
        from .requests import Asking

        return Asking(self.store)

    @cached_property
    def _records(self) -> Records:
        from ..store.history import ActionHistory
        from .records import Records

        max_bytes = self.settings.config.approvals.history_max_bytes
        if self._folder is None or not max_bytes:
            return Records(None)
        return Records(ActionHistory(self._folder / HISTORY_NAME, max_bytes=max_bytes))

    @cached_property
    def _smart(self) -> Approver | None:
        from .approvers.smart import smart_approver

        return self._given_smart or smart_approver(self.settings.config.approvals)

    def close(self) -> None:
        """Let go of the files. What waits for an answer stays written down."""
        if "store" in self.__dict__:
            self.store.close()
        if "_records" in self.__dict__:
            self._records.close()

    def _ruling(self, action: Action, context: ToolContext, policy: Policy) -> Ruling:
        judged = self._judge.judge(action, context.tool, policy)
        return policy.rule(judged, context.tool, granted=lambda kinds: self._is_granted(kinds, context))

    def _is_granted(self, kinds: Iterable[Kind], context: ToolContext) -> bool:
        held = self.store.grants.of(self._scopes(context))
        used = [next((grant for grant in held if _covers(grant.key, wanted)), None) for wanted in kinds]
        found = [grant for grant in used if grant is not None]
        return len(found) == len(used) and self.store.grants.use(set(found))

    def _scopes(self, context: ToolContext) -> list[str]:
        return [self._scope_of(Decision.TASK, context), self._scope_of(Decision.SESSION, context)]

    def _scope_of(self, decision: Decision, context: ToolContext) -> str:
        """What has no name of its own ends with this process."""
        name = context.task_id if decision is Decision.TASK else context.session_id
        return f"{decision.value}:{name}" if name else self._scope

    async def _ask(self, left: Sequence[Open], context: ToolContext, policy: Policy) -> None:
        started = time.monotonic()
        request = _request(left, context, expires_at=time.time() + self.settings.timeout)
        try:
            request, answer = await self._answer(request, context, policy)
            if answer.decision.allows:
                await self._keep(answer, [item.kind for item in left], context)
            self._records.answered(self.store, request, answer, left, seconds=time.monotonic() - started)
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None
        if not answer.decision.allows:
            raise unanswered(request, answer, by_person=answer.by not in _AUTOMATIC)

    async def _answer(
        self, request: ApprovalRequest, context: ToolContext, policy: Policy
    ) -> tuple[ApprovalRequest, Answer]:
        from .approvers import ChainApprover, PolicyApprover

        approver = None if self.settings.started_by_agent else context.approver
        if policy.smart and self._smart is not None:
            approver = ChainApprover(self._smart, approver or PolicyApprover())
        if approver is None:  # nobody will ever answer, so nothing is left waiting
            return request, PolicyApprover().decide(request)
        if self._notices is None:
            return await self._asking.ask(request, approver)
        started = time.monotonic()
        await _told(self._notices.about_to_ask, request)
        request, answer = await self._asking.ask(request, approver)
        await _told(self._notices.answered, request, answer, time.monotonic() - started)
        return request, answer

    async def _keep(self, answer: Answer, kinds: Sequence[Kind], context: ToolContext) -> None:
        """Remember a yes that holds for longer."""
        decision, keys = answer.decision, [str(kind) for kind in kinds]
        if decision is Decision.ONCE:
            return
        if decision is Decision.ALWAYS and await self.settings.allow_always(kinds):
            return
        seconds, uses = (None, None) if decision is not Decision.TASK else self.settings.task_limits(answer)
        scope = self._scope_of(Decision.TASK if decision is Decision.TASK else Decision.SESSION, context)
        self.store.grants.add(scope, dict.fromkeys(keys), by=answer.by, seconds=seconds, uses=uses)

    def _record(self, ruling: Ruling, context: ToolContext) -> None:
        self._records.ruled(ruling, context)
        if ruling.by is By.HARMLESS:
            return
        try:
            self._records.decided(self.store, ruling, context)
        except StoreError as error:
            raise unusable(error) from None


async def _told(notice: Callable[..., None], *args: Any) -> None:
    await asyncio.wrap_future(pool.submit(notice, *args))


def _covers(key: str, wanted: Kind) -> bool:
    try:
        return parse_kind(key).covers(wanted)
    except ValueError:  # granted by another version, where it could last
        return False


def _request(left: Sequence[Open], context: ToolContext, *, expires_at: float) -> ApprovalRequest:
    """One question for all that a call is about to do: its texts below each other, the marks moved with them."""
    texts: list[str] = []
    concerns: list[Concern] = []
    begins: dict[int, int] = {}
    for item in left:
        action = item.action
        if id(action) not in begins:
            begins[id(action)] = sum(len(text) + 1 for text in texts)
            texts.append(action.text)
        begin = begins[id(action)]
        start, end = item.finding.span
        concerns.append(
            Concern(
                item.finding.rule,
                item.finding.why,
                begin + start,
                begin + end,
                str(item.kind),
                item.kind.described() if item.kind.can_last else "",
            )
        )
    first = left[0].action
    lasts = all(item.kind.can_last for item in left)
    return ApprovalRequest(
        tool=context.tool,
        arguments=first.details.get("arguments", {}),
        reason="; ".join(dict.fromkeys(concern.why for concern in concerns)),
        rule_key=str(first.details.get("rule") or concerns[0].rule),
        task_id=context.task_id,
        session_id=context.session_id,
        kind=first.kind,
        text="\n".join(texts),
        cwd=first.cwd,
        environment=first.environment,
        concerns=tuple(concerns),
        offers=tuple(Decision) if lasts else (Decision.ONCE, Decision.DENY),
        expires_at=expires_at,
        asker=str(getattr(context.agent, "label", "")),
    )
