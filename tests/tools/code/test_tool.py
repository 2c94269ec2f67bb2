"""`execute_code` on this machine: what a script can do, how it ends, and what it cannot."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.environments.base import ProcessState
from handrail.environments.tasks import TaskEnvironments
from handrail.errors import Denied
from handrail.protocols import Action, ActionKind
from handrail.runtime.definitions import Definitions
from handrail.runtime.dispatch import Runtime
from handrail.settings.sections import CodeConfig
from handrail.testing import OpenGate
from handrail.tools.code import channel, script_run
from handrail.toolsets import Toolsets
from handrail.types import CancelToken, Progress

from ...environments.conftest import is_running
from ...support import wait_until
from .conftest import Script, runtime, scripts


def test_what_a_script_prints_comes_back(script: Script) -> None:
    assert script("print('hello')") == {"output": "hello\n", "exit_code": 0, "tool_calls": 0}


def test_a_script_calls_tools_as_functions_and_gets_their_results(script: Script, work: Path) -> None:
    answer = script(
        """
        from handrail_tools import read_file, write_file, terminal
        write_file("a.txt", "one\\ntwo\\n")
        total = sum(int(terminal(command=f"echo {n}")["output"]) for n in range(10))
        print(total, "two" in read_file(path="a.txt")["content"])
        """
    )
    assert answer == {"output": "45 True\n", "exit_code": 0, "tool_calls": 12}
    assert (work / "a.txt").read_text() == "one\ntwo\n"


def test_a_script_has_the_shells_directory_and_variables(here: Runtime, script: Script, work: Path) -> None:
    here.handle("terminal", {"command": "export COLOUR=green; mkdir -p deep; cd deep"}, "t1")
    assert script("import os; print(os.environ['COLOUR'], os.getcwd())")["output"] == f"green {work}/deep\n"


def test_a_command_that_fails_is_a_result_and_a_call_that_fails_raises(script: Script) -> None:
    answer = script(
        """
        from handrail_tools import ToolError, read_file, terminal
        print(terminal("exit 3")["exit_code"])
        try:
            read_file("missing.txt")
        except ToolError as error:
            print(error.error_type, "missing.txt" in str(error), error.result["error_type"])
        """
    )
    assert answer["output"] == "3\nnot_found True not_found\n"


def test_threads_and_forked_processes_call_beside_each_other(script: Script) -> None:
    answer = script(
        """
        import os
        from concurrent.futures import ThreadPoolExecutor
        from handrail_tools import terminal
        with ThreadPoolExecutor(8) as threads:
            print(sorted(int(r["output"]) for r in threads.map(lambda n: terminal(f"echo {n}"), range(24))))
        child = os.fork()
        if child == 0:
            print(terminal("echo from the child")["output"], end="", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(terminal("echo from the parent")["output"], end="")
        """
    )
    assert answer["output"] == f"{list(range(24))}\nfrom the child\nfrom the parent\n"
    assert answer["tool_calls"] == 26


def test_a_traceback_names_the_scripts_lines_and_nothing_of_ours(script: Script) -> None:
    answer = script("def f():\n    return 1 / 0\n\nf()\n")
    assert answer["exit_code"] == 1
    assert answer["error_type"] == "script_failed"
    assert "line 2, in f\n    return 1 / 0" in answer["output"]
    assert answer["output"].startswith("Traceback")
    assert "handrail" not in answer["output"]


@pytest.mark.parametrize(
    ("code", "exit_code", "output"),
    [
        ("import sys; print('out'); sys.exit()", 0, "out\n"),
        ("import sys; sys.exit(5)", 5, ""),
        ("import sys; sys.exit('no luck')", 1, "no luck\n"),
        ("import os; print('before'); os._exit(7)", 7, "before\n"),
        ("import os; print('before'); os.abort()", 134, "before\n"),
        ("import atexit; atexit.register(print, 'last'); print('first')", 0, "first\nlast\n"),
        ("import threading\nthreading.Thread(target=lambda: print('thread')).start()", 0, "thread\n"),
        ("print(input())", 1, None),
        ("def (", 1, None),
        ("print('\0')", 1, None),
        ("def f(): f()\nf()", 1, None),
        ("raise KeyboardInterrupt", 1, None),
        ("import sys; sys.stdout.buffer.write(b'\\xff ok'); print('\\ud800')", 0, "\\xff ok\\ud800\n"),
        ("import os; os.close(1); os.close(2)", 0, ""),
    ],
)
def test_however_a_script_ends_its_code_and_output_are_told(
    script: Script, code: str, exit_code: int, output: str | None
) -> None:
    answer = script(code)
    assert answer["exit_code"] == exit_code
    if output is not None:
        assert answer["output"] == output
    assert ("error" in answer) == (exit_code != 0)


def test_a_script_that_ends_before_anybody_looks_for_it_is_heard(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that is too busy to let the runtime look in time."""
    look, receive, looks = channel.Listener._caller, channel.LogTransport.receive, iter([True])

    def look_too_early(self: channel.Listener) -> channel.SocketTransport | None:
        return None if next(looks, False) else look(self)

    def receive_too_late(self: channel.LogTransport, timeout: float) -> bytes:
        wait_until(lambda: self._process.poll().state is not ProcessState.RUNNING)
        return receive(self, timeout)

    monkeypatch.setattr(channel.Listener, "_caller", look_too_early)
    monkeypatch.setattr(channel.LogTransport, "receive", receive_too_late)
    assert script("print('hello')") == {"output": "hello\n", "exit_code": 0, "tool_calls": 0}


def test_a_script_may_use_what_scripts_use(script: Script) -> None:
    answer = script(
        """
        from dataclasses import dataclass
        import multiprocessing, pickle

        @dataclass
        class Point:
            x: int

        def double(n):
            return 2 * n

        if __name__ == "__main__":
            assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(double, [1, 2]))
        """
    )
    assert answer["output"] == "[2, 4]\n"


# What a script is not given


def test_only_tools_that_the_model_was_given_can_be_called(here: Runtime, script: Script) -> None:
    given = {"enabled_tools": frozenset({"execute_code", "read_file"})}
    answer = script("import handrail_tools; print(handrail_tools.__all__)", more=given)
    assert answer["output"] == "['read_file', 'ToolError']\n"
    answer = script("from handrail_tools import terminal", more=given)
    assert "terminal is not a tool that you were given; these are: read_file" in answer["output"]


def test_a_call_that_goes_around_the_functions_reaches_nothing_more(script: Script, work: Path) -> None:
    answer = script(
        """
        import handrail_tools, json
        call = handrail_tools.read_file.__closure__
        call = next(c.cell_contents for c in call if type(c.cell_contents).__name__ == "Caller")
        print(call("terminal", {"command": "touch stolen"}))
        print(call("execute_code", {"code": "1"}))
        print(call("read_file", "no object"))
        line = call._line()
        line.sendall(b"\\x00\\x00\\x00\\x03xyz")
        print(line.recv(10_000))
        """,
        more={"enabled_tools": frozenset({"execute_code", "read_file"})},
    )
    lines = answer["output"].splitlines()
    assert json.loads(lines[0])["error_type"] == "unknown_tool"
    assert json.loads(lines[1])["error_type"] == "unknown_tool"
    assert json.loads(lines[2])["error_type"] == "invalid_arguments"
    assert "not a tool call" in lines[3]
    assert not (work / "stolen").exists()


def test_a_stranger_without_the_token_is_sent_away(script: Script) -> None:
    answer = script(
        """
        import glob, os, socket, tempfile
        # The runtime has taken this script's connection: whoever else comes to the door finds nobody.
        for path in glob.glob(os.path.join(tempfile.gettempdir(), "handrail-*", "code")):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.settimeout(0.2)
                try:
                    stranger.connect(path)
                    stranger.sendall(b"0" * 32 + b"C" + bytes(8))
                    print("answer:", stranger.recv(100))
                except OSError:
                    pass
        print("nobody answered")
        """
    )
    assert answer["output"] == "nobody answered\n"


def test_a_script_sees_no_key_of_ours(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef0123456789")
    answer = script(
        """
        import os, pathlib
        print("OPENAI_API_KEY" in os.environ, b"sk-test" in pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes())
        """
    )
    assert answer["output"] == "False False\n"


def test_a_script_that_imports_our_package_gets_no_runtime_of_ours(script: Script) -> None:
    answer = script(
        """
        from handrail.base.own_process import started_by_agent
        print(started_by_agent())
        """
    )
    assert answer["output"] == "True\n"


# Gate, limits


class _Refusing:
    """Allows scripts, and refuses the commands that they run."""

    def __init__(self) -> None:
        self.seen: list[Action] = []

    def review(self, actions: Any, context: Any) -> None:
        self.seen += actions
        if any(action.kind is ActionKind.COMMAND for action in actions):
            raise Denied("not here")


def test_the_script_and_each_of_its_calls_pass_the_gate(environments: TaskEnvironments, work: Path) -> None:
    gate = _Refusing()
    code = "from handrail_tools import terminal\nterminal('touch made')\n"
    answer = scripts(runtime(environments, gate))(code)
    assert [action.kind for action in gate.seen] == [ActionKind.CODE, ActionKind.COMMAND]
    assert gate.seen[0].text == code
    assert "ToolError: not here" in answer["output"]
    assert not (work / "made").exists()


def test_a_script_that_the_gate_refuses_does_not_run(environments: TaskEnvironments, work: Path) -> None:
    from handrail.approval.gate import ApprovalGate

    gate = ApprovalGate(folder=work / "gate")
    answer = scripts(runtime(environments, gate))("import shutil; shutil.rmtree('/usr'); open('made', 'w')")
    gate.close()
    assert answer["error_type"] == "denied"
    assert not (work / "made").exists()


def test_a_script_that_takes_too_long_is_ended_with_all_that_it_started(script: Script, work: Path) -> None:
    answer = script(
        """
        import os, time
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os.setsid()
                os.execvp("sleep", ["sleep", "1000"])
            print(child)
        time.sleep(1000)
        """,
        timeout=5,
    )
    assert answer["error_type"] == "timeout"
    assert answer["exit_code"] == 124
    children = [int(pid) for pid in answer["output"].split()]
    assert len(children) == 10
    wait_until(lambda: not any(map(is_running, children)))


def test_the_time_that_tools_take_does_not_count(script: Script) -> None:
    answer = script("from handrail_tools import terminal\nprint(terminal('sleep 5')['exit_code'])", timeout=4)
    assert answer["output"] == "0\n"


def test_what_a_script_leaves_behind_is_ended(script: Script) -> None:
    answer = script("import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)")
    assert answer["exit_code"] == 0
    wait_until(lambda: not is_running(int(answer["output"])))


def test_a_cancel_ends_the_script_and_the_call_it_waits_for(here: Runtime, work: Path) -> None:
    cancel, answers = CancelToken(), []
    code = "from handrail_tools import terminal\nterminal('touch begun; sleep 1000')\n"
    work_thread = threading.Thread(
        target=lambda: answers.append(here.handle("execute_code", {"code": code}, "t1", cancel=cancel))
    )
    work_thread.start()
    wait_until((work / "begun").exists)
    cancel.cancel()
    work_thread.join()
    assert json.loads(answers[0])["error_type"] == "cancelled"


@pytest.mark.parametrize("limits", [CodeConfig(python="python3", max_tool_calls=2)])
def test_calls_over_the_limit_are_refused(script: Script) -> None:
    answer = script("from handrail_tools import terminal\nfor n in range(3): print(terminal(f'echo {n}')['output'])")
    assert "0\n\n1\n" in answer["output"]
    assert "a script may call tools 2 times" in answer["output"]


def test_a_gigabyte_of_output_costs_little_and_its_end_is_shown(script: Script) -> None:
    answer = script(
        """
        import os
        piece = b"x" * (1 << 20)
        for _ in range(1024):
            os.write(1, piece)
        print("\\nthe end")
        """
    )
    assert answer["exit_code"] == 0
    assert len(answer["output"]) < 60_000
    assert answer["output"].endswith("the end\n")
    assert answer["stored"]["output"]["chars"] < 10 << 20


def test_arguments_that_are_too_long_or_no_json_are_refused_in_the_script(script: Script) -> None:
    answer = script(
        """
        from handrail_tools import terminal, write_file
        for call in (
            lambda: write_file("a", "x" * (9 << 20)),
            lambda: terminal(object()),
            lambda: terminal("a", 1, 2, 3, 4, 5, 6, 7, 8, 9),
            lambda: terminal("a", command="b"),
        ):
            try:
                call()
            except (TypeError, ValueError) as error:
                print(str(error)[:60])
        """
    )
    assert answer["output"].splitlines() == [
        "write_file: the arguments have 9,437,249 bytes, and 8,388,60",
        "terminal: arguments must be JSON values: Object of type obje",
        "terminal takes 8 arguments: command, timeout, workdir, backg",
        "terminal got command twice",
    ]


@pytest.mark.parametrize("limits", [CodeConfig(python="no-such-python")])
def test_a_missing_python_is_said_with_its_cure(script: Script) -> None:
    answer = script("print(1)")
    assert "install Python 3.8 or newer there, or set code.python" in answer["error"]


def test_a_python_of_another_version_compiles_what_it_is_sent(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_run, "MAGIC_NUMBER", b"another version's")
    assert script("from handrail_tools import terminal; print(terminal('echo hi')['output'])")["output"] == "hi\n\n"


def test_a_script_that_kills_its_keeper_is_said_to_be_killed(script: Script) -> None:
    answer = script("import os, signal; os.kill(os.getppid(), signal.SIGKILL)")
    assert answer["exit_code"] == 137
    assert answer["error"] == "the script's process was killed"


def test_news_come_while_it_runs(here: Runtime) -> None:
    news: list[Progress] = []
    code = "from handrail_tools import terminal\nprint('working', flush=True)\nterminal('echo inner; sleep 0.3; echo more')"
    here.handle("execute_code", {"code": code}, "t1", on_progress=news.append, tool_call_id="c1")
    assert ("execute_code", "working", "c1") in [(one.tool, one.message, one.tool_call_id) for one in news]
    assert ("terminal", "c1.1") in [(one.tool, one.tool_call_id) for one in news]


def test_an_empty_script_is_refused(script: Script) -> None:
    assert script("  \n")["error_type"] == "invalid_arguments"


def test_its_description_names_exactly_the_tools_that_code_can_call() -> None:
    builtin_tools()
    definitions = Definitions(builtin, Toolsets(builtin))

    def described(*toolsets: str) -> str:
        listed = {d["function"]["name"]: d["function"] for d in definitions.list(toolsets, quiet=True)}
        return str(listed["execute_code"]["description"])

    assert described("code_execution", "results", "todo").endswith("NAME is one of: read_result.")
    assert "terminal" not in described("code_execution", "file")
    assert described("code_execution", "file").endswith(
        "NAME is one of: patch, read_file, search_files, undo, write_file."
    )
    assert "NAME is one of" not in described("code_execution")


def test_the_gate_sees_where_the_script_runs(script: Script, gate: OpenGate, work: Path) -> None:
    script("print(1)")
    (action,) = gate.actions
    assert (action.kind, action.cwd, action.environment, action.isolated) == (
        ActionKind.CODE,
        str(work),
        "local",
        False,
    )
