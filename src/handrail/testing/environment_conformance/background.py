"""Background processes, those that a command left running, and those with a terminal."""

import contextlib

from ...environments.base import ProcessState, PtyProcess
from ...environments.errors import EnvironmentStartError, InputRefused, NoSuchProcess
from .place import Place, check, expect, expect_error, expect_that, takes_at_most

_LOOKS = 10


def it_has_the_shells_state(place: Place) -> None:
    """It begins with a copy of the shell's state, and changes nothing of it."""
    place.run("cd /usr; kit_plain=1; kit_function() { echo function; }")
    process = place.env.background("pwd; echo $kit_plain; kit_function; kit_plain=2")
    expect(process.wait(place.patience).exit_code, 0, "exit code")
    expect(process.read().data, b"/usr\n1\nfunction\n", "output")
    place.says("echo $kit_plain", "1\n")
    process.forget()


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


def it_can_be_killed(place: Place) -> None:
    """Killing it ends all that it started, also what ignores SIGTERM in a session of its own."""
    nap = place.nap()
    process = place.env.background(f"(setsid bash -c 'trap \"\" TERM; echo up; sleep {nap}' &); sleep {nap}")
    expect_that(process.read(timeout=place.patience).data, "it does not start")
    expect(process.kill(grace=0.1).state, ProcessState.ENDED, "state")
    place.expect_gone(nap, "what was killed")
    process.forget()


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


def what_is_left_running_holds_up_nobody(place: Place) -> None:
    """`sleep 100 &` returns immediately, although the process holds the command's output."""
    nap = place.nap()
    with takes_at_most(place.patience / 3, "a command that ends with &"):
        place.says(f"sleep {nap} & echo started", "started\n")
    place.wait_until_asleep(nap)
    place.works()
    place.run("kill -9 $!")
    place.expect_gone(nap, "what was killed")


def what_is_left_running_is_named(place: Place) -> None:
    """The result and the environment name what a command left running, and only the command that left it."""
    nap = place.nap()
    result = place.run(f"sleep {nap} &")
    expect(len(result.left_running), 1, "number of processes that the result names")
    expect(place.run("true").left_running, (), "what the next result names")

    def is_named() -> bool:
        left = [one.command_line for one in place.env.left_running() if one.pid == result.left_running[0].pid]
        return any(nap in command_line for command_line in left)

    place.wait_until(is_named, f"left_running() does not name `sleep {nap}`")
    place.run("kill -9 $!")
    place.wait_until(lambda: not place.env.left_running(), "what has ended is still named")


def what_is_left_running_can_be_adopted(place: Place) -> None:
    """What was left running can be looked at, read and killed, with all that it started."""
    nap = place.nap()
    result = place.run(f"(echo late; trap '' TERM; sleep {nap}) &")
    expect(len(result.left_running), 1, "number of processes that the result names")
    process = place.env.adopt(result.left_running[0])
    expect(process.poll().state, ProcessState.RUNNING, "state")
    early = b"late" in result.output.head
    expect_that(early or b"late" in process.read(timeout=place.patience).data, "what it printed is lost")
    place.wait_until_asleep(nap)
    expect(process.kill(grace=0.1).state, ProcessState.ENDED, "state after the kill")
    place.expect_gone(nap, "what was killed")


def _wait_for(place: Place, process: PtyProcess, words: bytes) -> None:
    place.wait_until(lambda: words in process.read().data, f"{words!r} does not appear on the terminal")


def it_is_a_terminal(place: Place) -> None:
    """A program finds a terminal of the size that was asked for on stdin, stdout and stderr."""
    place.needs_pty()
    process = place.env.open_pty("test -t 0 -a -t 1 -a -t 2 && echo terminal; stty size", rows=33, columns=99)
    expect(process.wait(place.patience).exit_code, 0, "exit code")
    expect(process.read().data.split(), [b"terminal", b"33", b"99"], "what it says of its terminal")
    expect(process.has_pty, True, "has_pty")
    process.forget()


def it_takes_keys(place: Place) -> None:
    """What is typed is echoed and read; Ctrl-C interrupts; Ctrl-D ends the input."""
    place.needs_pty()
    process = place.env.open_pty(
        "trap 'echo interrupted; exit 5' INT; read kit_line; echo read $kit_line; cat; echo end; while :; do sleep .02; done"
    )
    process.write(b"word\r")
    _wait_for(place, process, b"read word")
    process.close_stdin()
    _wait_for(place, process, b"end")
    process.write(b"\x03")
    expect(process.wait(place.patience).exit_code, 5, "exit code after Ctrl-C")
    expect_that(b"interrupted" in process.read().data, "Ctrl-C did not reach the program")
    process.forget()


def it_can_be_resized(place: Place) -> None:
    """A program is told when its terminal changes size."""
    place.needs_pty()
    process = place.env.open_pty("trap 'stty size' WINCH; echo up; while :; do sleep .02; done")
    _wait_for(place, process, b"up")
    process.resize(40, 123)
    _wait_for(place, process, b"40 123")
    process.forget()


def waiting_for_input_is_seen(place: Place) -> None:
    """A program that waits for someone to type is told from one that only takes its time."""
    place.needs_pty()
    asks = place.env.open_pty('read -p "name? " kit_name; echo "hello $kit_name"')
    place.wait_until(asks.waits_for_input, "a program that reads its terminal is not seen to wait")
    expect_that(b"name? " in asks.read().data, "the question is not there when the program waits for the answer")
    asks.write(b"bob\r")
    expect(asks.wait(place.patience).exit_code, 0, "exit code")
    expect_that(b"hello bob" in asks.read().data, "the answer did not arrive")
    asks.forget()
    sleeps = place.env.open_pty(f"echo up; sleep {place.nap()}")
    _wait_for(place, sleeps, b"up")
    seems_to_wait = any(sleeps.waits_for_input() for _ in range(_LOOKS))
    expect_that(not seems_to_wait, "a program that sleeps is taken for one that waits")
    sleeps.forget()
