"""How a call looks: while it runs with its last lines, and afterwards with what it changed or why it failed."""

import re
import time
from collections import deque
from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ...agent.events import ToolEnded, ToolProgress, ToolStarted
from ...core.outcome import error_of, parsed
from ...core.registry import ToolRegistry
from ...types import JsonDict
from ..call_text import TODO_MARKS, UNDONE, main_argument, ran_and_waited, row_text, shortened
from ..output import visible
from .diffs import diff_rows

_NEWS_LINES = 3
_HINT_SECONDS = 2.0
_OUTPUT_LINES = 6
_DIFF_LINES = 40
_NEW_FILE_LINES = 10
_REASON_CHARS = 300
_DELEGATES = "delegate_task"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Call:
    """One call, from when it was asked for until it has ended."""

    def __init__(self, started: ToolStarted, registry: ToolRegistry, *, width: int, theme: str = "ansi_dark") -> None:
        self.since, self._width, self._theme = time.monotonic(), width, theme
        room = max(20, width - len(started.tool) - 24)
        about = main_argument(registry, started.tool, started.arguments, max_chars=room)
        self._name = Text.assemble(f"{started.emoji} ", (visible(started.tool), "bold"), f" {about}" if about else "")
        self._tool, self._arguments = started.tool, started.arguments
        self._output: deque[str] = deque(maxlen=_OUTPUT_LINES)
        self._share: float | None = None

    def update(self, progress: ToolProgress) -> None:
        self._share = progress.fraction
        if progress.message:
            self._output.append(visible(progress.message))

    def running(self, now: float) -> Iterator[Text]:
        """The lines that are shown below meanwhile."""
        share = f" · {self._share:.0%}" if self._share is not None else ""
        stops = " · Esc stops it" if now - self.since > _HINT_SECONDS else ""
        times, name = f" · {seconds(now - self.since)}{share}{stops}", self._name.copy()
        name.truncate(max(20, self._width - len(times) - 4), overflow="ellipsis")
        yield Text.assemble((f"{spin(now)} ", "cyan"), name, (times, "dim"))
        for line in list(self._output)[-_NEWS_LINES:]:
            yield Text(f"    {line}", "dim")
        if self._tool == _DELEGATES:
            yield Text("    Ctrl-O shows what a child agent does", "dim italic")

    def ended(self, event: ToolEnded) -> Iterator[RenderableType]:
        """What stays: one line, and below it what you would look for."""
        mark = ("✗ ", "red") if event.error_type else ("✓ ", "green")
        times = ran_and_waited(event.seconds, event.waited)
        if event.error_type == "denied":  # it never ran
            times = times.rpartition(", ")[2]
        self._name.truncate(max(20, self._width - len(times) - 5), overflow="ellipsis")
        yield Text.assemble(mark, self._name, (f" ({times})", "dim"))
        failure = error_of(event.result) if event.result else None
        result = parsed(event.result) if event.result else None
        had = result.get("partial", result) if isinstance(result, dict) else None
        shown = list(_details(had, self._arguments, self._theme)) if isinstance(had, dict) else []
        details: list[RenderableType] = []
        if event.error_type in ("cancelled", "timeout") and (shown or self._output):
            ended = "Timed out" if event.error_type == "timeout" else "Stopped"
            details.append(Text(f"{ended}; output so far:", "yellow"))
            shown = shown or [Text(line, "dim") for line in self._output]
        elif event.error_type == "cancelled" and failure is not None:
            details = [Text("Interrupted", "yellow")]
        elif failure is not None:
            # What follows the first sentence is advice for the model.
            reason = " ".join(str(failure["error"]).split()).partition(". ")[0]
            reason = re.sub(r"\ANot run: d(?=enied by)", "D", reason).replace("enied by the user", "enied by you")
            details.append(Text(visible(shortened(reason, _REASON_CHARS)), "red"))
        edit = result.get("edited") if isinstance(result, dict) else None
        if isinstance(edit, dict) and "edited_by" in edit:
            details += [Text(f"Changed to: {visible(str(value))}", "yellow") for value in list(edit.values())[1:]]
        yield from (Padding(line, (0, 0, 0, 4)) for line in [*details, *shown])


def spin(now: float) -> str:
    return SPINNER[int(now * 10) % len(SPINNER)]


def seconds(elapsed: float) -> str:
    return f"{elapsed:.0f} s" if elapsed < 60 else f"{elapsed // 60:.0f}:{elapsed % 60:02.0f} min"


def _details(result: JsonDict, arguments: JsonDict, theme: str) -> Iterator[RenderableType]:
    """What a result shows of itself depends on what it holds, not on whose it is."""
    if isinstance(result.get("diff"), str):
        yield from diff_rows(result["diff"], str(arguments.get("path") or ""), _DIFF_LINES, theme=theme)
    elif result.get("created") is True and isinstance(arguments.get("content"), str):
        added = "".join(f"+{line}\n" for line in arguments["content"].splitlines())
        yield from diff_rows(added, str(arguments.get("path") or ""), _NEW_FILE_LINES, theme=theme)
    elif isinstance(result.get("output"), str):
        yield from _last_lines(result["output"])
    elif result.keys() == {"content"}:  # all that there is, as of most tools of MCP servers
        yield from _last_lines(str(result["content"]))
    elif isinstance(result.get("matches"), list):
        yield from _last_lines("\n".join(map(row_text, result["matches"])))
    elif isinstance(result.get("todos"), list):
        for todo in [item for item in result["todos"] if isinstance(item, dict)]:
            mark = TODO_MARKS.get(str(todo.get("status")), "☐")
            yield Text(f"{mark} {visible(str(todo.get('content', '')))}", "dim")
    elif "undone" in result or "redone" in result:
        for key, done in UNDONE.items():
            yield from (Text(f"{done}: {visible(path)}", "dim") for path in result.get(key) or ())
    elif isinstance(result.get("results"), list):
        for child in [item for item in result["results"] if isinstance(item, dict) and "summary" in item]:
            summary = shortened(" ".join(str(child["summary"]).split()), _REASON_CHARS)
            yield Text(f"{child.get('status', '')}: {visible(summary)}", "dim")


def _last_lines(output: str) -> Iterator[Text]:
    lines = [line for line in visible(output).splitlines() if line.strip()]
    if len(lines) > _OUTPUT_LINES:
        above = len(lines) - _OUTPUT_LINES + 1
        yield Text(f"… {above} lines above", "dim")
        lines = lines[above:]
    for line in lines:
        yield Text(line, "dim", no_wrap=True, overflow="ellipsis")
