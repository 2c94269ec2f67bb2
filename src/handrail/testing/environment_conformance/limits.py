"""Time limits and cancelling: the command ends with all that it started, and what was printed stays."""

import shlex
import threading

from ...types import CancelToken
from .place import LIMIT_SECONDS, Place, expect, expect_that, takes_at_most, text


def a_time_limit_ends_the_command(place: Place) -> None:
    """A command over its limit ends with 124, what it printed is there, and the shell's state is kept."""
    nap = place.nap()
    place.run("kit_kept=1")
    result = place.run(f"kit_kept=2; echo before; sleep {nap}; echo after", timeout=LIMIT_SECONDS)
    expect_that(result.timed_out and not result.cancelled, "the result does not say that the time was over")
    expect(result.exit_code, 124, "exit code")
    expect_that(text(result).startswith("before\n"), "what it had printed is lost")
    expect_that("after" not in text(result), "the rest of the command ran")
    place.expect_gone(nap, "the command")
    expect_that(text(place.run("echo $kit_kept")).strip() in ("1", "2"), "the shell's state is lost")


def a_limit_that_is_met_changes_nothing(place: Place) -> None:
    """A command that ends within its limit leaves the shell as it was."""
    pid = text(place.run("echo $$"))
    for _ in range(3):
        expect(place.run("sleep .05", timeout=place.patience / 2).exit_code, 0, "exit code")
    result = place.run("echo $$")
    expect(text(result), pid, "pid of the shell")
    expect(result.restarted, None, "what the result says about a new shell")


def cancelling_ends_the_command(place: Place) -> None:
    """A command that is cancelled from another thread ends with 130 and all that it started; its output is there."""
    nap = place.nap()
    cancel = CancelToken()

    def listen(_: bytes) -> None:
        threading.Thread(target=cancel.cancel, daemon=True).start()

    command = f"echo begun; (setsid sleep {nap} &); sleep {nap}; echo after"
    with takes_at_most(place.patience / 2, "cancelling"):
        result = place.run(command, cancel=cancel, on_output=listen)
    expect_that(result.cancelled and not result.timed_out, "the result does not say that it was cancelled")
    expect(result.exit_code, 130, "exit code")
    is_cut = text(result).startswith("begun\n") and "after" not in text(result)
    expect_that(is_cut, "the output is not what it had printed")
    place.expect_gone(nap, "what the command started")
    place.works()


def what_is_cancelled_beforehand_does_not_run(place: Place) -> None:
    """A command that was cancelled before it began does not run."""
    place.run(f"cd {shlex.quote(place.folder)}")
    cancel = CancelToken()
    cancel.cancel()
    expect_that(place.run("touch never", cancel=cancel).cancelled, "the result does not say that it was cancelled")
    place.says("ls", "")
