"""What happens when the environment goes away under a command."""

from __future__ import annotations

from ...environments.base import RestartReason
from ...environments.errors import EnvironmentLost
from .check import check, expect, expect_that
from .place import Place


@check(quick=False, fresh=True)
def a_lost_environment_is_an_error_and_comes_back(place: Place) -> None:
    """When the connection or the container is lost in mid-command the call ends with an error, and the next one works."""
    break_connection = place.needs_break_connection()
    nap = place.nap()
    with place.running(f"echo begun; sleep {nap}") as command:
        break_connection(place.env)
        outcome = command.end()
    expect_that(
        isinstance(outcome, EnvironmentLost), f"expected EnvironmentLost, and the command ended with {outcome!r}"
    )
    result = place.says("echo back again", "back again\n")
    expect_that(result.restarted is not None, "the next result does not say that the shell is another one")
    if result.restarted is not None:
        expect(result.restarted.reason, RestartReason.LOST, "the reason that the next result gives")
    place.wait_until(lambda: not place.is_asleep(nap), "the command that was lost is still running")
    place.works()
