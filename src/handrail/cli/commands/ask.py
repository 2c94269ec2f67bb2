"""Have an agent do one thing, and print its answer.

The answer goes to stdout, what it does meanwhile to stderr. With a question, what comes on stdin is given to the
agent as material. You are not asked anything: what would need approval is denied, unless config.yaml allows it
(`approvals.allow`, an earlier "always"), or --yolo. With `approvals.headless: queue` it waits for `handrail
approvals answer` instead.

Examples:
  handrail ask "which tests cover billing?"
  git diff | handrail ask "write a commit message for this"
  handrail ask --continue "and now fix it"
  handrail ask --json "how many TODOs are there?" | jq -r .answer
  handrail ask --events "run the tests" | jq -r '.tool // empty'

Exit codes: 0 answered, 1 failed or a budget is used up, 2 wrong usage, 3 answered, but a call was denied, 124
timed out, 130 interrupted.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Annotated, TextIO

from ...agent.agent import Agent
from ...agent.agent_factory import LAST, budgets_of, open_agent
from ...agent.events import End, Event, Notice, ToolEnded, ToolStarted, TurnEnded, Usage, payload_of
from ...approval.policy import Mode, read_mode
from ...core.outcome import error_of
from ...types import CancelToken, JsonDict
from .. import options
from ..call_text import main_argument, ran_and_waited, report_call
from ..folder_trust import ask_about_folder
from ..options import BadParameter, Exit, argument, option
from ..output import ExitCode, emit, emit_json, note, result_stream, say, typed, visible
from ..runtime import Ending, open_runtime, stdin_has_input, supervise

_MAX_CONTEXT_CHARS = 400_000


def ask(
    question: Annotated[str, argument("[QUESTION]", "What to do; - or none reads it from stdin.")] = "-",
    model: options.Model = None,
    goes_on: options.Continue = False,
    resume: options.Resume = None,
    toolset: options.Toolsets = None,
    disable: options.Disabled = None,
    timeout: options.Timeout = None,
    max_calls: Annotated[int | None, option("--max-calls N", "How many times the model may be called.", min=1)] = None,
    mode: options.Mode = "auto",
    yolo: options.Yolo = False,
    trust_folder: options.TrustFolder = False,
    as_json: options.Json = False,
    events: Annotated[bool, option("--events", "Print every event as it happens, one JSON object per line.")] = False,
    quiet: Annotated[bool, option("--quiet -q", "Only errors on stderr.")] = False,
) -> None:
    text = _text(question)
    if trust_folder:
        ask_about_folder(trust=True)
    app = open_runtime(yolo=yolo, asks=False)
    if (chosen := read_mode(mode)) is not Mode.AUTO:
        app.gate.modes.default = chosen
    budgets = budgets_of(app.config.model)
    with (
        result_stream() as stdout,
        open_agent(
            app,
            model=model,
            resume=LAST if goes_on else resume,
            toolsets=toolset,
            without=disable,
            budgets=budgets._replace(model_calls=max_calls or budgets.model_calls),
            platform="ask",
        ) as agent,
    ):
        reporter = Reporter(agent, stdout, events=events, quiet=quiet)

        def work(cancel: CancelToken) -> TurnEnded:
            cancel.on_cancel(lambda: agent.interrupt(cancel.reason))
            return agent.run(text, reporter.listen)

        done, ending = supervise(work, timeout=timeout)
        ended = done or TurnEnded(End.INTERRUPTED, "", Usage(), 0, "it did not stop in time, and was abandoned")
        reporter.answer(ended, as_json=as_json)
    if ending is Ending.TIMED_OUT or ended.end is End.TIME:
        raise Exit(ExitCode.TIMEOUT)
    if ending is Ending.INTERRUPTED:
        raise Exit(ExitCode.INTERRUPTED)
    if ended.end is not End.ANSWERED:
        raise Exit(ExitCode.FAILED)
    raise Exit(ExitCode.DENIED if reporter.denied else ExitCode.OK)


def _text(question: str) -> str:
    """The question, and what came on stdin."""
    material = ""
    if not sys.stdin.isatty():
        if not stdin_has_input():
            say("waiting for material on stdin; `< /dev/null` gives none")
        material = sys.stdin.read(_MAX_CONTEXT_CHARS + 1)
        if len(material) > _MAX_CONTEXT_CHARS:
            more = "put it into a file and name that in the question"
            raise BadParameter(f"stdin has more than {_MAX_CONTEXT_CHARS:,} characters; {more}")
    if question == "-":
        question, material = material, ""
    if not question.strip():
        raise BadParameter("give the question as an argument or on stdin")
    return f"{question}\n\n<material>\n{material}\n</material>" if material.strip() else question


_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Reporter:
    """Receives the events of one turn. `events` prints each as it happens; people see the calls on stderr unless `quiet`."""

    def __init__(self, agent: Agent, stdout: TextIO, *, events: bool, quiet: bool) -> None:
        self.agent, self._stdout = agent, stdout
        self._events, self._quiet = events, quiet
        self._began = time.monotonic()
        self._abouts: dict[str, str] = {}
        self.calls = self.denied = 0
        self.lost: int | None = None  # the exit code, when the events can no longer be written

    def listen(self, event: Event) -> None:
        if self._events and self.lost is None:
            session = {"session_id": self.agent.session_id} if isinstance(event, TurnEnded) else {}
            view = {"event": _WORDS.sub("_", type(event).__name__).lower(), **payload_of(event), **session}
            try:
                emit(json.dumps(view, ensure_ascii=False), self._stdout)
            except Exit as left:  # raised here, it would end the agent's other work with a traceback
                self.lost = left.exit_code
                self.agent.interrupt("nobody reads its events any more")
        if isinstance(event, ToolStarted):
            about = main_argument(self.agent.app.runtime.registry, event.tool, event.arguments)
            self._abouts[event.call_id] = f"{event.emoji} {event.tool} {about}"
        elif isinstance(event, ToolEnded):
            self.calls += 1
            self.denied += event.error_type == "denied"
            about = self._abouts.pop(event.call_id, event.tool).rstrip()
            line = f"{about} ({ran_and_waited(event.seconds, event.waited)})"
            if not self._quiet and self.lost is None:
                report_call(line, error_of(event.result) if event.result else None, is_good=not event.error_type)
        elif isinstance(event, Notice) and not self._quiet:
            note(event.text)

    def answer(self, ended: TurnEnded, *, as_json: bool) -> None:
        """Print the answer, unless the events have, and the session that it belongs to."""
        if self.lost is not None:
            raise Exit(self.lost)
        if as_json and not self._events:
            summary: JsonDict = {"answer": ended.answer, "end": ended.end.value, "reason": ended.reason}
            summary |= {"session_id": self.agent.session_id, "model": self.agent.models[0].name}
            summary |= {"calls": self.calls, "denied": self.denied, "model_calls": ended.model_calls}
            summary |= {"usage": ended.usage._asdict(), "seconds": round(time.monotonic() - self._began, 3)}
            emit_json(summary, self._stdout)
        elif not self._events and ended.answer and ended.end is End.ANSWERED:
            answer = ended.answer.rstrip("\n")
            emit(visible(answer) if self._stdout.isatty() else answer, self._stdout)
        if ended.end is not End.ANSWERED:
            say(ended.reason or f"stopped: {ended.end.value}")
        if not self._quiet:
            session = self.agent.session_id
            note(f"session {session}; continue with: {typed(f'ask --resume {session}')}")
