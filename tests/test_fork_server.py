"""A forked Python does what a started one does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from . import fork_server
from .services.leftovers import is_running
from .support import PATIENCE_SECONDS, in_threads, wait_until

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "GIVEN": "grün"}


@pytest.mark.parametrize(
    "code",
    [
        "import os, sys; print(os.getcwd(), dict(os.environ), sys.argv, sys.path[0], __name__)",
        "import sys; print([(s.encoding, s.errors, s.line_buffering) for s in (sys.stdin, sys.stdout, sys.stderr)])",
        "import sys; print(sys.stdin.read()); sys.exit(3)",
        "import sys; sys.exit('no luck')",
        "raise SystemExit",
        "print('before'); 1 / 0",
        "import os; os.abort()",
        "import atexit; atexit.register(print, 'last'); print('first')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()",
        "import signal; print([str(signal.getsignal(each)) for each in sorted(signal.valid_signals())])",
        "import os; print(sorted(os.listdir('/proc/self/fd')))",
        "import os, sys; os.close(1); print('lost')",
    ],
)
def test_a_fork_ends_and_prints_as_a_fresh_process_does(code: str, tmp_path: Path) -> None:
    forked, fresh = (
        start("-c", code, "a", "b", cwd=tmp_path, env=ENV, stdin=-1, stdout=-1, stderr=-1)
        for start in (fork_server.start, fork_server.start_fresh)
    )
    with forked, fresh:
        outputs = [process.communicate(b"typed") for process in (forked, fresh)]
    # Where the code is called from differs, and addresses do.
    said = [(out, err.splitlines()[-1:]) for out, err in outputs]
    assert said[0] == said[1]
    assert forked.returncode == fresh.returncode


def test_forks_do_not_share_what_they_change(tmp_path: Path) -> None:
    code = "import os, handrail; print(hasattr(handrail, 'mine')); handrail.mine = 1; os.environ['MINE'] = '1'"
    ran = [fork_server.run("-c", code, env=ENV, cwd=tmp_path).stdout for _ in range(2)]
    assert ran == ["False\n", "False\n"]


def test_a_fork_can_be_killed_and_is_waited_for(tmp_path: Path) -> None:
    with fork_server.start("-c", "input()", env=ENV, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
    assert not Path(f"/proc/{process.pid}").exists()


def test_what_sets_python_up_gets_a_fresh_one(tmp_path: Path) -> None:
    code = "import sys; print(sys.flags.utf8_mode, sys.stdout.encoding)"
    ran = fork_server.run("-c", code, env={**ENV, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}, cwd=tmp_path)
    assert ran.stdout == "0 ascii\n"


def test_a_command_for_others_ends_as_what_it_starts_and_takes_that_along(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['GIVEN'], sys.stdin.read()); sys.exit(3)"
    ran = subprocess.run(fork_server.command("-c", code), cwd=tmp_path, env=ENV, input=b"typed", capture_output=True)
    assert (ran.returncode, ran.stdout.decode()) == (3, f"{tmp_path} grün typed\n")
    code = "import os, time; print(os.getpid(), flush=True); os.close(1); time.sleep(1000)"
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(fork_server.command("-c", code), env=ENV, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            pid = int(process.stdout.read())
            process.send_signal(number)
            assert process.wait(PATIENCE_SECONDS) == -number
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())


def test_the_workers_of_a_run_share_what_they_fork_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", str(tmp_path))
    host = fork_server.Host(modules=("json",))
    servers = in_threads(4, lambda _: fork_server._Server(host))
    parents = set()
    for server in servers:  # it stays for the others
        monkeypatch.setitem(fork_server._running, host, server)
        ran = fork_server.run("-c", "import os; print(os.getppid())", env=ENV, cwd=tmp_path, host=host)
        parents.add(int(ran.stdout))
        server.close()
    assert len(parents) == 1
    wait_until(lambda: not Path(servers[0].name).exists())
    wait_until(lambda: not is_running(*parents))
