"""Run one tool, as a model would.

\b
key=value   text, or what the tool takes: 42, true, a list
key:=json   JSON as it is: limit:=5  choices:='["red"]'
key=@file   the text of a file (key:=@file: its JSON)
-           a JSON object from stdin, also from a pipe

On a terminal the result is shown for reading; in a pipe, or with --json, it is the JSON that the model would get.
Ctrl-C cancels the call.

Examples:
  handrail call read_file path=README.md limit=20
  handrail call write_file path=notes.txt content=@draft.txt
  echo '{"pattern": "TODO"}' | handrail call search_files
  handrail call read_file path=main.py --raw | wc -l
  handrail call terminal command='make test' timeout=300

Exit codes: 0 ok, 1 failed, 2 wrong arguments or no such tool, 3 denied, 124 timed out, 130 interrupted.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable
from typing import Annotated, Any, TextIO

from ...core.outcome import Outcome, error_of, error_outcome, parsed, to_json
from ...errors import CallCancelled, CallTimeout, InvalidArguments, ToolFailed
from ...types import CancelToken, JsonDict
from ..call_text import MAIN_FIELDS, main_text, row_text
from ..options import Exit, Json, Session, Task, Timeout, Tool, Yolo, argument, argument_names, option, text_of
from ..output import colours, direction_escaped, emit, exit_code_of, fitted, paint, result_stream, say, visible
from ..runtime import Ending, open_runtime, show_progress, stdin_has_input, supervise

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_SHORT_CHARS = 60
_GIVEN = "key=value, key:=json, key=@file; or - for JSON from stdin."
Arguments = Annotated[list[str] | None, argument("KEY=VALUE", _GIVEN, autocompletion=argument_names)]


def call(
    tool: Tool,
    arguments: Arguments = None,
    task: Task = None,
    session: Session = None,
    timeout: Timeout = None,
    yolo: Yolo = False,
    raw: Annotated[bool, option("--raw", "Print only the result's text (content or output).")] = False,
    as_json: Json = False,
) -> None:
    given = read_arguments(arguments or [])
    with result_stream() as stdout:
        app = open_runtime(yolo=yolo)
        app.warn_untrusted()

        def work(cancel: CancelToken) -> Outcome:
            return app.runtime.handle(tool, given, task, None, session, cancel=cancel, on_progress=show_progress)

        outcome = _outcome(tool, work, timeout)
        _show(outcome, stdout, raw=raw, as_json=as_json)
    raise Exit(exit_code_of(outcome))


def _outcome(tool: str, work: Callable[[CancelToken], Outcome], timeout: float | None) -> Outcome:
    """The outcome of the call, however it ends."""
    try:
        value, ending = supervise(work, timeout=timeout)
    except SystemExit as error:
        return error_outcome(ToolFailed(f"{tool} called sys.exit({error.code!r}) instead of returning a result"))
    if value is not None:  # with what a tool that was stopped had by then
        return value
    timed_out = CallTimeout(f"{tool} timed out after {timeout:g} s") if ending is Ending.TIMED_OUT else None
    return error_outcome(timed_out or CallCancelled(f"{tool} was interrupted by Ctrl-C"))


def _show(outcome: Outcome, stdout: TextIO, *, raw: bool, as_json: bool) -> None:
    failure = error_of(outcome)
    text = main_text(outcome) if raw else None
    if raw and failure is not None:
        say(str(failure["error"]))
        if text is None:
            return
    if text is not None:
        shown = visible(text) if stdout.isatty() else text
        emit(shown, stdout, end="\n" if stdout.isatty() and not text.endswith("\n") else "")
    elif stdout.isatty() and not as_json and not raw:
        emit(_pretty(outcome, colour=colours(stdout), width=shutil.get_terminal_size().columns), stdout)
    else:
        whole = outcome if isinstance(outcome, str) else to_json(outcome)
        if parsed(outcome) is not None:  # the same JSON, whatever shows it next
            whole = direction_escaped(whole)
        emit(visible(whole) if stdout.isatty() else whole, stdout)


def _pretty(outcome: Outcome, *, colour: bool, width: int) -> str:
    """The result for a terminal: what it is about first, the small facts below."""
    result = parsed(outcome)
    if isinstance(result, dict) and result.get("_multimodal"):
        return "\n".join(map(_part, result["content"]))
    if not isinstance(result, dict):
        return visible(str(outcome) if result is None else _json(result))
    lines, hidden = [], set()
    if error_of(outcome) is not None:
        kind = f"{result['error_type']}: " if result.get("error_type") else ""
        lines.append(paint(fitted(visible(f"✗ {kind}{result['error']}")), "red", on=colour))
        hidden = {"error", "error_type", "problems"}  # the message holds them
    facts: list[str] = []
    for name, value in result.items():
        if name in hidden:
            continue
        is_long = isinstance(value, list | dict) and len(_json(value)) > _SHORT_CHARS
        if is_long or (isinstance(value, str) and (name in MAIN_FIELDS or "\n" in value)):
            lines += _block(name, value, colour=colour)
        else:
            facts.append(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "\n".join([*lines, *(paint(line, "dim", on=colour) for line in _side_by_side(facts, width))])


def _side_by_side(facts: list[str], width: int) -> list[str]:
    """As many on a line as fit; none is broken."""
    lines: list[str] = []
    for fact in map(visible, facts):
        if lines and len(lines[-1]) + len(fact) + 3 <= width:
            lines[-1] += f" · {fact}"
        else:
            lines.append(fact)
    return lines


def _block(name: str, value: Any, *, colour: bool) -> list[str]:
    if isinstance(value, str):
        text = visible(value).rstrip("\n")
        lines = text.split("\n")
        styles = [_DIFF_STYLES.get(line[:1]) if name == "diff" else None for line in lines]
        return [paint(line, style, on=colour) if style else line for line, style in zip(lines, styles, strict=True)]
    cells = [cell for item in value for cell in (item.values() if isinstance(item, dict) else (item,))]
    is_flat = not any(isinstance(cell, dict | list) for cell in cells)
    if isinstance(value, list) and is_flat:
        return [visible(row_text(item)) for item in value]
    return [paint(f"{name}:", "dim", on=colour), *visible(_json(value)).split("\n")]


def _part(part: JsonDict) -> str:
    if isinstance(part.get("text"), str):
        return visible(part["text"])
    kind = part.get("type", "part")
    return f"[{kind}, {len(json.dumps(part)):,} characters; --json prints it]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_ITEM = re.compile(r"(?P<key>[^\s=:@]+)(?P<sign>:?=)(?P<value>.*)", re.DOTALL)


def read_arguments(items: list[str]) -> Any:
    """`key=value`, `key:=json`, `key=@file` and `key:=@file` as a dict; `-`, or nothing but a pipe, as the text of stdin.

    Values stay text where they are text: the runtime fits them to the tool's schema. Raises InvalidArguments.
    """
    if items == ["-"] or (not items and not sys.stdin.isatty()):
        if not stdin_has_input():
            say("reading the arguments as a JSON object from stdin; give key=value, or </dev/null for none")
        # As it is: the runtime parses and repairs what a model would send, and says what is wrong with it.
        return text_of("-").strip() or "{}"
    arguments: dict[str, Any] = {}
    for item in items:
        if (match := _ITEM.fullmatch(item)) is None:
            raise InvalidArguments(f"{item!r} is not an argument; write key=value, key:=json or key=@file")
        key, sign, value = match["key"], match["sign"], match["value"]
        if value.startswith("@"):
            value = text_of(value[1:])
        try:
            value = json.loads(value) if sign == ":=" else value
        except ValueError as error:
            how = f"for plain text write {key}=..."
            raise InvalidArguments(f"{key}:= needs JSON, and this is not: {error}; {how}") from None
        if key in arguments:
            raise InvalidArguments(f"{key} is given twice; for a list write {key}:='[1, 2]'")
        arguments[key] = value
    return arguments
