"""The tool `terminal`, as a model calls it."""

from __future__ import annotations

import asyncio
import json
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.environments.tasks import TaskEnvironments
from handrail.errors import Denied
from handrail.processes.table import ProcessTable
from handrail.protocols import ActionKind
from handrail.runtime.batches import Batches
from handrail.runtime.dispatch import Runtime
from handrail.settings.sections import TerminalConfig
from handrail.testing import OpenGate
from handrail.types import CancelToken

from ...environments.conftest import naps
from ...support import call, error_in, wait_until
from .conftest import Terminal


class TestCommands:
    def test_a_command_gives_its_output_and_its_exit_code(self, terminal: Terminal) -> None:
        assert terminal("echo hi; echo there >&2") == {"output": "hi\nthere\n", "exit_code": 0}

    def test_state_is_kept_in_a_task_and_not_shared_with_another(self, terminal: Terminal, work: Path) -> None:
        answer = terminal("mkdir sub; cd sub; export A=1; f() { echo called; }; alias g=f; shopt -s expand_aliases")
        assert answer["cwd"] == f"{work}/sub"
        assert terminal("pwd; echo $A; f; g") == {"output": f"{work}/sub\n1\ncalled\ncalled\n", "exit_code": 0}
        assert terminal("pwd; echo [$A]", task_id="t2")["output"] == f"{work}\n[]\n"

    def test_a_failure_is_called_one_and_explained_where_that_helps(self, terminal: Terminal) -> None:
        answer = terminal("cat /proc/nowhere/file")
        assert answer["exit_code"] == 1
        assert answer["error"] == "the command failed with exit code 1"
        assert answer["error_type"] == "command_failed"
        assert "No such file" in answer["output"]
        assert "meaning" not in answer
        assert "not found" in terminal("no-such-program")["meaning"]

    def test_an_answer_is_no_failure(self, terminal: Terminal) -> None:
        answer = terminal("grep nothing /dev/null")
        assert answer == {"output": "", "exit_code": 1, "meaning": "grep: no line matched"}

    @pytest.mark.parametrize(
        ("command", "code"), [("false | true", 0), ("set -o pipefail; false | true", 1), ("exit 42", 42)]
    )
    def test_the_exit_code_is_exact(self, terminal: Terminal, command: str, code: int) -> None:
        assert terminal(command)["exit_code"] == code

    def test_the_model_is_told_that_the_shell_is_another(self, terminal: Terminal) -> None:
        terminal("x=1")
        answer = terminal("exit 3")
        assert answer["exit_code"] == 3
        assert "the command ended the shell, and a new one was started" in answer["note"]
        assert terminal("echo $x")["output"] == "1\n"

    def test_a_directory_for_one_command(self, terminal: Terminal, work: Path) -> None:
        (work / "sub dir").mkdir()
        assert terminal("pwd", workdir="sub dir")["output"] == f"{work}/sub dir\n"
        assert terminal("pwd")["output"] == f"{work}\n"
        answer = terminal("touch made", workdir="nowhere")
        assert answer["error_type"] == "no_such_directory"
        assert not (work / "made").exists()

    def test_a_command_reads_nothing(self, terminal: Terminal) -> None:
        assert terminal("cat; read x; echo [$x]", timeout=60)["output"] == "[]\n"

    @pytest.mark.parametrize("command", ["", "  \n", "a\0b"])
    def test_what_no_shell_could_run_is_refused(self, terminal: Terminal, command: str) -> None:
        assert terminal(command)["error_type"] == "invalid_arguments"

    def test_a_runtime_without_environments_says_so(self, gate: OpenGate) -> None:
        builtin_tools()
        answer = error_in(Runtime(builtin, gate=gate).handle("terminal", {"command": "true"}))
        assert "has no environments" in answer["error"]


