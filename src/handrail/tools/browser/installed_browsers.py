"""Find an installed browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...core.availability import missing
from ...media import check_vision as check_image_model
from ...settings.schema import Config
from ...settings.services import BrowserConfig
from ...types import Unavailable

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser")
_MAC_APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def executable(config: BrowserConfig) -> str | None:
    """The program to start; None if there is none; empty for the one that Playwright installed."""
    if config.executable:
        return _program(os.path.expanduser(config.executable))
    for name in _PROGRAMS:
        if found := _program(name):
            return found
    for app in _MAC_APPS:
        if os.path.exists(app):
            return app
    return "" if _playwright_has_one() else None


def check(config: Config) -> Unavailable | bool:
    """The check of the `browser_*` tools."""
    browser, lack = config.browser, missing("browser", "playwright")
    if lack is not None:
        return lack
    if browser.cdp_url or executable(browser) is not None:
        return True
    if browser.executable:
        return Unavailable(f"there is no program {browser.executable!r}", "correct browser.executable in config.yaml")
    return Unavailable(
        "no Chromium or Chrome is found", "install one (apt install chromium), or run `playwright install chromium`"
    )


def check_vision(config: Config) -> Unavailable | bool:
    """The check of `browser_vision`, which also needs a model that takes images."""
    return check(config) and check_image_model(config)


def _program(name: str) -> str | None:
    """Like `shutil.which`, which a start should not have to import."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)  # an absolute name stays itself
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _playwright_has_one() -> bool:
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    place = Path(folder) if folder else Path.home() / usual / "ms-playwright"
    return any(place.glob("chromium*"))
