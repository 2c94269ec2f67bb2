"""What holds for every chat platform, whoever wrote it."""

from __future__ import annotations

import dataclasses
import inspect
from importlib import import_module
from typing import Any

import pytest

from handrail import platforms
from handrail.platforms.base import ChatAdapter, SendTarget
from handrail.platforms.table import platforms as names

PACKAGE = platforms.__name__


def _members(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def _parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize("kind", names("Target"))
def test_a_target_is_its_settings_and_sends(kind: str) -> None:
    target = import_module(f"{PACKAGE}.{kind}").Target
    assert dataclasses.is_dataclass(target)
    assert target.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert [name for name in _members(SendTarget) if not hasattr(target, name)] == []
    assert inspect.iscoroutinefunction(target.send)


@pytest.mark.parametrize("kind", names("Adapter"))
def test_an_adapter_has_every_method_that_the_gateway_calls(kind: str) -> None:
    module = import_module(f"{PACKAGE}.{kind}")
    assert dataclasses.is_dataclass(module.Settings)
    assert _parameters(module.Adapter) == ["settings"]
    for name in _members(ChatAdapter):
        ours, theirs = getattr(ChatAdapter, name), getattr(module.Adapter, name)
        if inspect.isfunction(ours):
            assert _parameters(theirs) == _parameters(ours), name
            assert inspect.iscoroutinefunction(theirs) == inspect.iscoroutinefunction(ours)


@pytest.mark.parametrize("kind", sorted({*names("Target"), *names("Adapter")}))
def test_a_platform_says_what_it_is(kind: str) -> None:
    assert import_module(f"{PACKAGE}.{kind}").__doc__
