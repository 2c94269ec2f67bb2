"""A service is there as long as somebody uses it, and then there is nothing left of it. An ssh server is the quickest one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import fork_server
from ..support import in_threads, takes_less_than, wait_until
from . import leftovers, places
from .components import require
from .sshd import Ssh
from .tenants import ServiceFailed, Services

# Joins a service of the run that is named, says who looks after it, and stays until its stdin ends or it is killed.
_JOIN = """
import sys
from tests.services.sshd import Ssh
from tests.services.tenants import Services
ssh = Ssh.join(Services(sys.argv[1]))
print(ssh.tenant.caretaker, flush=True)
sys.stdin.read()
ssh.tenant.leave()
"""


@pytest.fixture(autouse=True)
def _needed() -> None:
    require("sshd", "ssh-keygen", packages="openssh-server")


@pytest.fixture
def run() -> Iterator[Services]:
    """A run of its own, so that its end can be seen."""
    services = Services()
    yield services
    wait_until(lambda: not _traces(services), otherwise=lambda: f"left: {_traces(services)}")


def _traces(services: Services) -> list[str]:
    """Folders, processes, mounts and control groups that have the run in their name."""
    found = [str(folder) for folder in places.folders() if f".{services.run}." in folder.name]
    for pid in filter(leftovers.is_running, leftovers.processes()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                text = cmdline.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f".{services.run}." in text:
            found.append(text)
    with open("/proc/self/mountinfo") as mounts:
        found += [line for line in mounts if f".{services.run}." in line]
    return found


def _user(services: Services) -> subprocess.Popen[str]:
    command = fork_server.command("-c", _JOIN, services.run)
    return subprocess.Popen(command, cwd=places.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _first_line(user: subprocess.Popen[str]) -> str:
    assert user.stdout
    return user.stdout.readline()


def test_a_service_starts_with_its_first_tenant_and_nothing_is_left_after_its_last(run: Services) -> None:
    with takes_less_than(30), Ssh.join(run).tenant as tenant:
        assert tenant.folder.exists()
        assert _traces(run)
    assert not _traces(run)


def test_processes_that_join_at_once_share_one_service_which_ends_with_the_last_of_them(run: Services) -> None:
    users = [_user(run) for _ in range(4)]
    assert len({_first_line(user) for user in users}) == 1
    for user in users[:-1]:
        user.communicate()
        assert _traces(run)
    users[-1].communicate()
    assert not _traces(run)


def test_a_killed_tenant_is_one_who_left(run: Services) -> None:
    with _user(run) as user:
        assert _first_line(user)
        user.kill()
        wait_until(lambda: not _traces(run), otherwise=lambda: str(_traces(run)))


def test_a_killed_caretaker_takes_its_processes_along_and_the_next_one_removes_its_files(run: Services) -> None:
    ssh = Ssh.join(run)
    os.kill(ssh.tenant.caretaker, signal.SIGKILL)
    wait_until(lambda: _traces(run) == [str(ssh.tenant.folder)], otherwise=lambda: str(_traces(run)))
    ssh.tenant.leave()
    with Ssh.join(run, own=True).tenant:
        assert not ssh.tenant.folder.exists()


def test_what_somebody_uses_is_not_swept_away(run: Services) -> None:
    with Ssh.join(run).tenant as tenant:
        leftovers.sweep()
        assert tenant.folder.exists()
        assert tenant.order("hang_up") is None


def test_tenants_may_come_and_go_at_any_moment(run: Services) -> None:
    def visit(_: int) -> None:
        for _ in range(3):
            with Ssh.join(run).tenant as tenant:
                assert tenant.order("hang_up") is None

    in_threads(4, visit)


def test_a_service_of_ones_own_is_not_shared(run: Services) -> None:
    with Ssh.join(run, own=True).tenant as one, Ssh.join(run, own=True).tenant as other:
        assert one.caretaker != other.caretaker


def test_a_service_that_cannot_start_says_why_and_leaves_nothing(run: Services) -> None:
    with pytest.raises(ServiceFailed, match="unexpected keyword argument 'nonsense'"):
        run.join("sshd:Sshd", nonsense=1)


class Untidy:
    """A service in which something is left when its last tenant leaves."""

    orders: frozenset[str] = frozenset()

    def __init__(self, folder: Path) -> None:
        """The folder is the caretaker's."""

    def start(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        leftovers._LEAVING_SECONDS = 0.01  # in the caretaker's own process
        leftovers.expect_none("containers", lambda: ["one", "two"])


def test_what_is_left_in_a_service_is_told_to_its_last_tenant(run: Services) -> None:
    with pytest.raises(ServiceFailed, match="containers were left behind: one, two"):
        run.join("test_caretaker:Untidy").leave()


def test_an_order_that_a_service_does_not_know_is_refused(run: Services) -> None:
    with Ssh.join(run).tenant as tenant, pytest.raises(ServiceFailed, match="known: hang_up, kill, start_again"):
        tenant.order("explode")


def test_what_a_service_writes_to_the_system_is_seen_by_nobody_else(run: Services) -> None:
    ssh = Ssh.join(run)
    with ssh.tenant:
        assert ssh.run("id", "-un").stdout.decode().strip() == ssh.user
        with open("/etc/passwd") as passwd:
            assert ssh.user not in passwd.read()


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_a_missing_component_is_a_skip_with_its_cure_and_a_failure_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="needs no-such-program: apt-get install some-package"):
        require("no-such-program", packages="some-package")