class TestTimeLimits:
    def test_a_command_is_ended_with_what_it_printed(self, terminal: Terminal) -> None:
        answer = terminal("echo begun; sleep 4721 & sleep 4722", timeout=1)
        assert answer["exit_code"] == 124
        assert answer["error_type"] == "timeout"
        assert "timed out after 1 s" in answer["error"]
        assert answer["output"].startswith("begun\n")
        assert "a new shell was started" in answer["note"]
        assert terminal("echo goes on")["output"] == "goes on\n"

    class TestConfigured:
        @pytest.fixture
        def limits(self) -> TerminalConfig:
            return TerminalConfig(timeout=0.2, max_timeout=0.5)

        def test_the_usual_limit_is_the_configurations(self, terminal: Terminal) -> None:
            assert "after 0.2 s" in terminal("sleep 4723")["error"]

        def test_more_than_is_allowed_is_cut_and_that_is_said(self, terminal: Terminal) -> None:
            answer = terminal("sleep 4724", timeout=3600)
            assert "after 0.5 s" in answer["error"]
            assert "the time limit is 0.5 s, the most that is allowed, not 3600 s" in answer["note"]

    def test_a_cancel_ends_the_command_with_what_it_printed(self, terminal: Terminal, tmp_path: Path) -> None:
        cancel = CancelToken()

        def stop() -> None:
            wait_until((tmp_path / "begun").exists)
            cancel.cancel("enough")

        stopping = threading.Thread(target=stop)
        stopping.start()
        answer = terminal(f"echo begun; touch {tmp_path}/begun; sleep 4725", more={"cancel": cancel})
        stopping.join()
        assert answer["error_type"] == "cancelled"
        assert answer["partial"]["exit_code"] == 130
        assert answer["partial"]["output"].startswith("begun\n")


class TestLeftRunning:
    def test_what_a_command_leaves_running_has_an_id(self, terminal: Terminal, table: ProcessTable) -> None:
        # Until it is itself, and no longer a copy of the shell.
        answer = terminal("sleep 4726 & until grep -q sleep /proc/$!/comm; do sleep .01; done; echo started")
        assert answer["output"] == "started\n"
        (left,) = answer["left_running"]
        assert left["command"] == "sleep 4726"
        tracked = table.get(left["session_id"])
        assert tracked.record.pid == left["pid"]
        tracked.use(lambda process: process.kill())
        assert terminal("echo more") == {"output": "more\n", "exit_code": 0}

    def test_many_are_all_looked_after_though_not_all_are_shown(self, terminal: Terminal, table: ProcessTable) -> None:
        answer = terminal("for i in {1..25}; do sleep 4752 & done")
        assert len(answer["left_running"]) == 20
        assert "it left 25 processes running" in answer["note"]
        assert len(table.list("t1")) == 25


class TestBackground:
    def test_a_background_command_is_known_by_its_id(self, terminal: Terminal, here: Runtime, work: Path) -> None:
        terminal("mkdir sub; cd sub; export A=1")
        answer = terminal("echo $PWD $A; sleep 4727", background=True)
        assert answer["status"] == "running"
        assert answer["session_id"] in answer["note"]

        def polled() -> dict[str, Any]:
            outcome = here.handle("process", {"action": "poll", "session_id": answer["session_id"]}, "t1")
            return dict(json.loads(outcome))  # type: ignore[arg-type]

        wait_until(lambda: polled()["output"] == f"{work}/sub 1\n")
        assert polled()["status"] == "running"

    def test_its_end_is_told_when_that_was_asked_for(self, terminal: Terminal, table: ProcessTable) -> None:
        answer = terminal(
            "echo Listening on 8000; exit 3", background=True, notify_on_complete=True, watch_patterns=["Listening"]
        )
        told: list[Any] = []
        wait_until(lambda: told.extend(table.drain_notices("t1")) or len(told) >= 2)
        assert {notice.id for notice in told} == {answer["session_id"]}
        assert any(notice.exit_code == 3 for notice in told)

    def test_in_the_foreground_such_a_wish_is_answered_with_a_note(self, terminal: Terminal) -> None:
        assert "for background commands" in terminal("true", notify_on_complete=True)["note"]

    def test_a_time_limit_in_the_background_is_answered_with_a_note(self, terminal: Terminal) -> None:
        assert "timeout is not for background" in terminal("true", background=True, timeout=5)["note"]

    def test_without_a_table_of_processes_it_says_so(self, terminal: Terminal, here: Runtime) -> None:
        here.processes = None
        assert "keeps no background processes" in terminal("true", background=True)["error"]
        assert terminal("sleep 4728 & echo x")["left_running"][0]["command"].startswith("sleep 4728")


