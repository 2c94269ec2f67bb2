"""What a check is, and how it reports a failure."""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CheckFunction = Callable[[Any], None]  # takes a `Place`

_MAX_SHOWN = 300


class ConformanceFailure(AssertionError):
    """An environment does not keep a promise; the message says which one, and what was found instead."""


class NotApplicable(unittest.SkipTest):
    """The environment does not claim what the check is about, or the caller gave no means to try it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. `quick` ones take well under a second; `fresh` ones need their own environment."""

    name: str
    sentence: str
    function: CheckFunction
    quick: bool
    fresh: bool

    def __str__(self) -> str:
        return self.name


def check(*, quick: bool = True, fresh: bool = False) -> Callable[[CheckFunction], Check]:
    """Make a check from a function: its docstring is the promise, its module and name are the check's name."""

    def make(function: CheckFunction) -> Check:
        theme = function.__module__.rpartition(".")[2]
        sentence = " ".join((inspect.getdoc(function) or "").split())
        return Check(f"{theme}.{function.__name__}", sentence, function, quick, fresh)

    return make


def expect(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise ConformanceFailure(f"{what}: expected {_shown(wanted)}, found {_shown(found)}")


def expect_that(is_so: object, complaint: str) -> None:
    if not is_so:
        raise ConformanceFailure(complaint)


def expect_error(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object], what: str) -> None:
    """`call` has to raise it, with a message."""
    try:
        found = call()
    except kind as error:
        expect_that(str(error).strip(), f"{what}: {type(error).__name__} was raised without a message")
        return
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(one.__name__ for one in kinds)
    raise ConformanceFailure(f"{what}: expected {names}, but nothing was raised (it returned {_shown(found)})")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN // 2]}…{text[-_MAX_SHOWN // 2 :]}"
