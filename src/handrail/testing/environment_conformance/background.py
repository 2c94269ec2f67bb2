"""Background processes: they run beside the commands, and can be read, written to and ended."""

from __future__ import annotations

import contextlib

from ...environments.base import ProcessState
from ...environments.errors import EnvironmentStartError, InputRefused, NoSuchProcess
from .check import check, expect, expect_error, expect_that
from .place import Place, takes_at_most


@check()
def it_has_the_shells_state(place: Place) -> None:
    """It begins with a copy of the shell's state, and changes nothing of it."""
    place.run("cd /usr; kit_plain=1; kit_function() { echo function; }")
    process = place.env.background("pwd; echo $kit_plain; kit_function; kit_plain=2")
    expect(process.wait(place.patience).exit_code, 0, "exit code")
    expect(process.read().data, b"/usr\n1\nfunction\n", "output")
    place.says("echo $kit_plain", "1\n")
    process.forget()


@check()
def it_runs_beside_commands(place: Place) -> None:
    """Commands run while it does; its end and its exit code are known afterwards."""
    process = place.env.background("read kit_line; exit 6")
    place.works()
    expect(process.poll().state, ProcessState.RUNNING, "state while it runs")
    with takes_at_most(place.patience / 2, "waiting for 0.05 s"):
        expect(process.wait(0.05).state, ProcessState.RUNNING, "state after waiting for it in vain")
    process.write(b"\n")
    status = process.wait(place.patience)
    expect((status.state, status.exit_code), (ProcessState.ENDED, 6), "state and exit code at its end")
    process.forget()


@check()
def its_output_can_be_read(place: Place) -> None:
    """What it printed can be read from any offset, while it runs and afterwards."""
    process = place.env.background("echo one; echo two >&2; read kit_line; echo three")
    place.wait_until(lambda: process.read().data == b"one\ntwo\n", "its first output does not come")
    piece = process.read(4)
    expect((piece.offset, piece.data, piece.end), (4, b"two\n", 8), "what is read from byte 4 on")
    expect(process.read(8).data, b"", "what is read from the end on")
    process.write(b"\n")
    expect(process.read(8, timeout=place.patience).data, b"three\n", "what is waited for")
    process.wait(place.patience)
    expect(process.read().data, b"one\ntwo\nthree\n", "what is read after its end")
    process.forget()


@check()
def it_reads_what_it_is_given(place: Place) -> None:
    """It reads what is written to it, an end when its input is closed, and after that it takes no more."""
    process = place.env.background("read kit_line; echo got $kit_line; cat; echo end")
    process.write(b"one\n")
    expect(process.read(timeout=place.patience).data, b"got one\n", "answer")
    process.write(b"two\n")
    process.close_stdin()
    expect(process.wait(place.patience).exit_code, 0, "exit code")
    expect(process.read().data, b"got one\ntwo\nend\n", "output")
    expect_error(InputRefused, lambda: process.write(b"three\n"), "input for what has ended")
    process.forget()


@check()
def it_can_be_killed(place: Place) -> None:
    """Killing it ends all that it started, also what ignores SIGTERM in a session of its own."""
    nap = place.nap()
    process = place.env.background(f"(setsid bash -c 'trap \"\" TERM; echo up; sleep {nap}' &); sleep {nap}")
    expect_that(process.read(timeout=place.patience).data, "it does not start")
    expect(process.kill(grace=0.1).state, ProcessState.ENDED, "state")
    place.expect_gone(nap, "what was killed")
    process.forget()


@check()
def it_is_listed_until_it_is_forgotten(place: Place) -> None:
    """It is listed with its command, and forgetting it ends it and takes it off the list."""
    nap = place.nap()
    process = place.env.background(f"sleep {nap}")
    listed = {one.id: one.command for one in place.env.processes()}
    expect(listed.get(process.id), f"sleep {nap}", "the command that is listed for it")
    process.forget()
    expect_that(process.id not in {one.id for one in place.env.processes()}, "it is still listed")
    expect_error(NoSuchProcess, process.poll, "looking at what was forgotten")
    place.expect_gone(nap, "what was forgotten")


@check(quick=False, fresh=True)
def it_outlives_the_environment_if_it_was_to(place: Place) -> None:
    """One that was started to survive is found, read and ended by the next environment; where that cannot be, it is refused."""
    nap = place.nap()
    command = f"echo begun; read kit_line; echo got $kit_line; sleep {nap}"
    if not place.env.persistent:
        start = place.env.background
        expect_error(EnvironmentStartError, lambda: start(command, survives=True), "a process that cannot survive")
        return
    process = place.env.background(command, survives=True)
    expect(process.read(timeout=place.patience).data, b"begun\n", "first output")
    place.env.close()
    with contextlib.closing(place.make()) as other:
        found = [one for one in other.processes() if one.id == process.id]
        expect(len(found), 1, "number of processes that the next environment finds by its id")
        expect(found[0].poll().state, ProcessState.RUNNING, "state")
        found[0].write(b"word\n")
        expect(found[0].read(len("begun\n"), timeout=place.patience).data, b"got word\n", "answer")
        found[0].forget()
        place.expect_gone(nap, "what was forgotten", other)
