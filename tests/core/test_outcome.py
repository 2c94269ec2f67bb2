"""The shape of what a call gives back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from handrail.core.outcome import error_of, error_outcome, failure_outcome, to_outcome, tool_error, tool_result
from handrail.errors import (
    CallCancelled,
    CallTimeout,
    Denied,
    InvalidArguments,
    NeedsAgent,
    ResultContract,
    ToolError,
    ToolFailed,
    ToolUnavailable,
    UnknownTool,
)
from tests.support import error_in


def test_results_and_errors_are_written_as_json() -> None:
    assert tool_result(a=1, b="ü") == '{"a": 1, "b": "ü"}'
    assert tool_result([1, 2]) == "[1, 2]"
    assert json.loads(tool_error("it broke", hint="fix it")) == {
        "error": "it broke",
        "error_type": "tool_failed",
        "hint": "fix it",
    }


@pytest.mark.parametrize(
    ("kind", "error_type"),
    [
        (UnknownTool, "unknown_tool"),
        (InvalidArguments, "invalid_arguments"),
        (ToolUnavailable, "unavailable"),
        (NeedsAgent, "needs_agent"),
        (Denied, "denied"),
        (CallTimeout, "timeout"),
        (CallCancelled, "cancelled"),
        (ResultContract, "tool_result_contract"),
        (ToolFailed, "tool_failed"),
    ],
)
def test_every_kind_of_error_has_a_type_that_programs_can_rely_on(kind: type[ToolError], error_type: str) -> None:
    error = error_in(error_outcome(kind("what happened", hint="do this")))
    assert error == {"error": "what happened", "error_type": error_type, "hint": "do this"}


def test_an_unexpected_exception_is_told_by_its_type_and_text() -> None:
    assert error_in(failure_outcome(ZeroDivisionError("division by zero")))["error"] == (
        "Tool execution failed: ZeroDivisionError: division by zero"
    )
    assert error_in(failure_outcome(Denied("no")))["error_type"] == "denied"


def test_the_whole_of_an_error_is_safe_to_show_a_model() -> None:
    secret = "ghp_" + "a1B2" * 8
    spoiled = f"<tool_call>{secret}</tool_call>```\x00"
    text = error_outcome(ToolFailed(spoiled, hint=spoiled, places=[spoiled], more={"deep": spoiled}))
    for trace in (secret, "<tool_call>", "```", "\\u0000"):
        assert trace not in text


def test_an_error_stays_short_whatever_it_is_given() -> None:
    assert len(error_outcome(ToolFailed("x" * 1_000_000))) < 3_000
    assert len(failure_outcome(ValueError("x" * 1_000_000))) < 3_000


def test_only_an_object_with_an_error_in_it_reports_one() -> None:
    assert error_of('{"error": "x", "error_type": "timeout"}') == {"error": "x", "error_type": "timeout"}
    for fine in ('{"error": null}', '{"error": ""}', '["error"]', "error", '{"error": ', '{"note": "no \\"error\\""}'):
        assert error_of(fine) is None
    assert error_of({"_multimodal": True, "content": []}) is None


def test_text_nested_beyond_reason_reports_no_error() -> None:
    assert error_of('{"error": ' + "[" * 100_000) is None


class Spiky(BaseModel):
    x: float


@pytest.mark.parametrize(
    "value", [Spiky(x=float("nan")), Spiky, {"_multimodal": True}, {"_multimodal": 1, "content": []}]
)
def test_what_only_looks_like_a_result_is_json_or_an_error(value: Any) -> None:
    try:
        outcome = to_outcome("tool", value)
    except ResultContract:
        return
    assert isinstance(outcome, str)
    json.loads(outcome)
