"""`handrail call`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from handrail import model_tools
from handrail.cli.commands.call import read_arguments
from handrail.errors import InvalidArguments
from handrail.testing import OpenGate
from tests.cli.conftest import Cli, run_here


def test_a_piped_result_is_the_json_that_the_model_would_get(cli: Cli) -> None:
    cli.file("a.txt", "one\ntwo\n")
    ran = cli("call", "read_file", "path=a.txt")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["content"] == "one\ntwo\n"


def test_values_are_fitted_to_the_schema(cli: Cli) -> None:
    cli.file("a.txt", "one\ntwo\nthree\n")
    ran = cli("call", "read_file", "path=a.txt", "offset=2", "limit:=1")
    assert ran.json["content"].strip() == "two"


def test_an_argument_can_be_the_text_or_the_json_of_a_file(cli: Cli) -> None:
    cli.file("draft.txt", "a = b\n")
    cli.file("flag.json", "true")
    ran = cli("call", "write_file", "path=out.txt", "content=@draft.txt")
    assert ran.code == 0
    assert (cli.cwd / "out.txt").read_text() == "a = b\n"
    ran = cli("call", "patch", "path=out.txt", "old_string=a", "new_string=b", "replace_all:=@flag.json")
    assert (cli.cwd / "out.txt").read_text() == "b = b\n"


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_arguments_can_be_a_json_object_on_stdin(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.file("a.txt", "one\n")
    ran = cli("call", "read_file", *arguments, stdin='{"path": "a.txt"}')
    assert ran.json["content"] == "one\n"


def test_an_empty_stdin_means_no_arguments(cli: Cli) -> None:
    ran = cli("call", "read_file")
    assert ran.code == 2
    assert "missing argument 'path'" in ran.json["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["path"], "'path' is not an argument; write key=value"),
        (["path=a", "path=b"], "path is given twice"),
        (["limit:=many"], "limit:= needs JSON"),
        (["content=@/proc/nowhere.txt"], "cannot read /proc/nowhere.txt: No such file"),
    ],
)
def test_what_is_no_argument_says_what_to_write(arguments: list[str], message: str) -> None:
    with pytest.raises(InvalidArguments, match=re.escape(message)):
        read_arguments(arguments)


def test_a_command_line_that_is_no_call_is_a_usage_error_in_one_line(cli: Cli) -> None:
    ran = cli("call", "read_file", "README.md")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "handrail: 'README.md' is not an argument; write key=value, key:=json or key=@file\n"


@pytest.mark.parametrize(
    ("call", "code", "error_type"),
    [
        (("read_file", "path=nowhere"), 1, "not_found"),
        (("read_file", "path=a", "limit=many"), 2, "invalid_arguments"),
        (("serch_files", "pattern=a"), 2, "unknown_tool"),
        (("todo",), 1, "needs_agent"),
        (("denies",), 3, "denied"),
        (("locked",), 1, "unavailable"),
        (("stubborn", "--timeout", "0.2"), 124, "timeout"),
    ],
)
def test_the_exit_code_says_what_kind_of_error_it_was(
    with_tools: Cli, call: tuple[str, ...], code: int, error_type: str
) -> None:
    ran = with_tools("call", *call)
    assert (ran.code, ran.json["error_type"]) == (code, error_type)


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_a_time_limit_is_a_time_to_wait(seconds: str) -> None:
    assert run_here("call", "read_file", "path=a", "--timeout", seconds).code == 2


def test_raw_prints_only_the_text_as_it_is(cli: Cli) -> None:
    cli.file("a.txt", "one\ntwo")
    assert cli("call", "read_file", "path=a.txt", "--raw").out == "one\ntwo"


def test_raw_keeps_an_error_out_of_stdout(cli: Cli) -> None:
    ran = cli("call", "read_file", "path=nowhere", "--raw")
    assert (ran.code, ran.out) == (1, "")
    assert "nowhere" in ran.err


def test_what_a_tool_prints_does_not_touch_the_result(with_tools: Cli) -> None:
    ran = with_tools("call", "prints")
    assert (ran.code, ran.json) == (0, {"said": "done"})
    for text in ("from print", "from the descriptor", "from a child"):
        assert text in ran.err


def test_a_call_that_was_left_behind_cannot_print_into_the_result(with_tools: Cli) -> None:
    ran = with_tools("call", "prints_late", "--timeout", "0.2")
    assert (ran.code, ran.json["error_type"]) == (124, "timeout")


@pytest.mark.parametrize("tool", ["exits", "exits_async"])
def test_a_tool_that_leaves_the_program_is_an_error(with_tools: Cli, tool: str) -> None:
    ran = with_tools("call", tool)
    assert ran.code == 1
    assert "sys.exit(0)" in ran.json["error"]


def test_progress_goes_to_stderr_and_a_time_limit_cancels_the_call(with_tools: Cli) -> None:
    ran = with_tools("call", "waits", "--timeout", "0.3")
    assert ran.err == "waits:  50% is waiting\n"
    assert (ran.code, ran.json["error_type"]) == (124, "timeout")
    assert with_tools.witness.read_text() == "timed out after 0.3 s"


@pytest.mark.parametrize("tool", ["waits", "stubborn"])
def test_ctrl_c_cancels_the_call_and_still_gives_a_result(with_tools: Cli, tool: str) -> None:
    with with_tools.start("call", tool, "-") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        assert b"is waiting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out = process.stdout.read() if process.stdout else b""
        err = process.stderr.read()
    assert process.returncode == 130
    assert json.loads(out)["error_type"] == "cancelled"
    assert err == b""


def test_what_a_command_printed_until_then_is_in_the_result(cli: Cli) -> None:
    with cli.start("call", "terminal", "command=echo begun; sleep 4750") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == b"terminal: begun\n"
        process.send_signal(signal.SIGINT)
        answer = json.loads(process.stdout.read())
        process.stderr.read()
    assert (process.returncode, answer["error_type"]) == (130, "cancelled")
    assert answer["partial"]["exit_code"] == 130
    # A second line, in which bash says how the sleep ended, is there only if bash came to it before it was killed.
    assert answer["partial"]["output"].splitlines()[0] == "begun"


def test_a_multimodal_result_is_printed_whole(with_tools: Cli) -> None:
    assert with_tools("call", "pictures").json["content"][0]["text"] == "a cat"


def test_an_invalid_configuration_is_told_in_one_line(cli: Cli) -> None:
    path = cli.configure("files:\n  rots: [/tmp]\n")
    ran = cli("call", "read_file", "path=a.txt")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"handrail: {path}:2: files.rots: ")
    assert ran.err.count("\n") == 1


def test_on_a_terminal_a_result_is_shown_for_reading(cli: Cli) -> None:
    cli.file("a.txt", "one\ntwo\n")
    with cli.terminal("call", "read_file", "path=a.txt", NO_COLOR="1") as terminal:
        assert terminal.end() == 0
    assert terminal.shown.startswith("one\ntwo\npath: ")
    assert "total_lines: 2" in terminal.shown


def test_on_a_terminal_json_can_be_asked_for(cli: Cli) -> None:
    cli.file("a.txt", "one\n")
    with cli.terminal("call", "read_file", "path=a.txt", "--json") as terminal:
        assert terminal.end() == 0
    assert json.loads(terminal.shown)["content"] == "one\n"


def test_a_result_cannot_command_the_terminal(with_tools: Cli) -> None:
    with with_tools.terminal("call", "colourful", NO_COLOR="1") as terminal:
        terminal.end()
    assert "\\x1b[31mred\\x1b[0m and \\u202ereversed" in terminal.shown


def test_an_error_is_shown_with_its_type(cli: Cli) -> None:
    with cli.terminal("call", "serch_files", "pattern=a") as terminal:
        assert terminal.end() == 2
    assert "\x1b[31m✗ unknown_tool: Unknown tool: serch_files; did you mean search_files?" in terminal.shown


def test_a_command_passes_the_gate_here_too(cli: Cli) -> None:
    (cli.cwd / "kept").mkdir()
    ran = cli("call", "terminal", "command=rm -rf kept")
    assert ran.code == 3
    assert ran.json["error_type"] == "denied"
    assert (cli.cwd / "kept").exists()
    assert cli("call", "terminal", "command=touch made").code == 0
    assert (cli.cwd / "made").exists()


def test_what_a_command_printed_is_shown_also_when_it_failed() -> None:
    model_tools.default().runtime.gate = OpenGate()
    ran = run_here("call", "terminal", "command=echo out; exit 3", "--raw")
    assert (ran.code, ran.out) == (1, "out\n")
    assert "failed with exit code 3" in ran.err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_what_a_call_runs_cannot_read_the_keys_of_the_process_that_made_it(home: Path) -> None:
    look = "command=grep -ls sk-of-the-tests-0123456789 /proc/[0-9]*/environ; echo looked"
    # Root may read everything, unless it gave that up.
    as_others = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    run = subprocess.run(
        [*as_others, sys.executable, "-m", "handrail", "call", "terminal", look, "--yolo", "--raw"],
        env={**os.environ, "OPENAI_API_KEY": "sk-of-the-tests-0123456789"},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, "looked\n"), run.stderr


def test_marks_that_turn_text_round_are_shown(cli: Cli) -> None:
    """In a pipe as JSON says them, on a terminal as text, also with --raw."""
    marks = "a\u202eb\u2066c\u061cd"
    (cli.cwd / "turned.txt").write_text(marks)
    piped = cli("call", "read_file", "path=turned.txt").out
    assert not set(piped) & set("\u202e\u2066\u061c")
    assert marks in json.loads(piped)["content"]
    for options in ([], ["--raw"], ["--json"]):
        with cli.terminal("call", "read_file", "path=turned.txt", *options) as terminal:
            terminal.end()
        assert not set(terminal.shown) & set("\u202e\u2066\u061c")
        assert "\\u202e" in terminal.shown
