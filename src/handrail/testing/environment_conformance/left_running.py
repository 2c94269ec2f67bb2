"""Processes that a command leaves behind on purpose."""

from __future__ import annotations

from ...environments.base import ProcessState
from .check import check, expect, expect_that
from .place import Place, takes_at_most


@check()
def what_is_left_running_holds_up_nobody(place: Place) -> None:
    """`sleep 100 &` returns immediately, although the process holds the command's output."""
    nap = place.nap()
    with takes_at_most(place.patience / 3, "a command that ends with &"):
        place.says(f"sleep {nap} & echo started", "started\n")
    place.wait_until_asleep(nap)
    place.works()
    place.run("kill -9 $!")
    place.expect_gone(nap, "what was killed")


@check()
def what_is_left_running_is_named(place: Place) -> None:
    """The result and the environment name what a command left running, and only the command that left it."""
    nap = place.nap()
    result = place.run(f"sleep {nap} &")
    expect(len(result.left_running), 1, "number of processes that the result names")
    expect(place.run("true").left_running, (), "what the next result names")

    def is_named() -> bool:
        return any(
            one.pid == result.left_running[0].pid and nap in one.command_line for one in place.env.left_running()
        )

    place.wait_until(is_named, f"left_running() does not name `sleep {nap}`")
    place.run("kill -9 $!")
    place.wait_until(lambda: not place.env.left_running(), "what has ended is still named")


@check()
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
