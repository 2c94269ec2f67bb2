"""Have an agent do one thing, and print its answer.

The answer goes to stdout, what it does meanwhile to stderr. With a question, what comes on stdin is given to the
agent as material. Nobody is asked anything: what would need a yes is denied, unless config.yaml allows it
(`approvals.allow`, an earlier "always"), or --yolo. With `approvals.headless: queue` it waits for `handrail
approvals answer` instead.

\b
Examples:
  handrail ask "which tests cover billing?"
  git diff | handrail ask "write a commit message for this"
  handrail ask --continue "and now fix it"
  handrail ask --json "how many TODOs are there?" | jq -r .answer
  handrail ask --events "run the tests" | jq -r 'select(.event == "tool_ended") | .tool'

Exit codes: 0 answered, 1 failed or a budget is used up, 2 wrong usage, 3 answered, but a call was denied, 124
time is over, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ...agent.events import TurnEnded
    from ..ask_report import Reporter
    from ..call_supervision import Ending

_MAX_CONTEXT_CHARS = 400_000
_PATIENCE_SECONDS = 2.0


cli = options.new_cli()


@cli.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="[QUESTION]", help="What to do; - or none: stdin says it.")] = "-",
    model: options.Model = None,
    goes_on: options.Continue = False,
    resume: options.Resume = None,
    toolset: options.Toolsets = None,
    disable: options.Disabled = None,
    timeout: options.Timeout = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", metavar="N", min=1, help="How often the model may be asked.")
    ] = None,
    yolo: options.Yolo = False,
    as_json: options.Json = False,
    events: Annotated[bool, typer.Option("--events", help="Print every event as it happens, a JSON object a line.")] = (
        False
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False,
) -> None:
    from ...agent.agent_factory import LAST, budgets_of, open_agent
    from ..ask_report import Reporter
    from ..open_runtime import open_runtime
    from ..output import result_stream

    text = _text(question)
    here = open_runtime(yolo=yolo, asks=False)
    budgets = budgets_of(here.config.model)
    with (
        result_stream() as stdout,
        open_agent(
            here,
            model=model,
            resume=LAST if goes_on else resume,
            toolsets=toolset,
            without=disable,
            budgets=budgets._replace(model_calls=max_calls or budgets.model_calls),
            platform="ask",
        ) as agent,
    ):
        reporter = Reporter(agent, stdout, events=events, quiet=quiet)
        ended, ending = _turn(reporter, text, timeout)
        reporter.answer(ended, as_json=as_json)
    raise typer.Exit(_code(ended, ending, reporter))


def _turn(reporter: Reporter, text: str, timeout: float | None) -> tuple[TurnEnded, Ending]:
    """How the turn ended, and what ended the wait for it."""
    from ...agent.events import End, TurnEnded, Usage
    from ...types import CancelToken
    from ..call_supervision import supervise

    agent = reporter.agent

    def work(cancel: CancelToken) -> TurnEnded:
        cancel.on_cancel(lambda: agent.interrupt(cancel.reason))
        return agent.run(text, reporter.listen)

    ended, ending = supervise(work, timeout=timeout)
    return ended or TurnEnded(End.INTERRUPTED, "", Usage(), 0, "it did not stop in time, and was left"), ending


def _code(ended: TurnEnded, ending: Ending, reporter: Reporter) -> exit_codes.ExitCode:
    from ...agent.events import End
    from ..call_supervision import Ending

    if ending is Ending.TIMED_OUT or ended.end is End.TIME:
        return exit_codes.ExitCode.TIMEOUT
    if ending is Ending.INTERRUPTED:
        return exit_codes.ExitCode.INTERRUPTED
    if ended.end is not End.ANSWERED:
        return exit_codes.ExitCode.FAILED
    return exit_codes.ExitCode.DENIED if reporter.denied else exit_codes.ExitCode.OK


def _text(question: str) -> str:
    """The question, and what came on stdin."""
    material = "" if sys.stdin.isatty() else _material()
    if question == "-":
        question, material = material, ""
    if not question.strip():
        raise typer.BadParameter("say what is to be done, as an argument or on stdin")
    return f"{question}\n\n<material>\n{material}\n</material>" if material.strip() else question


def _material() -> str:
    import select

    from ..output import say

    with contextlib.suppress(OSError, ValueError):  # no descriptor: nobody has to be waited for
        if not select.select([sys.stdin], [], [], _PATIENCE_SECONDS)[0]:
            say("waiting for material on stdin; `< /dev/null` gives none")
    material = sys.stdin.read(_MAX_CONTEXT_CHARS + 1)
    if len(material) > _MAX_CONTEXT_CHARS:
        raise typer.BadParameter(
            f"stdin has more than {_MAX_CONTEXT_CHARS:,} characters; put it into a file and name that in the question"
        )
    return material
