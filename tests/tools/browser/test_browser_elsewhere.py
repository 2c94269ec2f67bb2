"""A browser that somebody else started, and the seam for tools that look at pages."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable

import pytest

from handrail import model_tools
from handrail.runtime.dispatch import Call as OneCall
from handrail.runtime.dispatch import Runtime
from handrail.tools.browser import actions, browsers
from handrail.tools.browser.calls import use
from handrail.types import CancelToken

from ...support import PATIENCE_SECONDS
from .. import pages
from ..pages import Site, html, redirect
from .conftest import Call


@pytest.mark.parametrize("is_here", [True, False])
def test_a_running_browser_is_used_and_left_running(
    running_browser: str,
    own_browser: Callable[..., Call],
    site: Site,
    is_here: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that cannot reach our proxy, as on another machine."""
    monkeypatch.setattr(browsers, "_is_local", lambda _: is_here)
    browser = own_browser(f"cdp_url: '{running_browser}', timeout: {PATIENCE_SECONDS}")
    with pages.site("127.0.0.2") as inner:
        site.pages["/"] = html(f"<p>hello</p><img src='{inner.url}/secret'>")
        site.pages["/away"] = redirect(inner.url + "/secret")
        inner.pages["/secret"] = html("secret")
        page = browser("navigate", url=site.url + "/")
        assert "hello" in page.get("snapshot", ""), page
        assert browser("navigate", url=inner.url + "/")["error_type"] == "denied"
        browser("console", expression=f"fetch('{inner.url}/secret', {{mode: 'no-cors'}}).catch(() => 0) && 1")
        assert inner.asked == []
        away = browser("navigate", url=site.url + "/away")
        assert away["error_type"] == "denied"
        assert "snapshot" not in away
        if is_here:
            assert inner.asked == []
    model_tools.reset()
    with urllib.request.urlopen(f"{running_browser}/json/version", timeout=60) as answer:
        assert answer.status == 200


def test_a_page_can_be_looked_at(site: Site, browser: Call, shared_runtime: Runtime, task: str) -> None:
    site.pages["/"] = html("<title>T</title><p>hello</p>")
    browser("navigate", url=site.url + "/")
    context = shared_runtime.context(OneCall("browser_vision", {}, task), CancelToken())
    assert asyncio.run(use(context, actions.screenshot)).startswith(b"\x89PNG")
