"""The result of a command that has ended, as the model reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .exit_codes import meaning

if TYPE_CHECKING:
    from ...environments.output_capture import Shown
    from ...types import JsonDict


def ended(command: str, exit_code: int, shown: Shown) -> JsonDict:
    """Its output and exit code; for a failure also an error, and what the code means where that is not obvious."""
    answer: JsonDict = {"output": shown.text, "exit_code": exit_code}
    if shown.stored is not None:
        answer["stored"] = shown.stored
    if exit_code == 0:
        return answer
    known = meaning(command, exit_code, printed=bool(shown.text))
    if known is None or known.is_failure:
        answer |= {"error": f"the command failed with exit code {exit_code}", "error_type": "command_failed"}
    if known is not None:
        answer["meaning"] = known.text
    return answer


def timed_out(seconds: float) -> JsonDict:
    why = f"the command timed out after {seconds:g} s and was ended with all that it had started"
    return {"error": f"{why}; give it a longer timeout, or run it with background", "error_type": "timeout"}


def cancelled() -> JsonDict:
    return {"error": "the command was cancelled, and ended with all that it had started", "error_type": "cancelled"}


def with_notes(answer: JsonDict, *notes: str) -> JsonDict:
    return {**answer, "note": "; ".join(notes)} if notes else answer
