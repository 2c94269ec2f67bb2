"""Ask the editor's user: for permission, on the card of the call that it is about, and for answers to the agent's questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import acp
from acp import schema

from ...agent.events import ToolStarted
from ...approval.approvers.prompt import question
from ...approval.display import visible
from ...errors import ToolError
from ...protocols import Answer, ApprovalRequest, Decision, Files
from .link import Change, EditorLink
from .updates import card, diff_content

_WIDTH = 100
_MAX_LINES = 60
_MAX_DIFF_BYTES = 1 << 20
_NAMES: dict[Decision, tuple[Any, str]] = {
    Decision.ONCE: ("allow_once", "Allow once"),
    Decision.SESSION: ("allow_always", "Allow in this session"),
    Decision.DENY: ("reject_once", "Deny"),
}


class EditorApprover:
    """The editor's user. The question is in the store as well: whoever answers first, there or here, decides."""

    name = "editor"

    def __init__(self, link: EditorLink, cwd: str, files: Callable[[], Files]) -> None:
        self._link, self._cwd, self._files = link, cwd, files

    async def decide(self, request: ApprovalRequest) -> Answer | None:
        return await self._link.ask(self._decide(request))

    async def _decide(self, request: ApprovalRequest) -> Answer | None:
        link = self._link
        call_id = link.card_of(request.tool_call_id)
        if not call_id:  # a child agent's call, or none of a model's: it has no card yet
            call_id = f"approval-{request.id}"
            arguments = {"path" if request.kind.value.startswith("file") else "command": request.text}
            link.send(card(call_id, request.tool, arguments, cwd=self._cwd, status="pending"))
        await link.flush()
        shown = schema.ToolCallUpdate(
            tool_call_id=call_id,
            status="pending",
            title=visible(request.text, max_chars=200),
            content=await self._content(request, link.open_calls.get(request.tool_call_id)),
        )
        try:
            answer = await link.client.request_permission(
                session_id=link.session_id, tool_call=shown, options=_options(request)
            )
        except (acp.RequestError, ConnectionError):
            return None  # it cannot ask: the next approver may
        chosen = answer.outcome.option_id if answer.outcome.outcome == "selected" else Decision.DENY.value
        decision = next((each for each in _NAMES if each.value == chosen and each in request.offers), Decision.DENY)
        if decision.allows:
            link.send(acp.update_tool_call(call_id, status="in_progress"))
            return Answer(decision, self.name)
        was_closed = answer.outcome.outcome != "selected"
        return Answer(Decision.DENY, self.name, "the question was closed" if was_closed else await self._why(call_id))

    async def _content(self, request: ApprovalRequest, call: ToolStarted | None) -> list[Any]:
        """The question as it is asked everywhere, and what would be written as a diff."""
        asked = question(request, width=_WIDTH, painted=False, max_lines=_MAX_LINES).strip("\n")
        content: list[Any] = [acp.tool_content(acp.text_block(f"````\n{asked}\n````"))]
        if call is not None and call.tool == "write_file" and isinstance(text := call.arguments.get("content"), str):
            path = str(call.arguments.get("path", ""))
            content.append(diff_content(await asyncio.to_thread(self._change, path, text)))
        return content

    def _change(self, path: str, after: str) -> Change:
        files, before = self._files(), None
        try:
            path = files.resolve(path)
            found = files.stat(path)
            if found is not None and not found.is_dir and found.size <= _MAX_DIFF_BYTES:
                before = files.read(path, max_bytes=_MAX_DIFF_BYTES).decode("utf-8", "replace")
        except ToolError:
            before = None
        return Change(path, before, after)

    async def _why(self, call_id: str) -> str:
        """The reason of a denial, for the model; empty where the editor has no forms, or the user gives none."""
        reason = schema.ElicitationStringPropertySchema(type="string", title="Reason", max_length=2000)
        content = await _form(
            self._link, "Why not? The agent is told, and may do something else.", {"reason": reason}, call_id
        )
        return str(content.get("reason") or "").strip()


class EditorPerson:
    """Answers questions of the agent, where the editor can show a form."""

    def __init__(self, link: EditorLink) -> None:
        self._link = link

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        if not self._link.has_forms:
            return None
        text = schema.ElicitationStringPropertySchema(type="string", title="Answer", description="In your own words")
        fields: dict[str, Any] = {"answer": text}
        if choices:
            fields = {"choice": schema.ElicitationStringPropertySchema(type="string", enum=list(choices)), **fields}
        content = await self._link.ask(_form(self._link, question, fields))
        return str(content.get("answer") or content.get("choice") or "").strip() or None


def _options(request: ApprovalRequest) -> list[schema.PermissionOption]:
    covered = "; ".join(dict.fromkeys(concern.covers for concern in request.concerns if concern.covers))
    options = []
    for decision, (kind, name) in _NAMES.items():
        if decision in request.offers:
            more = f": {visible(covered, max_chars=120)}" if decision is Decision.SESSION and covered else ""
            options.append(schema.PermissionOption(option_id=decision.value, kind=kind, name=name + more))
    return options


async def _form(link: EditorLink, message: str, fields: dict[str, Any], call_id: str | None = None) -> dict[str, Any]:
    """What was filled in; empty if the form was declined, or cannot be shown."""
    if not link.has_forms:
        return {}
    mode = schema.ElicitationFormSessionMode(
        session_id=link.session_id,
        tool_call_id=call_id,
        requested_schema=schema.ElicitationSchema(type="object", properties=fields),
    )
    try:
        answer = await link.client.create_elicitation(message=message, mode=mode)
    except (acp.RequestError, ConnectionError, ValueError):
        return {}
    return dict(answer.content or {}) if isinstance(answer, schema.AcceptElicitationResponse) else {}
