"""An environment that is closed or lost leaves nothing behind, and the next one works."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading

from ...environments import private_dirs
from ...environments.base import RestartReason
from ...environments.errors import EnvironmentClosed, EnvironmentLost
from ...environments.shell_host import proc
from .place import NotApplicable, Place, check, expect, expect_error, expect_that, takes_at_most


@check(fresh=True)
def closing_ends_all_that_runs(place: Place) -> None:
    """What commands left running, background processes and terminals end with the environment."""
    nap = place.nap()
    place.run(f"sleep {nap} & (setsid sleep {nap} >/dev/null 2>&1 &)")
    place.env.background(f"trap '' TERM HUP; sleep {nap}; sleep {nap}")
    if place.env.has_pty:
        place.env.open_pty(f"trap '' TERM HUP; sleep {nap}; sleep {nap}")
    place.wait_until_asleep(nap)
    other = place.another()
    other.start()
    place.env.close()
    place.expect_gone(nap, "what ran in the environment", other)


@check(fresh=True)
def closing_ends_the_command_that_runs(place: Place) -> None:
    """A call that waits for its command returns when another thread closes the environment, and the command ends."""
    nap = place.nap()
    other = place.another()
    other.start()
    with place.running(f"echo begun; sleep {nap}") as command:
        with takes_at_most(place.patience, "closing"):
            place.env.close()
        outcome = command.end()
    timed_out = not isinstance(outcome, BaseException) and outcome.timed_out
    expect_that(not timed_out, "closing did not end the command: its own time was over")
    place.expect_gone(nap, "the command", other)


@check(fresh=True)
def what_is_closed_says_so(place: Place) -> None:
    """Closing twice is the same as once; whatever is asked of a closed environment is an EnvironmentClosed."""
    place.run("true")
    place.env.close()
    place.env.close()
    expect_error(EnvironmentClosed, lambda: place.run("true"), "a command after the end")
    expect_error(EnvironmentClosed, lambda: place.env.background("true"), "a background process after the end")
    expect_error(EnvironmentClosed, lambda: place.env.files.stat("/"), "files after the end")
    expect_error(EnvironmentClosed, place.env.start, "a start after the end")


@check(quick=False)
def nothing_is_left_on_this_machine(place: Place) -> None:
    """Opening, using and closing environments leaves no process, descriptor, thread or temporary file on this machine."""
    _use_and_close(place)  # what is kept for the next ones is made by the first
    before = _Traces()
    with tempfile.TemporaryDirectory() as folder:
        default, tempfile.tempdir = tempfile.tempdir, folder
        try:
            _use_and_close(place)
            # A user's own folder for sockets stays, empty: what covers it for commands would not cover another one.
            shared = [path for path in private_dirs.shared_parents() if os.path.dirname(path) == folder]
            empty = {os.path.basename(path) for path in shared if not os.listdir(path)}
            left = [name for name in os.listdir(folder) if name not in empty]
        finally:
            tempfile.tempdir = default
        expect(left, [], "temporary files")
    place.wait_until_none(lambda: _Traces().since(before), "left behind")


def nothing_is_left_inside(place: Place) -> None:
    """Commands that end, are cut off, or end the shell leave no process inside."""
    mark = f"kit_mark_{place.nap()}"
    place.run(f"export {mark}=1")
    place.run("echo one | cat | cat >/dev/null; x=$(echo two); cat <(echo three) >/dev/null")
    place.run(f"sleep {place.nap()}", timeout=0.2)
    place.run(f"sleep {place.nap()} | cat; exit 3", timeout=0.2)
    process = place.env.background("true")
    process.wait(place.patience)
    process.forget()

    def others() -> str:
        look = f"for kit_p in /proc/[0-9]*; do [ $kit_p != /proc/$$ ] && grep -qs {mark} $kit_p/environ && echo $kit_p; done"
        return place.text(look)

    place.wait_until_none(others, "left inside")
    place.run(f"unset {mark}")


def _use_and_close(place: Place) -> None:
    with contextlib.closing(place.make()) as environment:
        environment.execute("echo used; exit 3", timeout=place.patience)
        environment.execute(f"sleep {place.nap()} &", timeout=place.patience)
        environment.background(f"sleep {place.nap()}")
        environment.files.entries("/")


class _Traces:
    """What this process has: descendants, descriptors, threads."""

    def __init__(self) -> None:
        tree = proc.tree(os.getpid())
        self.processes = {f"process {pid} {stat.start}": proc.command_line(pid) for pid, stat in tree.items()}
        self.descriptors = len(os.listdir("/proc/self/fd"))
        self.threads = {f"thread {thread.name}" for thread in threading.enumerate()}

    def since(self, before: _Traces) -> list[str]:
        """What has come since then."""
        more = self.descriptors - before.descriptors
        return [
            *(f"{name} {self.processes[name]}" for name in self.processes.keys() - before.processes.keys()),
            *([f"{more} descriptors"] if more > 0 else []),
            *(self.threads - before.threads),
        ]


@check(quick=False, fresh=True)
def a_lost_environment_is_an_error_and_comes_back(place: Place) -> None:
    """When the connection or the container is lost in mid-command the call ends with an error, and the next one works."""
    if place.break_connection is None:
        raise NotApplicable("no break_connection was given")
    nap = place.nap()
    with place.running(f"echo begun; sleep {nap}") as command:
        place.break_connection(place.env)
        outcome = command.end()
    is_lost = isinstance(outcome, EnvironmentLost)
    expect_that(is_lost, f"expected EnvironmentLost, and the command ended with {outcome!r}")
    result = place.says("echo back again", "back again\n")
    expect_that(result.restarted is not None, "the next result does not say that the shell is another one")
    if result.restarted is not None:
        expect(result.restarted.reason, RestartReason.LOST, "the reason that the next result gives")
    place.wait_until(lambda: not place.is_asleep(nap), "the command that was lost is still running")
    place.works()
