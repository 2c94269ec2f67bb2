"""What you are asked when you start Handrail at a terminal: whether a plugin that is new or has changed may be loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..base.agent_ancestry import started_by_agent
from ..config.trust import Trust
from ..errors import HandrailError
from .output import say, visible

if TYPE_CHECKING:
    from ..plugins.sources import Found

_DECLINED = "plugin-declined"


def ask_about_plugins() -> None:
    """Ask once about each plugin of yours that is not trusted as it is now. A no is remembered, until it changes again."""
    from ..plugins.sources import Source, find_plugins

    found = [each for each in find_plugins() if each.source is not Source.PROJECT]
    if not found or not (sys.stdin.isatty() and sys.stderr.isatty()) or started_by_agent():
        return
    for each in found:
        try:
            _ask(each, Trust())
        except HandrailError as error:
            say(f"plugin {each.name}: {error}")


def _ask(found: Found, trust: Trust) -> None:
    from ..plugins.loader import TRUST_KIND, plugin_content

    digest = plugin_content(found).digest
    if trust.is_trusted(TRUST_KIND, found.place, digest) or trust.is_trusted(_DECLINED, found.place, digest):
        return
    changed = trust.has_changed(TRUST_KIND, found.place, digest)
    what = "has changed since you trusted it" if changed else "is new"
    say(
        f"the plugin {found.name} ({visible(found.place)}) {what}. It would run with your rights, outside of every gate."
    )
    yes = confirmed_by_hand("Load it from now on, as it is?")
    trust.trust(TRUST_KIND if yes else _DECLINED, found.place, digest)


def confirmed_by_hand(question: str) -> bool:
    """A yes at the terminal. Where there is none, nobody can say it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("this needs a terminal, to ask you")
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