class TestTerminals:
    def test_a_program_that_ends_answers_as_any_command(self, terminal: Terminal, table: ProcessTable) -> None:
        answer = terminal("test -t 0 && test -t 1 && echo on a terminal; exit 4", pty=True)
        assert answer["output"] == "on a terminal\n"
        assert answer["exit_code"] == 4
        assert answer["error_type"] == "command_failed"
        assert table.list() == []

    def test_one_that_asks_is_answered_with_process(self, terminal: Terminal, here: Runtime) -> None:
        answer = terminal("read -p 'Really? [y/N] ' x; echo you said $x", pty=True, timeout=60)
        assert answer["waiting_for_input"]
        assert answer["output"].endswith("Really? [y/N]")
        assert "exit_code" not in answer
        sent = {"action": "submit", "session_id": answer["session_id"], "data": "y", "timeout": 60}
        submitted = json.loads(here.handle("process", sent, "t1"))  # type: ignore[arg-type]
        assert "you said y" in submitted["output"]

    def test_one_that_takes_longer_goes_on(self, terminal: Terminal) -> None:
        answer = terminal("echo begun; sleep 4729", pty=True, timeout=1.5)
        assert answer["status"] == "running"
        assert "still runs after 1.5 s" in answer["note"]
        assert answer["output"] == "begun"

    def test_a_cancel_ends_it(self, terminal: Terminal, table: ProcessTable, tmp_path: Path) -> None:
        cancel = CancelToken()

        def stop() -> None:
            wait_until((tmp_path / "begun").exists)
            cancel.cancel("enough")

        stopping = threading.Thread(target=stop)
        stopping.start()
        answer = terminal(f"touch {tmp_path}/begun; sleep 4730", pty=True, more={"cancel": cancel})
        stopping.join()
        assert answer["error_type"] == "cancelled"
        wait_until(lambda: table.list() == [])


class TestGate:
    def test_the_gate_sees_the_command_and_where_it_would_run(
        self, terminal: Terminal, gate: OpenGate, environments: TaskEnvironments, work: Path
    ) -> None:
        terminal("cd /usr")
        terminal("ls", workdir="bin")
        terminal("ls", workdir="~", background=True)
        seen = [(action.kind, action.text, action.cwd) for action in gate.actions]
        assert seen == [
            (ActionKind.COMMAND, "cd /usr", str(work)),
            (ActionKind.COMMAND, "ls", "/usr/bin"),
            (ActionKind.COMMAND, "ls", str(Path.home())),
        ]
        action = gate.actions[-1]
        assert (action.environment, action.isolated, action.reaches_host) == ("local", False, True)
        assert action.details["background"]

    def test_without_a_gate_nothing_runs(self, terminal: Terminal, here: Runtime, work: Path) -> None:
        here.gate = None
        assert terminal("touch made")["error_type"] == "denied"
        assert not (work / "made").exists()

    def test_what_is_denied_starts_no_shell(
        self, terminal: Terminal, here: Runtime, environments: TaskEnvironments
    ) -> None:
        class Refuses:
            def review(self, actions: Any, context: Any) -> None:
                raise Denied("no")

        here.gate = Refuses()
        environments.override("t1", {"sandbox": True, "cwd": "/"})  # one that takes its time to start
        terminal("true")
        environment: Any = environments.of("t1")
        assert environment._link is None

    def test_in_a_message_a_command_is_judged_where_the_one_before_has_led(
        self, here: Runtime, gate: OpenGate, work: Path
    ) -> None:
        (work / "sub").mkdir()
        message = [call("terminal", "1", command="sleep 0.05; cd sub"), call("terminal", "2", command="pwd")]
        answers = asyncio.run(Batches(here).run(message, task_id="t1"))
        assert [action.cwd for action in gate.actions] == [str(work), f"{work}/sub"]
        assert json.loads(answers[1]["content"])["output"] == f"{work}/sub\n"


class TestOrder:
    def test_commands_of_a_task_run_one_after_the_other(self, here: Runtime, work: Path) -> None:
        message = [call("terminal", str(number), command=f"sleep 0.02; echo {number} >> log") for number in range(4)]
        asyncio.run(Batches(here).run(message, task_id="t1"))
        assert (work / "log").read_text() == "0\n1\n2\n3\n"

    def test_a_file_is_read_after_the_command_that_writes_it(self, here: Runtime, work: Path) -> None:
        message = [
            call("terminal", "1", command="sleep 0.05; echo made > a.txt"),
            call("read_file", "2", path="a.txt"),
            call("write_file", "3", path="a.txt", content="changed"),
            call("terminal", "4", command="cat a.txt"),
        ]
        answers = [json.loads(one["content"]) for one in asyncio.run(Batches(here).run(message, task_id="t1"))]
        assert answers[1]["content"] == "made\n"
        assert answers[3]["output"] == "changed"

    def test_different_tasks_run_together(self, here: Runtime, work: Path) -> None:
        async def both() -> None:
            wait = "until [ -e {} ]; do sleep 0.01; done"
            one = [call("terminal", "1", command=f"touch a; {wait.format('b')}", timeout=60)]
            two = [call("terminal", "1", command=f"touch b; {wait.format('a')}", timeout=60)]
            batches = Batches(here)
            for answer in await asyncio.gather(batches.run(one, task_id="a"), batches.run(two, task_id="b")):
                assert json.loads(answer[0]["content"])["exit_code"] == 0

        asyncio.run(both())


