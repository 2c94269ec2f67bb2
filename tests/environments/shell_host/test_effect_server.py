"""Which call a process belongs to, and what becomes of a system call that cannot be looked at."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from unittest import mock

import pytest

from handrail.environments.shell_host import proc
from handrail.environments.shell_host.effect_server import Watched
from handrail.environments.shell_host.effect_watcher import EffectWatcher
from handrail.environments.shell_host.syscall_filter import numbers
from handrail.environments.shell_host.syscall_names import Unreadable


def _watched(left: dict[int, tuple[int, int]]) -> Watched:
    watched = object.__new__(Watched)
    watched._left, watched._bash = left, 0
    return watched


def test_what_is_below_a_process_that_a_call_has_left_belongs_to_that_call() -> None:
    stat = proc.stat_of(os.getpid())
    assert stat is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert _watched({os.getpid(): (7, stat.start)})._left_by(child.pid) == 7
        assert _watched({os.getpid(): (7, stat.start + 1)})._left_by(child.pid) is None
        child.communicate(b"\n")


def test_a_process_that_is_gone_belongs_to_no_call_that_has_left_something() -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    assert _watched({1: (7, 0)})._left_by(gone.pid) is None


@pytest.mark.parametrize(
    "problem", [Unreadable(), ValueError("no number"), OSError(errno.ESRCH, "gone"), KeyError("x")]
)
@pytest.mark.parametrize("call", ["connect", "sendto", "sendmsg", "sendmmsg"])
def test_a_connection_that_cannot_be_looked_at_is_refused_where_connections_wait(problem: Exception, call: str) -> None:
    for holds_network, is_tried in ((True, False), (False, True), (False, False)):
        call_of = mock.Mock(return_value=mock.Mock(is_tried=is_tried))
        with open(os.devnull) as listener:
            watcher = EffectWatcher(listener.fileno(), call_of, lambda _: False, holds_network=holds_network)
        number = numbers()[call]
        watcher._handlers[number] = mock.Mock(side_effect=problem), list

        expected = errno.EACCES if holds_network or is_tried else None
        assert watcher._error_of(os.getpid(), number, []) == expected
