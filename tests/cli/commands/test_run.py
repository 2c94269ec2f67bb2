"""`handrail run`."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from handrail.testing import call
from tests.cli.conftest import Cli, Ran


def read(path: str, call_id: str) -> dict[str, Any]:
    return call("read_file", call_id, path=path)


def contents(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(message["content"]) for message in ran.json]


@pytest.fixture
def files(cli: Cli) -> Cli:
    cli.file("a.txt", "one\n")
    cli.file("b.txt", "two\n")
    return cli


def test_a_message_gives_its_tool_messages_in_order(files: Cli) -> None:
    message = {"role": "assistant", "tool_calls": [read("a.txt", "1"), read("b.txt", "2")]}
    files.file("message.json", json.dumps(message))
    ran = files("run", "message.json")
    assert ran.code == 0
    assert [(m["role"], m["tool_call_id"], m["name"]) for m in ran.json] == [
        ("tool", "1", "read_file"),
        ("tool", "2", "read_file"),
    ]
    assert [result["content"] for result in contents(ran)] == ["one\n", "two\n"]


def test_progress_is_a_line_on_stderr_for_each_call(files: Cli) -> None:
    message = {"role": "assistant", "tool_calls": [read("a.txt", "1"), read("nowhere.txt", "2")]}
    ran = files("run", "-", stdin=json.dumps(message))
    lines = sorted(ran.err.splitlines())
    assert len(lines) == 2
    assert lines[0].startswith("✓ 📖 read_file a.txt (")
    assert "nowhere.txt" in lines[1]


def test_json_lines_give_json_lines(files: Cli) -> None:
    lines = [read("a.txt", "1"), {"role": "user", "content": "and?"}, {"tool_calls": [read("b.txt", "2")]}]
    ran = files("run", "-", stdin="\n".join(map(json.dumps, lines)))
    assert [json.loads(line)["tool_call_id"] for line in ran.out.splitlines()] == ["1", "2"]


def test_one_line_can_be_said_to_be_json_lines(files: Cli) -> None:
    files.file("one.jsonl", json.dumps(read("a.txt", "1")))
    by_name = files("run", "one.jsonl")
    by_option = files("run", "-", "--jsonl", stdin=json.dumps(read("a.txt", "1")))
    assert by_name.out == by_option.out
    assert by_name.json["tool_call_id"] == "1"


def test_the_exit_code_is_the_highest_of_the_calls(with_tools: Cli) -> None:
    with_tools.file("a.txt", "one\n")
    calls = [read("a.txt", "1"), call("denies", "2"), call("nonsense", "3"), read("nowhere", "4")]
    ran = with_tools("run", "-", stdin=json.dumps(calls))
    assert ran.code == 3
    assert [result.get("error_type") for result in contents(ran)] == [None, "denied", "unknown_tool", "not_found"]


def test_one_run_has_one_todo_list(cli: Cli) -> None:
    lines = [{"tool_calls": [call("todo", todos=[{"id": "1", "content": "write"}])]}, {"tool_calls": [call("todo")]}]
    ran = cli("run", "-", stdin="\n".join(map(json.dumps, lines)))
    assert json.loads(json.loads(ran.out.splitlines()[1])["content"])["todos"][0]["content"] == "write"


def test_what_tools_print_does_not_touch_the_messages(with_tools: Cli) -> None:
    ran = with_tools("run", "-", stdin=json.dumps([call("prints", "1"), call("exits", "2"), call("exits_async", "3")]))
    assert ran.code == 1
    assert contents(ran)[0] == {"said": "done"}
    assert all("sys.exit(0)" in result["error"] for result in contents(ran)[1:])
    assert "from a child" in ran.err


def test_a_time_limit_ends_all_that_is_not_done(with_tools: Cli) -> None:
    lines = [{"tool_calls": [call("stubborn", "1")]}, {"tool_calls": [call("waits", "2")]}]
    ran = with_tools("run", "-", "--timeout", "0.3", stdin="\n".join(map(json.dumps, lines)))
    assert ran.code == 124
    answers = [json.loads(json.loads(line)["content"])["error_type"] for line in ran.out.splitlines()]
    assert answers == ["timeout", "timeout"]


def test_ctrl_c_keeps_what_is_done_and_answers_every_call(with_tools: Cli) -> None:
    with_tools.file("a.txt", "one\n")
    path = with_tools.file(
        "calls.jsonl",
        "\n".join(
            json.dumps({"tool_calls": [c]}) for c in (read("a.txt", "1"), call("waits", "2"), read("a.txt", "3"))
        ),
    )
    with with_tools.start("run", str(path)) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        while b"is waiting" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        answers = [json.loads(json.loads(line)["content"]) for line in process.stdout]
        process.stderr.read()
    assert process.returncode == 130
    assert answers[0]["content"] == "one\n"
    assert answers[2]["error_type"] == "cancelled"
    assert with_tools.witness.exists()


def test_input_without_calls_is_refused_before_anything_runs(cli: Cli) -> None:
    calls = [call("write_file", path="out.txt", content="x"), {"id": 3}]
    ran = cli("run", "-", stdin="\n".join(map(json.dumps, calls)))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == 'handrail: line 2: this is neither a message nor a tool call: {"id": 3}\n'
    assert not (cli.cwd / "out.txt").exists()


def test_a_file_that_cannot_be_read_is_named(cli: Cli) -> None:
    ran = cli("run", "nowhere.json")
    assert (ran.code, ran.err) == (2, "handrail: cannot read nowhere.json: No such file or directory\n")
