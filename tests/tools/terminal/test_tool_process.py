"""`process`: what a model can do with what runs in the background."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from handrail.approval.typed_input import read_typed
from handrail.core.builtin import registry as builtin
from handrail.environments.tasks import TaskEnvironments
from handrail.errors import Denied
from handrail.processes.table import ProcessTable, Wanted
from handrail.protocols import ActionKind
from handrail.runtime.batches import Batches
from handrail.runtime.dispatch import Runtime
from handrail.testing import OpenGate
from handrail.tools.terminal import process_call
from handrail.types import CancelToken, ToolContext

from ...fuzz.needs import needs
from ...processes.conftest import Process, Start
from ...support import call, error_in, takes_less_than, wait_until


def test_a_poll_says_how_it_is_and_what_it_printed(start: Start, process: Process) -> None:
    one = start("echo hello; sleep 1000")
    wait_until(lambda: process("poll", one.id)["output"] == "hello\n")
    polled = process("poll", one.id)
    assert {name: polled[name] for name in ("session_id", "status", "command", "pid")} == {
        "session_id": one.id,
        "status": "running",
        "command": "echo hello; sleep 1000",
        "pid": one.record.pid,
    }
    assert "exit_code" not in polled
    assert "screen" not in polled


def test_a_poll_of_an_ended_one_has_its_code(start: Start, process: Process) -> None:
    one = start("echo bye; exit 3")
    assert process("wait", one.id)["exit_code"] == 3
    polled = process("poll", one.id)
    assert (polled["status"], polled["exit_code"], polled["output"]) == ("exited", 3, "bye\n")


def test_a_poll_shows_the_end_of_a_long_output_in_whole_lines(start: Start, process: Process) -> None:
    one = start("seq 100000")
    polled = process("wait", one.id)
    lines = polled["output"].splitlines()
    assert lines == [str(number) for number in range(int(lines[0]), 100_001)]
    assert polled["earlier_bytes"] + len(polled["output"]) == 588_895


def test_the_list_is_of_the_task_and_leaves_out_what_has_ended(start: Start, process: Process) -> None:
    one, ended = start("sleep 1000"), start("true")
    start("sleep 1000", task_id="another")
    process("wait", ended.id)
    listed = process("list")
    assert [row["session_id"] for row in listed["processes"]] == [one.id]
    assert "1 more have ended" in listed["ended"]
    assert [row["session_id"] for row in process("list", all=True)["processes"]] == [one.id, ended.id]


def test_the_log_is_paged_by_lines(start: Start, process: Process) -> None:
    one = start("seq 1000")
    process("wait", one.id)
    last = process("log", one.id)
    assert (last["first_line"], last["last_line"], last["total_lines"]) == (801, 1000, 1000)
    page = process("log", one.id, offset=5, limit=3)
    assert (page["output"], page["next_offset"]) == ("5\n6\n7", 8)
    assert "next_offset" not in process("log", one.id, offset=1000)
    assert "past the end" in error_in(json.dumps(process("log", one.id, offset=1001)))["error"]


def test_the_log_is_searched(start: Start, process: Process) -> None:
    one = start("seq 1000; printf '\\e[31mred 7\\e[0m\\n'")
    process("wait", one.id)
    found = process("log", one.id, pattern="7$", limit=2)
    assert (found["output"], found["total_matches"]) == ("997: 997\n1001: red 7", 101)
    first = process("log", one.id, pattern="7$", offset=1, limit=2)
    assert (first["output"], first["next_offset"]) == ("7: 7\n17: 17", 3)
    assert process("log", one.id, pattern="(")["error_type"] == "invalid_arguments"


def test_an_empty_log_is_empty(start: Start, process: Process) -> None:
    one = start("sleep 1000")
    assert process("log", one.id)["output"] == ""
    assert process("log", one.id)["total_lines"] == 0


def test_very_long_lines_do_not_fill_the_answer(start: Start, process: Process) -> None:
    one = start("for i in {1..100}; do head -c 5000 /dev/zero | tr '\\0' x; echo; done")
    process("wait", one.id)
    page = process("log", one.id, offset=1)
    assert len(page["output"]) < 45_000
    assert "(5,000 characters)" in page["output"]
    assert page["next_offset"] == page["last_line"] + 1


def test_secrets_are_masked(start: Start, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    one = start("echo hunter2-hunter2; sleep 1000")
    pty = start("echo hunter2-hunter2; read x", size=(24, 80))
    wait_until(lambda: "secret" in process("poll", one.id)["output"])
    wait_until(lambda: "secret" in process("poll", pty.id)["screen"])
    for answer in (process("poll", one.id), process("log", one.id), process("poll", pty.id), process("log", pty.id)):
        assert "hunter2" not in answer["output"] + answer.get("screen", "")


def test_a_wait_ends_with_the_time_and_says_that_it_still_runs(start: Start, process: Process) -> None:
    one = start("echo up; sleep 1000")
    waited = process("wait", one.id, timeout=0.1)
    assert waited["status"] == "running"
    assert "still runs" in waited["note"]
    assert waited["waited_seconds"] >= 0.1


def test_a_wait_can_be_cancelled(start: Start, here: Runtime) -> None:
    one = start("sleep 1000")
    cancel = CancelToken()
    threading.Timer(0.1, cancel.cancel).start()
    with takes_less_than(30):
        answer = error_in(here.handle("process", {"action": "wait", "session_id": one.id}, "t1", cancel=cancel))
    assert answer["error_type"] == "cancelled"
    assert answer["partial"]["status"] == "running"


def test_a_wait_ends_when_the_program_waits_for_input(start: Start, process: Process) -> None:
    one = start('read -p "Continue? [y/N] " answer; echo "got $answer"', size=(24, 80))
    with takes_less_than(30):
        waited = process("wait", one.id)
    assert waited["waiting_for_input"]
    assert waited["output"] == "Continue? [y/N]"
    assert process("submit", one.id, data="y")["output"] == "Continue? [y/N] y\ngot y"


def test_a_wait_on_a_pipe_tells_too_that_input_is_missing(start: Start, process: Process) -> None:
    one = start("read x; echo got $x")
    with takes_less_than(30):
        assert process("wait", one.id)["waiting_for_input"]
    answer = process("submit", one.id, data="word")
    assert (answer["status"], answer["output"]) == ("exited", "got word\n")


def test_killing_ends_it_with_all_that_it_started(start: Start, process: Process) -> None:
    one = start("sleep 1000 & sleep 1001")
    killed = process("kill", one.id)
    assert (killed["status"], killed["exit_code"], killed["killed"]) == ("exited", 143, True)
    assert "already" in process("kill", one.id)["note"]


def test_input_can_be_written_and_closed(start: Start, process: Process) -> None:
    one = start("cat; echo end")
    process("write", one.id, data="a", timeout=0)
    process("write", one.id, data="b\n", timeout=0)
    wait_until(lambda: process("poll", one.id)["output"] == "ab\n")
    closed = process("close", one.id, timeout=60)
    assert (closed["status"], closed["output"]) == ("exited", "ab\nend\n")
    assert process("write", one.id, data="c")["error_type"] == "input_refused"


def test_a_pipe_has_no_control_keys(start: Start, process: Process) -> None:
    one = start("cat")
    refused = process("write", one.id, keys=["C-c"])
    assert refused["error_type"] == "invalid_arguments"
    assert "needs a terminal" in refused["error"]
    assert process("write", one.id, data="x", keys=["TAB", "y", "ENTER"])["output"] == "x\ty\n"


def test_what_is_missing_or_unknown_is_said(start: Start, process: Process) -> None:
    one = start("cat")
    assert "session_id" in process("poll")["error"]
    assert process("poll", "proc_ffffffff")["error_type"] == "no_such_process"
    assert "needs data" in process("write", one.id)["error"]
    assert "no terminal" in process("resize", one.id, rows=10)["error"]
    assert process("frobnicate", one.id)["error_type"] == "invalid_arguments"


def test_a_runtime_without_a_table_says_so(gate: OpenGate) -> None:
    bare = Runtime(builtin, gate=gate)
    assert "no background processes" in error_in(bare.handle("process", {"action": "list"}))["error"]


def test_what_is_typed_passes_the_gate_with_the_whole_line(start: Start, process: Process, gate: OpenGate) -> None:
    one = start("bash --norc", size=(24, 80))
    process("write", one.id, data="echo rm -r")
    process("write", one.id, data="f /")
    process("submit", one.id)
    assert [action.text for action in gate.actions] == ["echo rm -r", "echo rm -rf /", "echo rm -rf /\r"]
    action = gate.actions[-1]
    assert (action.kind, action.environment, action.reaches_host) == (ActionKind.INPUT, "local", True)
    assert action.details["command"] == "bash --norc"
    process("submit", one.id, data="true")
    assert gate.actions[-1].text == "true\r"


def test_only_input_passes_the_gate(start: Start, process: Process, gate: OpenGate) -> None:
    one = start("cat")
    for action in ("list", "poll", "log", "close", "kill"):
        process(action, one.id)
    assert gate.actions == []


def test_what_the_gate_denies_is_not_typed(
    start: Start,
    table: ProcessTable,
    environments: TaskEnvironments,
) -> None:
    class Closed:
        def review(self, actions: object, context: object) -> None:
            raise Denied("no")

    runtime = Runtime(builtin, environments=environments, processes=table, gate=Closed())
    one = start("cat")
    answer = runtime.handle("process", {"action": "submit", "session_id": one.id, "data": "x"}, "t1")
    assert error_in(answer)["error_type"] == "denied"
    assert not runtime.handle("process", {"action": "poll", "session_id": one.id}, "t1").count("x\\n")  # type: ignore[union-attr]
    assert one.typed == ""


def test_one_whose_log_is_gone_is_still_answered(start: Start, process: Process) -> None:
    one = start("sleep 1000")
    one.use(lambda found: found.forget())
    polled = process("poll", one.id)
    assert (polled["status"], polled["output"]) == ("lost", "")
    assert "no longer knows it" in polled["reason"]


def test_looking_at_the_end_uses_the_notice_up(table: ProcessTable, process: Process) -> None:
    one = table.start("true", task_id="t1", session_id=None, wanted=Wanted(notify_on_complete=True))
    process("wait", one.id)
    wait_until(lambda: not any(thread.name == "handrail-processes" for thread in threading.enumerate()))
    assert table.drain_notices() == []


def test_in_one_message_it_keeps_its_place_among_commands(here: Runtime, table: ProcessTable) -> None:
    messages = asyncio.run(
        Batches(here).run(
            [
                call("terminal", command="sleep 1000", background=True),
                call("process", action="list", call_id="first"),
                call("terminal", command="sleep 1001", background=True),
                call("process", action="list", call_id="second"),
            ],
            task_id="t1",
        )
    )
    told = [json.loads(message["content"]) for message in messages]
    assert [row["session_id"] for row in told[1]["processes"]] == [told[0]["session_id"]]
    assert [row["session_id"] for row in told[3]["processes"]] == [told[0]["session_id"], told[2]["session_id"]]


def test_a_program_that_asks_for_a_password_is_told_from_a_shell(start: Start) -> None:
    needs("openssl", "apt-get install openssl")
    password, shell = start("openssl passwd -6", size=(24, 80)), start("bash --norc", size=(24, 80))
    wait_until(password.waits_for_input)
    wait_until(shell.waits_for_input)
    assert password.reader() == ("openssl", True)
    assert shell.reader() == ("bash", False)


def test_a_password_is_an_action_without_an_echo(start: Start, table: ProcessTable) -> None:
    needs("openssl", "apt-get install openssl")
    one = start("openssl passwd -6", size=(24, 80))
    wait_until(one.waits_for_input)
    context = ToolContext(tool="process", processes=table)
    (action,) = process_call.actions({"action": "submit", "session_id": one.id, "data": "rm -rf ~"}, context)
    assert action.details["echo"] is False
    assert read_typed(action) is None
