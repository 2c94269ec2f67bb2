"""Answers for system calls that wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handrail.environments.held_calls import Decision, HeldCall, HeldCalls


def _held(*, is_tried: bool) -> HeldCalls:
    """With one call, nobody to ask, and a network policy that allows every host."""
    context: Any = SimpleNamespace(effects=SimpleNamespace(is_tried=is_tried), gate=None, cancel=None)
    held = HeldCalls()
    held.deciders["connect"] = lambda *_: Decision.ALLOW
    held.begin(7, context)
    return held


@pytest.mark.parametrize("is_tried", [True, False])
def test_the_network_policy_does_not_decide_about_a_call_that_is_tried(is_tried: bool) -> None:
    held = _held(is_tried=is_tried)
    wanted = HeldCall("connect", "connect", "example.org:443", call=7)
    assert held.answer(wanted) == ("deny" if is_tried else "allow")
    assert bool(held.refused(7)) is is_tried


def test_only_a_call_that_has_begun_is_tried() -> None:
    held = _held(is_tried=True)
    assert [held.is_tried(call) for call in (0, 6, 7)] == [False, False, True]
