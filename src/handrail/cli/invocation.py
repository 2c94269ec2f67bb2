"""What to type to call this program again: the name alone where the shell finds it, else the path by which it was called."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

_NAME = "handrail"


def typed(arguments: str) -> str:
    """A command line for the shell and the folder that this program was started from."""
    return f"{_program()} {arguments}"


def as_typed(text: str) -> str:
    """The text with each `handrail ...` in backquotes as it has to be typed here."""
    return text.replace(f"`{_NAME} ", f"`{_program()} ")


def _program() -> str:
    called = sys.argv[0]
    if os.path.basename(called) != _NAME:  # by `python -m handrail`, or by a program of somebody else
        return f"{shlex.quote(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return _NAME
    return shlex.quote(called)
