"""Ask the editor's user: for permission, on the card of the call that it is about, and for answers to the agent's questions."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

import acp
from acp import schema

from ...app import Handrail
from ...approval.approvers.prompt import question
from ...approval.display import visible
from ...effects.trial import TRIED
from ...errors import HandrailError, ToolError
from ...protocols import PICKED, Answer, ApprovalRequest, Decision
from ...types import FileChange, JsonDict
from .link import PRESENTATION, EditorLink
from .updates import card, diff_content, fenced, text_content

_WIDTH, _MAX_LINES = 100, 60
_MAX_DIFF_BYTES = 1 << 20
_MAX_CREATED = 20
# The first two lines of each file in a unified diff.
_FILE = re.compile(r"^--- (.*)\n\+\+\+ (.*)\n(?=@@ )", re.MULTILINE)
_OPTIONS: dict[Decision, Any] = {Decision(name): each for name, each in PRESENTATION["decisions"].items()}
_TRIED = {Decision.ONCE: "Keep it", Decision.DENY: "Undo it"}
# The answer that asks for a form. What was asked about does not run, so that it is a kind of no.
_EDIT = schema.PermissionOption(option_id="edit", kind="reject_once", name="Change it first; it is judged again")


class EditorApprover:
    """The editor's user. The question is in the store as well: whoever answers first, there or here, decides."""

    name = "editor"

    def __init__(self, link: EditorLink, cwd: str, app: Handrail) -> None:
        self._link, self._cwd, self._app = link, cwd, app

    async def decide(self, request: ApprovalRequest) -> Answer | None:
        return await self._link.ask(self._decide(request))

    async def _decide(self, request: ApprovalRequest) -> Answer | None:
        link = self._link
        ids = (
            request.tool_call_id,
            request.tool_call_id.rpartition(".")[0],
        )  # its own card, or that of the call that makes it
        call_id = next((each for each in ids if each in link.open_calls), "")
        if not call_id:  # a child agent's call, or none of a model's: it has no card yet
            call_id = f"approval-{request.id}"
            link.send(card(call_id, request.tool, {"command": request.text}, cwd=self._cwd, status="pending"))
        await link.flush()
        # The question as it is asked everywhere, and as diffs what would be written, or was written by a call that was tried.
        text = question(request, width=_WIDTH, painted=False, max_lines=_MAX_LINES).strip("\n")
        changes = await asyncio.to_thread(lambda: list(self._changes(request)))
        title, content = (
            visible(request.text, max_chars=200),
            [*text_content(fenced(text)), *map(diff_content, changes)],
        )
        shown = schema.ToolCallUpdate(tool_call_id=call_id, status="pending", title=title, content=content)
        options = [*_options(request), *([_EDIT] if request.editable not in ("", PICKED) and link.has_forms else ())]
        while True:
            try:
                asked = link.client.request_permission(session_id=link.session_id, tool_call=shown, options=options)
                outcome = (await asked).outcome
            except (acp.RequestError, ConnectionError):
                return None  # it cannot ask: the next approver may
            if outcome.outcome != "selected":
                return Answer(Decision.DENY, self.name, "the question was closed")
            if outcome.option_id != _EDIT.option_id or _EDIT not in options:
                break
            if edited := await self._edited(request, call_id):
                link.send(acp.update_tool_call(call_id, status="in_progress", title=visible(edited, max_chars=200)))
                return Answer(Decision.DENY, self.name, edited=edited)
        offered = {each.value: each for each in _OPTIONS if each in request.offers}
        decision = offered.get(outcome.option_id, Decision.DENY)
        if decision.allows:
            link.send(acp.update_tool_call(call_id, status="in_progress"))
            return Answer(decision, self.name)
        # A reason for the model; empty where the editor has no forms, or the user gives none.
        field = {"reason": {"type": "string", "title": "Reason", "maxLength": 2000}}
        filled = await _form(link, "Why not? The agent is told, and may do something else.", field, call_id)
        return Answer(Decision.DENY, self.name, str(filled.get("reason") or "").strip())

    def _changes(self, request: ApprovalRequest) -> Iterator[FileChange]:
        call = self._link.open_calls.get(request.tool_call_id)
        if request.rule_key == TRIED:
            try:
                yield from self._tried(self._app.effects.describe(int(request.arguments["call"]), diff=True))
            except HandrailError:
                return  # what it did is in the text of the question
        elif call is not None and call.tool == "write_file":
            path, before = self._read(str(call.arguments.get("path", "")))
            yield FileChange(path, before, str(call.arguments.get("content", "")))
        else:
            _, *parts = _FILE.split(request.preview)
            for old, new, hunks in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
                before, after = _sides(hunks.splitlines())
                yield FileChange(self._read(new)[0], None if old == "/dev/null" else before, after)

    def _tried(self, told: JsonDict) -> Iterator[FileChange]:
        """The parts of the files that are different, and the new files."""
        for one in [*told["changed"], *told["lost"]]:
            if lines := one.get("diff", "").splitlines()[2:]:
                before, after = _sides(lines)
                yield FileChange(one["path"], before, None if one in told["lost"] else after)
        for one in told["created"][:_MAX_CREATED]:
            if one["kind"] == "file" and (text := self._read(one["path"])[1]) is not None:
                yield FileChange(one["path"], None, text)

    def _read(self, path: str) -> tuple[str, str | None]:
        """The whole path, and the text that is there now."""
        files = self._app.environments.files(self._link.session_id)
        try:
            path = files.resolve(path)
            found = files.stat(path)
            if found is not None and not found.is_dir and found.size <= _MAX_DIFF_BYTES:
                return path, files.read(path, max_bytes=_MAX_DIFF_BYTES).decode("utf-8", "replace")
        except ToolError:
            pass  # refused below, by the call itself
        return path, None

    async def _edited(self, request: ApprovalRequest, call_id: str) -> str:
        """What is to run instead; empty if the form was closed, or nothing was changed."""
        field = {"text": {"type": "string", "title": request.editable.capitalize(), "default": request.text}}
        message = "Change it. What you send is judged again, and runs in place of what the agent wanted."
        text = str((await _form(self._link, message, field, call_id)).get("text") or "")
        return "" if text.strip() == request.text.strip() else text


