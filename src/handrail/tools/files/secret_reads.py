"""The action of reading a file of keys or passwords. Reading any other file needs none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...egress.secret_sources import secret_files
from ...errors import Denied
from ...files.task_arguments import files_of, read_actions

if TYPE_CHECKING:
    from ...protocols import Action
    from ...types import ToolContext

_SECRET = frozenset(("credential",))
_SECRET_BELOW = frozenset(("credential", "root", "home-root"))
# Every path that can be a secret has one of these in it.
_MAY_BE_SECRET = re.compile(r"/\.|^/(?:etc|var|run|vault|opt|dev)/|^/proc/.*(?:environ|mem|kcore)$|/_netrc$|/Library/")


def secret_reads(path: str, context: ToolContext, *, below: bool = False) -> list[Action]:
    """`below`: everything in a folder will be read. The environment is not asked unless it is a secret: it may not run yet."""
    files = files_of(context)
    resolved = files.resolve(path)
    place = files.host_path(resolved) or resolved
    if below and any(each.startswith(place.rstrip("/") + "/") for each in secret_files(context.config.secrets)):
        raise Denied("a file below that folder holds a secret that you use without seeing it; search another folder")
    if not below and _MAY_BE_SECRET.search(place) is None:
        return []
    # Loaded only when needed: most reads are of ordinary files.
    from ...judge.values.homes import local_homes
    from ...judge.values.paths import classes, with_homes

    with with_homes(local_homes()):
        if classes(place, "/").isdisjoint(_SECRET_BELOW if below else _SECRET):
            return []
    return [action._replace(details={"below": below}) for action in read_actions([path], context)]
