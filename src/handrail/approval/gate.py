"""The gate that every dangerous action passes: judge it, decide what the policy decides, ask about the rest, record it all.

What is harmless passes in microseconds. What has to be asked returns an awaitable, so that waiting for an answer holds no
thread. The approver is the call's own (`ToolContext.approver`): a terminal, a chat, a queue; None means nobody can be asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..base.loops import on_database, on_worker, result_of
from ..errors import ConfigError, Denied, Edited, StoreError
from ..protocols import Answer, ApprovalRequest, Approver, Decision
from ..store.approvals import ApprovalStore, Granted
from .action_review import Judge, SelfProtection, builtin_assess, private_dirs
from .allowlist import PROCESS_SCOPE, GrantKey, parse_grant_key
from .policy import DecidedBy, Judged, Mode, Modes, Pending, Policy, Ruling, loosened, with_mode
from .questions import Previews, question_of, refused, settings_question, unanswered, unusable
from .records import HISTORY_NAME, ActionHistory, Records
from .requests import ApprovalRequests, ChainApprover, PolicyApprover
from .settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from ..protocols import Action
    from ..store.approvals import StoredGrant
    from ..types import ToolContext
    from .action_review import Assess
    from .requests import Keep

STORE_NAME = "approvals.db"
# A longer command is judged beside the event loop, which it would hold up.
_MAX_JUDGED_IN_LOOP = 4000
T = TypeVar("T")
# Who decides without being a person.
AUTOMATIC = frozenset({"policy", "smart", "nobody"})


_Judged = tuple[list[Judged], Policy]


class Notices(Protocol):
    """Notified of every request and answer. The last two methods may take a while, and neither may raise."""

    def is_wanted(self) -> bool:
        """Whether anybody listens now."""

    def about_to_ask(self, request: ApprovalRequest) -> None: ...

    def answered(self, request: ApprovalRequest, answer: Answer, seconds: float) -> None: ...


class ApprovalGate:
    """`settings` are what the user configured. Requests, grants, decisions and a record of every action are kept in `folder`;
    without one they last as long as the gate. `assess` is the judge of commands, `smart` the approver that asks a model.
    `private` are the folders that no agent may write; by default those of this user. `notices` are told of every request."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        folder: Path | None = None,
        assess: Assess = builtin_assess,
        smart: Approver | None = None,
        notices: Notices | None = None,
        private: Iterable[Path] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.modes = Modes()
        self._notices = notices
        self._folder, self._given_smart = folder, smart
        self._judge = Judge(assess, SelfProtection(private_dirs() if private is None else private))
        self._scope = f"{PROCESS_SCOPE}{os.urandom(8).hex()}"

    def review(self, actions: Sequence[Action], context: ToolContext) -> Awaitable[None] | None:
        """Raise Denied, now or when awaited, unless all of it may happen. In a running loop nothing waits for the store."""
        if asyncio._get_running_loop() is None:
            judged = self._judged(actions, context)
            while not self._recorded(found := self._ruled(judged, context), context):
                pass
            return self._next(found, actions, context)
        if sum([len(action.text) for action in actions]) > _MAX_JUDGED_IN_LOOP:
            return self._areviewed(actions, context, None)
        judged = self._judged(actions, context)
        found = self._ruled(judged, context, with_grants=False)
        if not found.is_harmless:
            return self._areviewed(actions, context, judged, found)
        for ruling in found.rulings:
            self._records.ruled(ruling, context)
        return None

    async def preview(self, actions: Sequence[Action], context: ToolContext) -> ApprovalRequest | None:
        """The question that `review` would ask now; None when it would ask none. Nothing is stored, counted or asked.
        Raises Denied for what would be refused."""
        return await on_worker(self._previewed, actions, context)

    async def _areviewed(
        self, actions: Sequence[Action], context: ToolContext, judged: _Judged | None, likely: _Ruled | None = None
    ) -> None:
        """`likely`: what is decided if nothing is granted. Whether something is can be looked up while the question is stored."""
        judged = judged or await on_worker(self._judged, actions, context)
        if likely is not None and self._is_plain_question(likely, context):
            with contextlib.suppress(Granted):
                await self._ask(likely.left, context, likely.policy, unless_granted=True)
                return
        while True:
            found = await on_database(self._ruled, judged, context)
            if not found.is_stored or await self._written(self._recorded, found, context):
                break
        further = self._next(found, actions, context)
        if further is not None:
            await further

    async def _written(self, work: Callable[..., T], *args: object) -> T:
        """What writes to the store, committed with all that waits to be written. Raises Denied when it cannot be used."""
        try:
            return await result_of(self.store.database.write(work, *args), timeout=None, cancel=None)
        except StoreError as error:
            raise unusable(error) from None

    def _previewed(self, actions: Sequence[Action], context: ToolContext) -> ApprovalRequest | None:
        found = self._ruled(self._judged(actions, context), context)
        for ruling in found.rulings:
            if ruling.refused is not None:
                raise refused(ruling)
        if not found.left:
            return None
        shown = Previews(item.action for item in found.left).read_now()
        return question_of(found.left, context, expires_at=time.time() + self.settings.timeout, preview=shown)

    def _judged(self, actions: Sequence[Action], context: ToolContext) -> _Judged:
        """Raises Denied when the settings cannot be used."""
        try:
            mode, tool = self.modes.of(context.session_id), context.tool
            policy, judge = self._policy(context, mode), self._judge.judge
            return [with_mode(judge(each, tool, policy, context.task_id), tool, mode) for each in actions], policy
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None

    def _policy(self, context: ToolContext, mode: Mode) -> Policy:
        """The settings, with the mode of the caller's session; an agent's own shell has no say in that."""
        policy, asks = self.settings.policy(), context.caller.mode
        if not self.settings.takes_modes:
            return policy
        if asks:
            policy = policy._replace(ask_disabled_by=DecidedBy.OFF if asks == "off" else None, smart=asks == "smart")
        return loosened(policy, mode)

    def _ruled(self, judged: _Judged, context: ToolContext, *, with_grants: bool = True) -> _Ruled:
        """Raises Denied when the store cannot be used, which holds the grants."""
        used: list[StoredGrant] = []

        def granted(keys: Iterable[GrantKey]) -> bool:
            found = self._granting(keys, context, used) if with_grants else None
            used.extend(found or ())
            return found is not None

        actions, policy = judged
        try:
            rulings = [policy.rule(each, context.tool, granted=granted) for each in actions]
            return _Ruled(rulings, policy, used, self._asks_about_settings(rulings, context))
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None

    def _recorded(self, found: _Ruled, context: ToolContext) -> bool:
        """Count the grants, and record what is decided: both or neither. False when a grant does not hold any more."""
        if found.asks_first:
            return True
        decided = [ruling for ruling in found.rulings if not ruling.pending]
        try:
            if found.is_stored:
                with self.store.database.transaction():
                    if not self.store.grants.use(found.used):
                        return False
                    for ruling in decided:
                        if ruling.by is not DecidedBy.HARMLESS:
                            self._records.decided(self.store, ruling, context)
        except StoreError as error:
            raise unusable(error) from None
        for ruling in decided:
            self._records.ruled(ruling, context)
        return True

    def _next(self, found: _Ruled, actions: Sequence[Action], context: ToolContext) -> Awaitable[None] | None:
        if found.asks_first:
            return self._review_again(actions, context)
        for ruling in found.rulings:
            if ruling.refused is not None:
                raise refused(ruling)
        return self._ask(found.left, context, found.policy) if found.left else None

    def _is_plain_question(self, found: _Ruled, context: ToolContext) -> bool:
        """Whether all of it is to be asked, and nothing is known yet but that somebody can be."""
        caller, settings = context.caller, self.settings
        knows_nobody = context.approver is None or settings.started_by_agent or found.policy.smart
        is_asked = not found.asks_first and all(each.pending and each.refused is None for each in found.rulings)
        return is_asked and not (knows_nobody or caller.answered or caller.asked)

    def _asks_about_settings(self, rulings: Sequence[Ruling], context: ToolContext) -> bool:
        """Whether a file that became weaker could let pass what does not, and somebody can be asked about it."""
        if not any(ruling.pending or ruling.refused is not None for ruling in rulings):
            return False
        return context.approver is not None and not self.settings.started_by_agent and bool(self.settings.waiting)

    async def _review_again(self, actions: Sequence[Action], context: ToolContext) -> None:
        """First ask whether the weaker settings hold, then review with those that do. A person answers, never a model."""
        waiting, approver = self.settings.waiting, context.approver
        assert approver is not None
        started = time.monotonic()
        request = settings_question(waiting, context, expires_at=time.time() + self.settings.timeout)
        try:
            request, answer = await self._requests.ask(request, approver)
            await asyncio.to_thread(self.settings.answer_waiting, waiting, allowed=answer.decision.allows)
            await self._written(self._keep, request, answer, (), context, started)
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None
        further = self.review(actions, context)
        if further is not None:
            await further

    @cached_property
    def store(self) -> ApprovalStore:
        """Opened by the first action that is not harmless."""
        return ApprovalStore(None if self._folder is None else self._folder / STORE_NAME)

    @cached_property
    def _requests(self) -> ApprovalRequests:
        return ApprovalRequests(self.store)

    @cached_property
    def _records(self) -> Records:
        max_bytes = self.settings.config.approvals.history_max_bytes
        if self._folder is None or not max_bytes:
            return Records(None)
        return Records(ActionHistory(self._folder / HISTORY_NAME, max_bytes=max_bytes))

    @cached_property
    def _smart(self) -> Approver | None:
        from .approvers.smart import smart_approver

        return self._given_smart or smart_approver(self.settings.config.approvals)

    def close(self) -> None:
        """Close the files. Pending requests stay in the store."""
        if "store" in self.__dict__:
            self.store.close()
        if "_records" in self.__dict__:
            self._records.close()

    def _granting(
        self, keys: Iterable[GrantKey], context: ToolContext, used: Sequence[StoredGrant]
    ) -> set[StoredGrant] | None:
        """The grants that cover all of the keys, after these uses; None when one of the keys is not covered."""
        held = self.store.grants.of(self._scopes(context))
        held = [one for one in held if one.uses_left is None or one.uses_left > used.count(one)]
        covering = [next((grant for grant in held if _covers(grant.key, wanted)), None) for wanted in keys]
        found = {grant for grant in covering if grant is not None}
        return found if None not in covering else None

    def _scopes(self, context: ToolContext) -> list[str]:
        return [self._scope_of(each, context) for each in (Decision.TASK, Decision.SESSION)]

    def _scope_of(self, decision: Decision, context: ToolContext) -> str:
        """Without a session id the task is the session. A grant without either ends with this process."""
        if decision is not Decision.TASK and context.session_id:
            return f"{Decision.SESSION.value}:{context.session_id}"
        return f"{Decision.TASK.value}:{context.task_id}" if context.task_id else self._scope

    def forget_session(self, name: str) -> None:
        """Take back what was allowed for a session or task that is over."""
        if "store" in self.__dict__:
            self.store.grants.forget([f"{each.value}:{name}" for each in (Decision.TASK, Decision.SESSION)])

    async def _ask(
        self, left: Sequence[Pending], context: ToolContext, policy: Policy, *, unless_granted: bool = False
    ) -> None:
        started, previews = time.monotonic(), Previews(item.action for item in left)
        asks = context.approver is not None or context.caller.answered
        preview = await previews.read() if asks else ""
        request = question_of(left, context, expires_at=time.time() + self.settings.timeout, preview=preview)
        try:
            asked = {} if context.caller.asked is None else context.caller.asked
            kept: list[ApprovalRequest] = []

            def keep(request: ApprovalRequest, answer: Answer, *, is_listed: bool = False) -> None:
                self._keep(request, answer, left, context, started, is_listed=is_listed)
                kept.append(request)

            known = asked.get(request.fingerprint)
            scopes = self._scopes(context) if unless_granted else []
            request, answer = known or await self._answer(request, context, policy, keep, scopes)
            asked[request.fingerprint] = request, answer
            if context.caller.on_answer is not None:
                context.caller.on_answer(request, time.monotonic() - started)
            if not kept:
                is_always = answer.decision is Decision.ALWAYS
                is_listed = is_always and await self.settings.allow_always([item.key for item in left])
                await self._written(partial(keep, is_listed=is_listed), request, answer)
        except (ConfigError, StoreError) as error:
            raise unusable(error) from None
        if answer.decision.allows and context.effects is not None:
            context.effects.approved(request, answer)
        if answer.edited and request.editable:
            raise Edited(request.editable, answer.edited, answer.by)
        if not answer.decision.allows:
            raise unanswered(request, answer, by_person=answer.by not in AUTOMATIC)
        if asks:
            await previews.check()

    async def _answer(
        self, request: ApprovalRequest, context: ToolContext, policy: Policy, keep: Keep, scopes: Sequence[str]
    ) -> tuple[ApprovalRequest, Answer]:
        """Raises Granted, before anybody is asked, when one of the scopes has a grant."""
        if context.caller.answered:
            return request, self._given_answer(request, context)
        approver = None if self.settings.started_by_agent else context.approver
        if policy.smart and self._smart is not None:
            approver = ChainApprover(self._smart, approver or PolicyApprover())
        if approver is None:  # nobody will ever answer, so nothing is stored
            return request, PolicyApprover().decide(request)
        notices, started = self._notices, time.monotonic()
        if notices is not None and not notices.is_wanted():
            notices = None

        async def begin(request: ApprovalRequest) -> None:
            if context.caller.on_question is not None:
                context.caller.on_question(request)
            if notices is not None:
                await on_worker(notices.about_to_ask, request)

        request, answer = await self._requests.ask(request, approver, keep, scopes=scopes, begin=begin)
        if notices is not None:
            await on_worker(notices.answered, request, answer, time.monotonic() - started)
        return request, answer

    def _given_answer(self, request: ApprovalRequest, context: ToolContext) -> Answer:
        """The answer that came with the call. Raises Denied for one that was given to another question."""
        answer = next((each for each in context.caller.answered if each.fingerprint == request.fingerprint), None)
        if answer is None:
            raise Denied(
                "the answer that came with this call was given to another question, so nothing was done; preview the call "
                "again, and have that answered",
                decided_by="gate",
                changed_while_asked=True,
            )
        if self.settings.started_by_agent and answer.decision.allows:
            return Answer(Decision.DENY, "policy", "an agent started this process, so nobody here may approve")
        return request.as_offered(answer)._replace(by=answer.by or "the caller")

    def _keep(
        self,
        request: ApprovalRequest,
        answer: Answer,
        left: Sequence[Pending],
        context: ToolContext,
        started: float,
        *,
        is_listed: bool = False,
    ) -> None:
        """`is_listed`: the yes is in the allowlist for good."""
        is_short = is_listed or answer.decision in (Decision.ONCE, Decision.TRY, Decision.DENY)
        keys = [] if is_short else list(dict.fromkeys(str(item.key) for item in left))
        with self.store.database.transaction() if keys else contextlib.nullcontext():
            if keys:
                is_task = answer.decision is Decision.TASK
                seconds, uses = self.settings.task_limits(answer) if is_task else (None, None)
                scope = self._scope_of(Decision.TASK if is_task else Decision.SESSION, context)
                self.store.grants.add(scope, keys, by=answer.by, seconds=seconds, uses=uses)
            took = time.monotonic() - started
            self._records.answered(self.store, request, answer, left, seconds=took)


class _Ruled(NamedTuple):
    """What is decided about a call, with the grants that it uses. `asks_first`: whether settings that became weaker hold."""

    rulings: list[Ruling]
    policy: Policy
    used: list[StoredGrant]
    asks_first: bool

    @property
    def is_harmless(self) -> bool:
        return all(r.by is DecidedBy.HARMLESS and not r.pending and r.refused is None for r in self.rulings)

    @property
    def left(self) -> list[Pending]:
        return [item for ruling in self.rulings for item in ruling.pending]

    @property
    def is_stored(self) -> bool:
        return not self.asks_first and any(
            not ruling.pending and ruling.by is not DecidedBy.HARMLESS for ruling in self.rulings
        )


def _covers(key: str, wanted: GrantKey) -> bool:
    try:
        return parse_grant_key(key).covers(wanted)
    except ValueError:  # granted by a version that allowed longer grants of it
        return False