class TestAsync:
    def test_a_command_does_not_hold_up_the_callers_loop(self, here: Runtime, work: Path) -> None:
        async def both() -> str:
            wait = "touch begun; until [ -e go ]; do sleep 0.01; done; echo gone"
            running = asyncio.ensure_future(here.ahandle("terminal", {"command": wait, "timeout": 60}, "t1"))
            await asyncio.to_thread(wait_until, (work / "begun").exists)
            (work / "go").touch()
            return str(await running)

        assert json.loads(asyncio.run(both())) == {"output": "gone\n", "exit_code": 0}

    def test_a_caller_that_is_cancelled_takes_the_command_along(
        self, here: Runtime, terminal: Terminal, work: Path
    ) -> None:
        async def begun_and_cancelled() -> None:
            running = asyncio.ensure_future(here.ahandle("terminal", {"command": "touch begun; sleep 4751"}, "t1"))
            await asyncio.to_thread(wait_until, (work / "begun").exists)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(begun_and_cancelled())
        wait_until(lambda: "sleep 4751" not in naps())
        assert terminal("echo next")["output"] == "next\n"


class TestFiles:
    def test_file_tools_work_where_the_shell_is(self, here: Runtime, terminal: Terminal, work: Path) -> None:
        terminal("mkdir sub; cd sub")
        written = json.loads(here.handle("write_file", {"path": "a.txt", "content": "x\n"}, "t1"))  # type: ignore[arg-type]
        assert written["path"] == f"{work}/sub/a.txt"
        found = json.loads(here.handle("search_files", {"pattern": "x"}, "t1"))  # type: ignore[arg-type]
        assert found["matches"] == [{"path": "a.txt", "line": 1, "text": "x"}]


class TestDefault:
    @pytest.fixture(autouse=True)
    def _closed(self, _nothing_is_left: None) -> Iterator[None]:
        yield
        model_tools.reset()

    def test_the_module_functions_use_one_environment_a_task(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        model_tools.default().runtime.gate = OpenGate()
        model_tools.register_task_env_overrides("t", {"cwd": "/"}, env={"A": "1"})
        answer = json.loads(model_tools.handle_function_call("terminal", {"command": "pwd; echo $A"}, "t"))  # type: ignore[arg-type]
        assert answer["output"] == "/\n1\n"
        model_tools.clear_task_env_overrides("t")
        answer = json.loads(model_tools.handle_function_call("terminal", {"command": "pwd"}))  # type: ignore[arg-type]
        assert answer["output"] == f"{tmp_path}\n"

    def test_an_environment_that_cannot_be_had_makes_the_tool_unavailable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HANDRAIL_TERMINAL", "locl")
        answer = error_in(model_tools.handle_function_call("terminal", {"command": "true"}))
        assert answer["error_type"] == "unavailable"
        assert "did you mean 'local'" in answer["error"]


_INFO = "tiny-1.dist-info"


def _wheel(folder: Path) -> Path:
    path = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr(f"{_INFO}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr(f"{_INFO}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{_INFO}/RECORD", f"tiny.py,,\n{_INFO}/METADATA,,\n{_INFO}/WHEEL,,\n{_INFO}/RECORD,,\n")
    return path


def test_an_install_into_our_own_environment_is_told_the_cure(terminal: Terminal, work: Path) -> None:
    purelib = sysconfig.get_path("purelib")
    pip = f"{sys.executable} -m pip install --no-index --no-deps --disable-pip-version-check {_wheel(work)}"
    for command in (pip, f"touch {purelib}/tiny.py", f"cp /dev/null {purelib}/tiny.py"):
        answer = terminal(command, timeout=300)
        assert answer["exit_code"] != 0
        assert "venv" in answer["note"], answer
        assert "pipx" in answer["note"]
    assert not Path(purelib, "tiny.py").exists()
    assert "note" not in terminal("echo Read-only file system; false")
    assert "note" not in terminal(f"echo Read-only file system {purelib}")
