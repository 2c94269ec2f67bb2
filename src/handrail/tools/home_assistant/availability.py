"""The check of the Home Assistant tools. Every listing runs it, so it imports little and asks no server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...config.keys import key_of
from ...core.availability import missing, usable_unless
from ...types import Unavailable

if TYPE_CHECKING:
    from ...settings.schema import Config

_HOW_TO = "make a long-lived access token in your Home Assistant profile and set it in the environment"


def check(config: Config) -> Unavailable | bool:
    home = config.homeassistant
    # Without any trace of a Home Assistant no keyring is opened.
    configured = home.url or os.environ.get("HASS_URL") or os.environ.get(home.key_variable)
    if not configured or not key_of(home.key_variable):
        return Unavailable(f"{home.key_variable or 'homeassistant.key_variable'} is not set", _HOW_TO)
    return usable_unless(missing("home", "httpx"))
