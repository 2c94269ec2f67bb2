"""The action of reading a file of keys or passwords. Reading any other file needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...files.task_arguments import read_actions
from ...judge.values.homes import local_homes
from ...judge.values.paths import classes, with_homes

if TYPE_CHECKING:
    from ...protocols import Action
    from ...types import ToolContext

_SECRET = frozenset(("credential",))
_SECRET_BELOW = frozenset(("credential", "root", "home-root"))


def secret_reads(path: str, context: ToolContext, *, below: bool = False) -> list[Action]:
    """`below`: everything in a folder will be read."""
    with with_homes(local_homes()):
        return [
            action._replace(details={"below": below})
            for action in read_actions([path], context)
            if not classes(action.text, "/").isdisjoint(_SECRET_BELOW if below else _SECRET)
        ]
