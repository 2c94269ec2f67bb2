"""Real shells: on this machine directly, and through frames as on any other machine."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.base import CommandResult
from handrail.environments.in_loop import execute
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.output import OutputSink
from handrail.environments.protection import Protection
from handrail.environments.shell_host import proc
from handrail.environments.transport.link import DirectLink, Link
from handrail.environments.transport.session import Session, Transport
from handrail.types import CancelToken

from .. import shell_hosts
from ..shell_hosts import FramedTransport, below
from ..support import PATIENCE_SECONDS, wait_until

Run = Callable[..., CommandResult]


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test with rows of its own tries each in one kind of shell: all meet the same code. What has no rows meets every kind."""
    case = getattr(item, "callspec", None)
    if case is not None and "shell" in case.indices and len(case.indices) > 1:
        item.add_marker(pytest.mark.by_turns("shell"))


# The processes that keep the fork server warm. Their shells have the same small numbers in their namespaces as those of a test.
_warm: set[int] = set()


class FramedEnvironment(LiveEnvironment):
    """A shell of this machine, reached as one on another machine is."""

    name = "framed"
    persistent = True

    def __init__(self, cwd: str, processes_dir: str, python: str = sys.executable) -> None:
        super().__init__()
        self._first_cwd, self._processes_dir, self._python = cwd, processes_dir, python

    def connect(self, state: bytes | None) -> Link:
        kind = FramedTransport if self._python == sys.executable else Transport
        transport = kind(argv=list, where="a process", python=self._python)
        return Session(transport, env={}, cwd=self._first_cwd, jobs_root=self._processes_dir, state=state)


class LoopEnvironment(LocalEnvironment):
    """A shell of this machine, whose commands are run as an async caller runs them."""

    _is_run_in_loop: ContextVar[bool] = ContextVar("is_run_in_loop", default=False)

    def execute(self, command: str, **options: Any) -> CommandResult:
        if self._is_run_in_loop.get() or {"stdin", "env", "on_output"} & options.keys():
            return super().execute(command, **options)
        self._is_run_in_loop.set(True)
        options = {"cwd": None, "timeout": None, "cancel": None, "output": None} | options
        options |= {"cancel": options["cancel"] or CancelToken(), "output": options["output"] or OutputSink()}
        try:
            return asyncio.run(execute(self, command, **options))
        finally:
            self._is_run_in_loop.set(False)


@pytest.fixture(scope="session")
def protection(tmp_path_factory: pytest.TempPathFactory) -> Protection:
    """The usual one, of folders of Handrail that these tests share."""
    return Protection(home=str(tmp_path_factory.mktemp("protected")))


class WarmForkServer:
    """Of all tests with this protection: each starts its own shell in some milliseconds."""

    def __init__(self, folder: str, protection: Protection) -> None:
        self._folder, self._protection = folder, protection
        self._kept: LocalEnvironment | None = None

    def warm(self) -> None:
        """Also after a test that killed it."""
        link = self._kept._link if self._kept is not None else None
        if not (isinstance(link, DirectLink) and link._fork_server.is_alive):
            self.close()
            self._kept = LocalEnvironment(self._folder, protection=self._protection)
            self._kept.start()
            _warm.update(below())

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()


@pytest.fixture(scope="session")
def _warm_fork_server(protection: Protection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmForkServer]:
    server = WarmForkServer(str(tmp_path_factory.mktemp("warm")), protection)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _nothing_is_left(_warm_fork_server: WarmForkServer) -> Iterator[None]:
    _warm_fork_server.warm()
    shell_hosts.prepare()
    processes, descriptors = below(), _descriptors()
    yield
    wait_until(
        lambda: below() <= processes,
        otherwise=lambda: f"left running: {[proc.command_line(p) for p in below() - processes]}",
    )
    wait_until(
        lambda: len(_descriptors()) <= len(descriptors),
        otherwise=lambda: f"left open: {sorted(set(_descriptors().items()) - set(descriptors.items()))}",
    )


@pytest.fixture
def orphans() -> Iterator[None]:
    """Held by a test that leaves something behind or clears up: other workers clear away whatever has lost its owner, too."""
    with open(Path(tempfile.gettempdir(), "handrail-tests.orphans"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def anyones() -> Iterator[Path]:
    """A folder that other users can enter. It is not below pytest's own, which every run that begins closes to them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@pytest.fixture
def local(tmp_path: Path, work: Path, protection: Protection) -> Iterator[LocalEnvironment]:
    processes = str(tmp_path / "processes")
    with LocalEnvironment(str(work), processes_dir=processes, protection=protection) as environment:
        yield environment


@pytest.fixture(params=["local", "framed", "in a loop"])
def shell(
    request: pytest.FixtureRequest, tmp_path: Path, work: Path, protection: Protection
) -> Iterator[LiveEnvironment]:
    processes = str(tmp_path / "processes")
    made: LiveEnvironment
    if request.param == "framed":
        made = FramedEnvironment(str(work), processes)
    else:
        kind = LocalEnvironment if request.param == "local" else LoopEnvironment
        made = kind(str(work), processes_dir=processes, protection=protection)
    with made:
        yield made


@pytest.fixture
def run(shell: LiveEnvironment) -> Run:
    """Run a command that should end by itself: a test that hangs fails instead."""

    def run(command: str, **options: object) -> CommandResult:
        return shell.execute(command, **{"timeout": PATIENCE_SECONDS, **options})  # type: ignore[arg-type]

    return run


def text(result: CommandResult) -> str:
    return result.output.head.decode()


def naps() -> list[str]:
    """The sleeps that run below this process: of this test, whatever else goes on on the machine."""
    found = (proc.command_line(pid) for pid in below())
    return sorted(words for words in found if words.startswith("sleep "))


def is_running(pid: int) -> bool:
    """Whether a process has this number: here, or in the process namespace of a command of this test."""
    return any(map(_runs, known_as(pid)))


def host_pid(pid: int) -> int:
    """The number here of a process that commands know by `pid`."""
    mine = below()
    (found,) = (number for number in known_as(pid) if number in mine)
    return found


def known_as(pid: int) -> list[int]:
    """The numbers here of the processes of this test that have the number `pid` in their own namespace."""
    found = []
    for number in {int(name) for name in os.listdir("/proc") if name.isdigit()} - _warm:
        with contextlib.suppress(OSError), open(f"/proc/{number}/status") as file:
            inner = re.search(r"^NSpid:.*\s(\d+)$", file.read(), re.MULTILINE)
            if inner is not None and int(inner[1]) == pid and _is_of_this_test(number):
                found.append(number)
    return found


def _is_of_this_test(pid: int) -> bool:
    """Whether it is below this process, or has outlived a runtime of this worker's tests. Numbers in namespaces are small: a
    process of another test, or of a container, often has the same."""
    if pid in below():
        return True
    stat, mine = proc.stat_of(pid), proc.stat_of(os.getpid())
    if stat is not None and mine is not None and os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid"):
        return stat.start >= mine.start  # in no namespace of its own, a number is nobody else's
    folder = os.path.dirname(os.environ["HANDRAIL_HOME"])  # all folders of this worker's tests lie in it
    places = [os.readlink(f"/proc/{pid}/cwd")]
    if stat is not None:  # its supervisor, which writes to the folder of the process
        places += [os.readlink(link) for link in Path(f"/proc/{stat.parent}/fd").iterdir() if link.is_symlink()]
    return any(place.startswith(folder + "/") for place in places)


def _runs(pid: int) -> bool:
    stat = proc.stat_of(pid)
    return stat is not None and stat.state not in b"ZX"


def _descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found
