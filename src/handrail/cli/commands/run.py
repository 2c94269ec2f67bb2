"""Run the tool calls of a model's message.

They run together where that is safe; the tool messages are printed.

FILE holds a message with tool_calls (OpenAI or Anthropic), a provider's whole response, a list of calls or of
messages, or one of these on each line (JSONL). The calls of one message, and bare calls that follow each other, run
as one batch; batches run one after the other and share one todo list.

Examples:
  handrail run message.json
  handrail run - < calls.jsonl > tool-messages.jsonl
  echo '{"name": "read_file", "arguments": {"path": "a.md"}}' | handrail run -

The tool messages go to stdout in the order of the calls, progress to stderr. The exit code is the highest of the
calls' own: 0 ok, 1 failed, 2 wrong arguments or no such tool, 3 denied, 124 timed out, 130 interrupted.
"""

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

from ...agent.memory import Todos
from ...core.outcome import error_of, error_outcome
from ...core.registry import ToolRegistry
from ...errors import CallCancelled, CallTimeout, InvalidArguments, ToolError
from ...model_tools import run_tool_calls
from ...plugins.hook_specs import hookimpl
from ...runtime.provider_formats import read_call, read_calls, tool_message
from ...types import CancelToken, JsonDict
from ..call_text import duration, main_argument, report_call
from ..options import Exit, Session, Task, Timeout, Yolo, argument, option, text_of
from ..output import ExitCode, emit, emit_json, exit_code_of, result_stream
from ..runtime import GRACE_SECONDS, Ending, open_runtime, show_progress, supervise


def run(
    file: Annotated[str, argument("FILE", "A JSON or JSONL file; - for stdin.")],
    task: Task = None,
    session: Session = None,
    timeout: Timeout = None,
    yolo: Yolo = False,
    jsonl: Annotated[bool, option("--jsonl", "One JSON value per line, in and out.")] = False,
) -> None:
    batches, by_line = read_batches(file, by_line=jsonl)
    answers: list[list[JsonDict]] = []
    with result_stream() as stdout:

        def answer(messages: list[JsonDict]) -> None:
            """Lines are written as soon as their batch is done."""
            answers.append(messages)
            for message in messages if by_line else ():
                emit(json.dumps(message, ensure_ascii=False), stdout)

        def work(cancel: CancelToken) -> None:
            deadline = None if timeout is None else time.monotonic() + timeout
            agent = SimpleNamespace(todos=Todos())  # what agent-level tools find: nobody's but this run's own
            for batch in batches:
                left = None if deadline is None else max(0.001, deadline - time.monotonic())
                how = {"timeout": left, "cancel": cancel, "agent": agent, "on_progress": show_progress}
                answer(run_tool_calls(batch, task, session_id=session, **how))

        app = open_runtime(yolo=yolo)
        app.warn_untrusted()
        app.hooks.register(Watch(app.registry))
        limit = None if timeout is None else timeout + GRACE_SECONDS  # the batches end themselves before
        _, ending = supervise(work, timeout=limit)
        late = CallTimeout("timed out") if ending is Ending.TIMED_OUT else CallCancelled("interrupted by Ctrl-C")
        for batch in batches[len(answers) :]:  # a tool held up everything, and was left behind
            answer([_unanswered(raw, late) for raw in batch])
        messages = [message for each in answers for message in each]
        if not by_line:
            emit_json(messages, stdout)
    texts = [message["content"] for message in messages if isinstance(message["content"], str)]
    raise Exit(max(map(exit_code_of, texts), default=ExitCode.OK))


def _unanswered(raw: Any, error: ToolError) -> JsonDict:
    try:
        call = read_call(raw)
    except InvalidArguments as unreadable:
        return tool_message("", "", error_outcome(unreadable))
    return tool_message(call.id, call.name, error_outcome(error))


class Watch(NamedTuple):
    """A line for each call that ends."""

    registry: ToolRegistry

    @hookimpl(inline=True)
    def post_tool_call(self, tool_name: str, args: JsonDict, result: object, duration_ms: float) -> None:
        failure, about = error_of(result) if isinstance(result, str) else None, [self.registry.get_emoji(tool_name)]
        about += [tool_name, main_argument(self.registry, tool_name, args), f"({duration(duration_ms)})"]
        report_call(" ".join(filter(None, about)), failure, is_good=not failure)


class BatchInput(NamedTuple):
    """The calls, grouped as they may run: one group is one message's, or bare calls that follow each other."""

    batches: list[list[Any]]
    by_line: bool


def read_batches(name: str, *, by_line: bool = False) -> BatchInput:
    """Read a file, or stdin for `-`. Everything is read before anything runs. Raises InvalidArguments."""
    text = text_of(name)
    by_line = by_line or name.endswith((".jsonl", ".ndjson"))
    if not by_line:
        try:
            whole = json.loads(text)
        except ValueError as error:
            first = error
        else:
            return BatchInput(_grouped([("", whole)]), by_line=False)
    values = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append((f"line {number}: ", json.loads(line)))
        except ValueError as error:
            # A file whose first line is not JSON was never meant to be JSON lines.
            what = f"line {number} is not JSON: {error}" if by_line or values else f"this is not JSON: {first}"
            raise InvalidArguments(f"{name}: {what}") from None
    return BatchInput(_grouped(values), by_line=True)


def _grouped(values: list[tuple[str, Any]]) -> list[list[Any]]:
    batches: list[list[Any]] = []
    in_row = False
    for place, value in values:
        for item in _items(value):
            is_call = isinstance(item, dict) and "role" not in item and ("function" in item or "name" in item)
            if is_call and in_row:
                batches[-1].append(item)
            elif is_call:
                batches.append([item])
            elif calls := _calls_of(place, item):
                batches.append(calls)
            in_row = is_call
    if not batches:
        how = "give a message with tool_calls, a list of calls, or one call per line"
        raise InvalidArguments(f"there are no tool calls in this; {how}")
    return batches


def _items(value: Any) -> Iterator[Any]:
    """The messages and calls in a value: also in a provider's whole response."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    elif isinstance(value, dict) and isinstance(value.get("choices"), list):
        yield from (choice.get("message") for choice in value["choices"][:1] if isinstance(choice, dict))
    elif isinstance(value, dict) and isinstance(value.get("output"), list):
        yield from (item for item in value["output"] if isinstance(item, dict) and item.get("type") == "function_call")
    else:
        yield value


def _calls_of(place: str, item: Any) -> list[Any]:
    """The calls of a message. A message without calls has none; anything else is an error."""
    try:
        return read_calls(item)
    except InvalidArguments:
        if isinstance(item, dict) and ("role" in item or "content" in item):
            return []
        whole = json.dumps(item, ensure_ascii=False)
        shown = whole if len(whole) < 80 else f"{whole[:79]}…"
        raise InvalidArguments(f"{place}this is neither a message nor a tool call: {shown}") from None
