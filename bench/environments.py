"""Figures of environments: latency, state, output, concurrency, time limits, memory."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from handrail.environments.base import Environment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
from handrail.environments.shell_host import proc

from .harness import Figure, alternating, milliseconds, paired

_PAIR = ("cd /tmp; export STATE=kept", "pwd; echo $STATE")
_MEGABYTES = 50
_SLEEPS = 50
_SLEEP_SECONDS = 0.2
_LIMIT_SECONDS = 1.0
_TASKS = 200
_LINES_A_SECOND, _FLOOD_SECONDS = 10_000, 60


def figures() -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalEnvironment(folder, processes_dir=f"{folder}/processes") as local,
    ):
        yield echo("`echo hi`, to a one-shot bash -c", lambda: _echo(local), limit=0.3)
        yield protected(folder, local)
        yield state_pair(local)
        for name, there in elsewhere(folder).items():
            with there:
                yield echo_elsewhere(name, there, local)
        yield from big_output(local)
        yield flood(local)
        yield time_limit(local)
        yield background(local)
    with tempfile.TemporaryDirectory() as folder:
        yield concurrent(folder)
        yield from many(folder)


def elsewhere(folder: str) -> dict[str, LocalEnvironment]:
    """Environments whose commands go over a channel, by how they are called in the table."""
    return {
        one.value: LocalEnvironment(folder, sandbox=SandboxPolicy(network=True, mechanism=one)) for one in Mechanism
    }


def echo(what: str, run: Callable[[], bytes], *, limit: float) -> Figure:
    """`run` runs the command in any way, and gives what it printed."""

    def ours(count: int) -> None:
        for _ in range(count):
            assert run() == b"hi\n"

    def floor(count: int) -> None:
        for _ in range(count):
            assert subprocess.run(["bash", "-c", "echo hi"], capture_output=True, check=True).stdout == b"hi\n"

    mine, base, ratio = paired(ours, floor)
    peers = "hermes 6.5, SWE-ReX 51, stateless ones 0.7-1.6"
    return Figure(what, milliseconds(mine), milliseconds(base), ratio, limit, peers)


def protected(folder: str, local: Environment) -> Figure:
    with LocalEnvironment(folder, protection=None, processes_dir=f"{folder}/processes") as plain:

        def ours(count: int) -> None:
            for _ in range(count):
                _echo(local)

        def floor(count: int) -> None:
            for _ in range(count):
                _echo(plain)

        mine, base, ratio = paired(ours, floor, rounds=41)
    return Figure(
        "  the same in the protected namespace, to without", milliseconds(mine), milliseconds(base), ratio, 1.05
    )


def echo_elsewhere(name: str, there: Environment, local: Environment) -> Figure:
    def ours(count: int) -> None:
        for _ in range(count):
            assert _echo(there) == b"hi\n"

    def floor(count: int) -> None:
        for _ in range(count):
            assert _echo(local) == b"hi\n"

    mine, base, ratio = paired(ours, floor)
    peers = "one docker exec 45, ssh 16, apptainer exec 40"
    return Figure(f"  the same in {name}, to the local one", milliseconds(mine), milliseconds(base), ratio, 4, peers)


def _echo(environment: Environment) -> bytes:
    return environment.execute("echo hi", timeout=60).output.head


def state_pair(local: LocalEnvironment) -> Figure:
    bash = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert bash.stdin is not None
    assert bash.stdout is not None
    write, read = bash.stdin.fileno(), bash.stdout.fileno()

    def bare(text: str) -> bytes:
        os.write(write, text.encode() + b"\necho END\n")
        found = b""
        while not found.endswith(b"END\n"):
            found += os.read(read, 65536)
        return found

    def ours(count: int) -> None:
        for _ in range(count):
            local.execute(_PAIR[0], timeout=60)
            assert local.execute(_PAIR[1], timeout=60).output.head == b"/tmp\nkept\n"

    def floor(count: int) -> None:
        for _ in range(count):
            bare(_PAIR[0])
            assert bare(_PAIR[1]) == b"/tmp\nkept\nEND\n"

    try:
        mine, base, ratio = paired(ours, floor)
    finally:
        bash.stdin.close()
        bash.stdout.close()
        bash.wait()
    return Figure(
        "a state pair, to a bare live bash",
        milliseconds(mine),
        milliseconds(base),
        ratio,
        10,
        "hermes 137, SWE-ReX 901",
    )


def big_output(local: LocalEnvironment) -> Iterator[Figure]:
    command = f"head -c {_MEGABYTES << 20} /dev/zero"

    def ours() -> float:
        start = time.perf_counter()
        output = local.execute(command, timeout=60).output
        elapsed = time.perf_counter() - start
        assert output.total_bytes == _MEGABYTES << 20
        assert output.head
        assert output.tail
        return elapsed

    def raw() -> float:
        start = time.perf_counter()
        with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            total = 0
            while count := len(os.read(process.stdout.fileno(), 65536)):
                total += count
        elapsed = time.perf_counter() - start
        assert total == _MEGABYTES << 20
        return elapsed

    mine, base, ratio = alternating(ours, raw, rounds=11)
    peers = "1.06-4.2, hermes 2.8"
    yield Figure(f"{_MEGABYTES} MB of output, to a raw read", milliseconds(mine), milliseconds(base), ratio, 1.5, peers)
    before = _peak_kilobytes()
    ours()
    grown = (_peak_kilobytes() - before) / 1024
    yield Figure("  memory that it takes, of 10 MB", f"{grown:.1f} MB", "10 MB", grown / 10, 1)


def flood(local: LocalEnvironment) -> Figure:
    """Whoever is asked to keep up with a talkative program loses nothing, and does not fall behind."""
    burst = _LINES_A_SECOND // 100
    # Bursts are due at fixed times, so that one that comes late is made up for.
    command = (
        f"for ((due = ${{EPOCHREALTIME/./}}, n = 0; n < {_LINES_A_SECOND * _FLOOD_SECONDS}; n += {burst})); do "
        f"printf 'line %s\\n' {{1..{burst}}}; ((due += 10000, left = due - ${{EPOCHREALTIME/./}})); "
        "if ((left > 0)); then printf -v pause 0.%06d $left; sleep $pause; fi; done"
    )
    lines = 0

    def listen(piece: bytes) -> None:
        nonlocal lines
        lines += piece.count(b"\n")

    before, start = _peak_kilobytes(), time.perf_counter()
    assert local.execute(command, timeout=4 * _FLOOD_SECONDS, on_output=listen).exit_code == 0
    elapsed = time.perf_counter() - start
    assert lines == _LINES_A_SECOND * _FLOOD_SECONDS, f"{lines} lines came"
    assert _peak_kilobytes() - before < 10 << 10
    what = f"{_LINES_A_SECOND:,} lines a second for {_FLOOD_SECONDS} s; 0 lost"
    return Figure(what, f"{elapsed:.1f} s", f"{_FLOOD_SECONDS} s", elapsed / _FLOOD_SECONDS, 1.1)


def time_limit(local: LocalEnvironment) -> Figure:
    stubborn = "bash -c 'trap \"\" TERM; (setsid sleep 4242 &) ; sleep 4243' & sleep 4244"
    overshoots = []
    for command in ("sleep 4241", stubborn) * 3:
        start = time.perf_counter()
        assert local.execute(command, timeout=_LIMIT_SECONDS).timed_out
        overshoots.append(time.perf_counter() - start - _LIMIT_SECONDS)
        assert not [pid for pid in proc.tree(os.getpid()) if proc.command_line(pid).startswith("sleep 424")]
    worst = max(overshoots)
    peers = "hermes 1.4 s; SWE-ReX leaves 1-2 alive"
    return Figure("a limit of 1 s: overshoot, of 80 ms; 0 alive", milliseconds(worst), "80 ms", worst / 0.08, 1, peers)


def background(local: LocalEnvironment) -> Figure:
    def ours() -> float:
        start = time.perf_counter()
        process = local.background("echo up; exec sleep 60")
        assert process.read(timeout=5).data == b"up\n"
        elapsed = time.perf_counter() - start
        process.kill(grace=0.05)
        process.forget()
        return elapsed

    def floor() -> float:
        start = time.perf_counter()
        with subprocess.Popen(["bash", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 100) == b"up\n"
            elapsed = time.perf_counter() - start
            process.send_signal(signal.SIGKILL)
        return elapsed

    mine, base, ratio = alternating(ours, floor, rounds=15)
    what = "background: start to first output, to a bare bash"
    return Figure(what, milliseconds(mine), milliseconds(base), ratio, 5 / 1.5, "hermes 97")


def concurrent(folder: str) -> Figure:
    with ExitStack() as stack:
        tasks = [stack.enter_context(LocalEnvironment(folder)) for _ in range(_SLEEPS)]
        pool = stack.enter_context(ThreadPoolExecutor(_SLEEPS))
        barrier = threading.Barrier(_SLEEPS + 1)

        def run(task: LocalEnvironment) -> None:
            barrier.wait()
            assert task.execute(f"sleep {_SLEEP_SECONDS}", timeout=60).exit_code == 0

        def ours() -> float:
            futures = [pool.submit(run, task) for task in tasks]
            barrier.wait()
            start = time.perf_counter()
            for future in futures:
                future.result()
            return time.perf_counter() - start

        mine, base, ratio = alternating(ours, lambda: _SLEEP_SECONDS, rounds=7)
    what = f"{_SLEEPS} sleeps of 0.2 s in {_SLEEPS} tasks"
    return Figure(what, milliseconds(mine), milliseconds(base), ratio, 1.4, "best 1.3")


def many(folder: str) -> Iterator[Figure]:
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(8))
        base = min(_open_bashes() for _ in range(3))
        start = time.perf_counter()
        tasks = [LocalEnvironment(folder) for _ in range(_TASKS)]
        for task in tasks:
            stack.callback(task.close)
        for answer in pool.map(lambda task: task.execute("echo hi", timeout=60), tasks):
            assert answer.output.head == b"hi\n"
        elapsed = time.perf_counter() - start
        what = f"{_TASKS} tasks open and answering, to bare bashes"
        # 1.5 s on a machine where the bare ones take a third of a second.
        yield Figure(what, milliseconds(elapsed), milliseconds(base), elapsed / base, 1.5 / 0.33)
        each = _memory_below(os.getpid()) / _TASKS
        yield Figure("  memory of each, of 3 MB", f"{each / 1024:.2f} MB", "3 MB", each / 1024 / 3, 1)


def _open_bashes() -> float:
    """Seconds until as many bare shells live side by side and have answered."""
    start = time.perf_counter()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    shells = [subprocess.Popen(["bash", "--norc"], bufsize=0, **pipes) for _ in range(_TASKS)]  # type: ignore[call-overload]
    for shell in shells:
        shell.stdin.write(b"echo hi\n")
    for shell in shells:
        assert shell.stdout.readline() == b"hi\n"
    elapsed = time.perf_counter() - start
    for shell in shells:
        shell.communicate()
    return elapsed


def _peak_kilobytes() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def _memory_below(root: int) -> int:
    """Proportional memory of all descendants, in kilobytes."""
    total = 0
    for pid in proc.tree(root):
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total