def _sides(hunks: Sequence[str]) -> tuple[str, str]:
    """What the lines of a unified diff show of a file, before and after."""
    before, after = ("\n".join(line[1:] for line in hunks if line[:1] in (" ", sign)) for sign in "-+")
    return before, after


class EditorPerson:
    """Answers questions of the agent, where the editor can show a form."""

    def __init__(self, link: EditorLink) -> None:
        self._link = link

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        fields: dict[str, Any] = {"choice": {"type": "string", "enum": list(choices)}} if choices else {}
        fields["answer"] = {"type": "string", "title": "Answer", "description": "In your own words"}
        filled = await self._link.ask(_form(self._link, question, fields))
        return str(filled.get("answer") or filled.get("choice") or "").strip() or None


def _options(request: ApprovalRequest) -> list[schema.PermissionOption]:
    covered = "; ".join(dict.fromkeys(concern.covers for concern in request.concerns if concern.covers))
    more = {Decision.SESSION: f": {visible(covered, max_chars=120)}"} if covered else {}
    names = {each: name + more.get(each, "") for each, (_, name) in _OPTIONS.items()}
    names |= _TRIED if request.rule_key == TRIED else {}
    return [
        schema.PermissionOption(option_id=each.value, kind=kind, name=names[each])
        for each, (kind, _) in _OPTIONS.items()
        if each in request.offers
    ]


async def _form(link: EditorLink, message: str, fields: dict[str, Any], call_id: str | None = None) -> dict[str, Any]:
    """What was filled in; empty if the form was declined, or cannot be shown."""
    if not link.has_forms:
        return {}
    wanted = schema.ElicitationSchema.model_validate({"type": "object", "properties": fields})
    mode = schema.ElicitationFormSessionMode(session_id=link.session_id, tool_call_id=call_id, requested_schema=wanted)
    try:
        answer = await link.client.create_elicitation(message=message, mode=mode)
    except (acp.RequestError, ConnectionError, ValueError):
        return {}
    return dict(answer.content or {}) if isinstance(answer, schema.AcceptElicitationResponse) else {}
