"""Tools for Home Assistant, one file each: `tool` is what they register alike, `calls` runs them. Its services can do anything
in a house, so most of them ask the user.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.availability import missing, usable_unless
from ...core.builtin import family
from ...types import Unavailable

if TYPE_CHECKING:
    from ...settings.schema import Config

tool = family(
    "homeassistant",
    "handrail.tools.home_assistant.calls",
    check_fn="handrail.tools.home_assistant:check",
    is_async=True,
    emoji="🏠",
    timeout=120,
)
_HOW_TO = "make a long-lived access token in your Home Assistant profile and set it in the environment"


def check(config: Config) -> Unavailable | bool:
    """The check of these tools. Every listing runs it, so it imports little and asks no server."""
    home = config.homeassistant
    absent = Unavailable(f"{home.key_variable or 'homeassistant.key_variable'} is not set", _HOW_TO)
    if not (home.url or os.environ.get("HASS_URL") or os.environ.get(home.key_variable)):
        return absent
    from ...config.keys import key_of  # which opens a keyring

    return usable_unless(missing("home", "httpx")) if key_of(home.key_variable) else absent
