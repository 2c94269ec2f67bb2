"""Commands of the DevTools protocol that a model may send: those that stay inside its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.async_api import Error

from ...errors import Denied, ToolFailed
from ...types import JsonDict

if TYPE_CHECKING:
    from .session import Session

# Domains that read or change nothing but the page. Everything else is refused.
_DOMAINS = frozenset(
    "Accessibility Animation CSS DOM DOMDebugger DOMSnapshot DOMStorage Emulation Input LayerTree Log Network Overlay Page "
    "Performance Profiler Runtime".split()
)
# Their commands that reach past it: files of this machine, other pages, the browser itself.
_NOT = frozenset(
    "DOM.setFileInputFiles Page.setDownloadBehavior Page.setInterceptFileChooserDialog Page.close Page.crash Page.navigate "
    "Page.handleJavaScriptDialog Page.addCompilationCache Runtime.terminateExecution Network.setRequestInterception "
    "Network.loadNetworkResource Network.emulateNetworkConditions".split()
)
_RESULT_CHARS = 50_000


async def send(session: Session, method: str, params: JsonDict) -> JsonDict:
    """The protocol's answer. Raises Denied for what reaches past the page."""
    check(method)
    session.raise_if_dialog()

    async def work() -> JsonDict:
        channel = await session.context.new_cdp_session(session.page)
        try:
            answer: JsonDict = await channel.send(method, params)
            return answer
        finally:
            await channel.detach()

    try:
        answer = await session.act(work())
    except Error as error:
        raise ToolFailed(f"{method} failed: {error.message[:500]}") from None
    text = json.dumps(answer, ensure_ascii=False)
    shown = answer if len(text) <= _RESULT_CHARS else text[:_RESULT_CHARS] + "… (cut)"
    return {"result": shown, **session.news()}


def check(method: str) -> None:
    domain, _, command = method.partition(".")
    if not command or domain not in _DOMAINS or method in _NOT:
        known = ", ".join(sorted(_DOMAINS))
        raise Denied(f"{method[:100]} reaches past the page and is not sent; what stays in it is: {known}")
