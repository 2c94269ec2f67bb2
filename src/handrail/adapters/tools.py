"""What the adapters share: the tools of a session, and the questions whose answers come by way of a framework."""

import json
from collections.abc import Sequence
from typing import Any

from ..protocols import Answer, ApprovalRequest, Decision
from ..sessions.session import Result, Session, SyncSession
from ..types import JsonDict

_MAX_WAITING = 1000
_MAX_QUESTIONS = 16


class SessionTool:
    """One tool of a session. `parameters` is JSON Schema."""

    def __init__(self, session: Session, definition: JsonDict) -> None:
        self.name: str = definition["name"]
        self.description: str = definition.get("description", "")
        self.parameters: JsonDict = definition.get("parameters") or {"type": "object", "properties": {}}
        self._session = session

    async def questions(self, args: Any, call_id: str) -> list[ApprovalRequest]:
        """What has to be answered before this call may run, as it was when this was asked first: an answer is to what
        was shown. Nothing where the session has an approver of its own, which the call itself asks."""
        if self._session.has_approver:
            return []
        key = _key(self.name, args, call_id)
        if (known := self._session.waiting.get(key)) is not None:
            return known
        found = await self._ask(args)
        if found and call_id:
            self._session.waiting[key] = found
            if len(self._session.waiting) > _MAX_WAITING:
                self._session.waiting.pop(next(iter(self._session.waiting)))
        return found

    async def call(self, args: Any, call_id: str, answered: Sequence[Answer] = ()) -> Result:
        """Run it. A question that has no answer goes to whoever the Handrail asks; without anybody it is denied."""
        self._session.waiting.pop(_key(self.name, args, call_id), None)
        return await self._session.call(self.name, args, answered=answered, tool_call_id=call_id)

    async def call_approved(self, args: Any, call_id: str, by: str, fingerprints: Sequence[str] = ()) -> Result:
        """Run it with a yes to what was asked about it. `fingerprints` name the questions where another process asked them."""
        asked = fingerprints or [question.fingerprint for question in await self.questions(args, call_id)]
        yes = [Answer(Decision.ONCE, by, fingerprint=fingerprint) for fingerprint in asked]
        return await self.call(args, call_id, yes)

    async def _ask(self, args: Any) -> list[ApprovalRequest]:
        """A call that was allowed one thing may ask about the next."""
        found: list[ApprovalRequest] = []
        while len(found) < _MAX_QUESTIONS:
            yes = [question.answer(Decision.ONCE) for question in found]
            question = await self._session.preview(self.name, args, answered=yes)
            if not isinstance(question, ApprovalRequest):
                break
            found.append(question)
        return found


def session_tools(session: Session | SyncSession) -> list[SessionTool]:
    twin = session.twin if isinstance(session, SyncSession) else session
    return [SessionTool(twin, definition["function"]) for definition in twin.tools()]


def shown(question: ApprovalRequest) -> JsonDict:
    """A question as JSON, for a framework that keeps it while it waits."""
    names = ("tool", "text", "reason", "preview", "cwd", "environment", "fingerprint")
    shown = {name: getattr(question, name) for name in names}
    return {**shown, "arguments": dict(question.arguments), "offers": [offer.value for offer in question.offers]}


def message_of(result: Result) -> str:
    """What to tell the model of a call that failed."""
    problem = result.data.get("error") if isinstance(result.data, dict) else None
    return f"{result.error_type}: {problem}" if isinstance(problem, str) else result.text


def _key(name: str, args: Any, call_id: str) -> tuple[str, str, str]:
    return call_id, name, json.dumps(args, sort_keys=True, default=repr)
