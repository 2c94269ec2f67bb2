"""What the exit codes mean."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..errors import HandrailError, ToolError, UnknownToolset

if TYPE_CHECKING:
    from ..core.outcome import Outcome


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    BLOCKED = 4
    TIMEOUT = 124
    INTERRUPTED = 130
    # As the shell reports a program that died of SIGPIPE: whoever read our output went away.
    READER_GONE = 141


_BY_ERROR_TYPE = {
    "denied": ExitCode.DENIED,
    "timeout": ExitCode.TIMEOUT,
    "cancelled": ExitCode.INTERRUPTED,
    "invalid_arguments": ExitCode.USAGE,
    "unknown_tool": ExitCode.USAGE,
}


def of_outcome(outcome: Outcome) -> ExitCode:
    """The code for what a call gave back."""
    from ..core.outcome import error_of

    failure = error_of(outcome)
    if failure is None:
        return ExitCode.OK
    return _BY_ERROR_TYPE.get(str(failure.get("error_type")), ExitCode.FAILED)


def of_error(error: HandrailError) -> ExitCode:
    """The code for an error that ended a command."""
    if isinstance(error, UnknownToolset):
        return ExitCode.USAGE
    if isinstance(error, ToolError):
        return _BY_ERROR_TYPE.get(error.error_type, ExitCode.FAILED)
    return ExitCode.FAILED
