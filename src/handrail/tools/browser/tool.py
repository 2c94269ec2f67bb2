"""The tools that drive a browser, `browser_*`. Each task has pages of its own, which stay open between calls. One file for all
of them: they share everything but a name, a description and a few arguments."""

import os
import sys
from pathlib import Path

from ...core.availability import missing
from ...core.builtin import family, flag, integer, registry, text
from ...media import check_vision as check_image_model
from ...settings.schema import Config
from ...settings.services import BrowserConfig
from ...types import JsonDict, Unavailable

_REF: JsonDict = text("Which element, by its ref in the snapshot: e12.")
_tool = family(
    "browser",
    "handrail.tools.browser.calls",
    is_async=True,
    check_fn="handrail.tools.browser.tool:check",
    timeout=120,
    resources="handrail.tools.browser.calls:resources",
)
registry.register(
    **_tool(
        "browser_navigate",
        "Open a page in the browser; gives its `snapshot`: a tree of what it shows, each element with a ref to act on. Pages "
        "stay open between calls. Only public addresses. To find pages `web_search` is better. To only read one "
        "`web_extract` is quicker.",
        ("url",),
        url=text("The address, in full."),
    ),
    emoji="🌐",
    toolset_description="drive a browser",
    example={"url": "https://rails.example/order"},
)
registry.register(
    **_tool(
        "browser_snapshot",
        "What the page shows now. Of a long page only what one can act on, unless full.",
        full=flag("Show all text, too."),
        tab=integer("Go to this tab first.", minimum=1),
    ),
    emoji="📸",
    example=["browser_navigate", {"full": True}],
)
registry.register(
    **_tool(
        "browser_type",
        "Fill in a field of the page (what was in it is replaced), or choose from a list by the choice's text.",
        ("ref", "text"),
        ref=_REF,
        text=text("What to type or choose."),
        submit=flag("Press Enter afterwards."),
    ),
    emoji="⌨️",
    example=["browser_navigate", {"ref": "e4", "text": "Ada"}],
)
registry.register(
    **_tool(
        "browser_press",
        "Press a key on the page.",
        ("key",),
        key=text("Such as Enter, Tab, Escape, ArrowDown, PageDown, Control+a."),
    ),
    emoji="🎹",
    example=["browser_navigate", {"key": "Tab"}],
)
registry.register(
    **_tool("browser_click", "Click an element of the page.", ("ref",), ref=_REF),
    emoji="👆",
    example=["browser_navigate", {"ref": "e5"}],
)
registry.register(
    **_tool(
        "browser_dialog",
        "Answer the dialog that the page shows (alert, confirm, prompt); until then it does nothing else.",
        ("action",),
        action=text("What to press.", enum=["accept", "dismiss"]),
        prompt_text=text("The answer to a prompt."),
    ),
    emoji="💬",
    example=["browser_click", {"action": "accept"}],
)
registry.register(
    **_tool(
        "browser_scroll",
        "Scroll the page by a screen; pages that load more as one scrolls do so.",
        ("direction",),
        direction=text("Which way.", enum=["up", "down"]),
    ),
    emoji="📜",
    example=["browser_navigate", {"direction": "down"}],
)
registry.register(
    **_tool("browser_get_images", "List the images of the page, with address, text and size."),
    emoji="🖼️",
    example=["browser_navigate", {}],
)
registry.register(
    **_tool(
        "browser_console",
        "What the page wrote to its console, errors too; with an expression also what that gives.",
        expression=text("JavaScript to evaluate in the page, such as document.title."),
        clear=flag("Forget the messages afterwards."),
    ),
    emoji="🧾",
    example=["browser_navigate", {"expression": "document.title"}],
)
registry.register(
    **_tool(
        "browser_cdp",
        "Send a command of the Chrome DevTools Protocol to the page, for what no other browser tool does.",
        ("method",),
        method=text("Such as Emulation.setDeviceMetricsOverride."),
        params={"type": "object", "description": "The command's parameters."},
    ),
    emoji="🔧",
    example=[
        "browser_navigate",
        {
            "method": "Emulation.setDeviceMetricsOverride",
            "params": {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True},
        },
    ],
)
registry.register(
    **_tool("browser_back", "Go back to the page before, or close a tab that has none."),
    emoji="◀️",
    example=["browser_navigate", ("browser_navigate", {"url": "https://rails.example/handrails"}), {}],
)
registry.register(
    **_tool(
        "browser_vision",
        "Take a picture of the page in the browser and answer a question about what it looks like.",
        ("question",),
        question=text("What to find out."),
        full_page=flag("All of the page, not only what is seen."),
    )
    | {"check_fn": "handrail.tools.browser.tool:check_vision", "timeout": 300},
    emoji="🔭",
    example=["browser_navigate", {"question": "Is the button green?"}],
)
_PROGRAMS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def executable(config: BrowserConfig) -> str | None:
    """The program to start; None if there is none; empty for the one that Playwright installed."""
    if config.executable:
        return _program(os.path.expanduser(config.executable))
    found = next(filter(None, map(_program, _PROGRAMS)), None)
    return found or ("" if _playwright_has_one() else None)


def check(config: Config) -> Unavailable | bool:
    browser, lack = config.browser, missing("browser", "playwright")
    if lack is not None:
        return lack
    if browser.cdp_url or executable(browser) is not None:
        return True
    if browser.executable:
        return Unavailable(f"there is no program {browser.executable!r}", "correct browser.executable in config.yaml")
    fix = "install one (apt install chromium), or run `playwright install chromium`"
    return Unavailable("no Chromium or Chrome is found", fix)


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
