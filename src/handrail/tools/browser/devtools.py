"""Which commands of the DevTools protocol a model may send to its page: those that stay inside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...errors import Denied, ToolFailed
from ...types import JsonDict

if TYPE_CHECKING:
    from .session import Session

# Whole domains that see or change nothing but the page. What is not here is not known to be harmless.
_DOMAINS = frozenset(
    "Accessibility Animation CSS DOM DOMDebugger DOMSnapshot DOMStorage Emulation Input LayerTree Log Network Overlay Page "
    "Performance Profiler Runtime".split()
)
# Those that reach past it: files of this machine, other pages, the browser itself.
_NOT = frozenset(
    "DOM.setFileInputFiles Page.setDownloadBehavior Page.setInterceptFileChooserDialog Page.close Page.crash Page.navigate "
    "Page.handleJavaScriptDialog Page.addCompilationCache Runtime.terminateExecution Network.setRequestInterception "
    "Network.loadNetworkResource Network.emulateNetworkConditions".split()
)
_RESULT_CHARS = 50_000


async def send(session: Session, method: str, params: JsonDict) -> JsonDict:
    """The protocol's answer. Raises Denied for what reaches past the page."""
    from playwright.async_api import Error

    check(method)
    session.refuse_if_asked()

    async def work() -> JsonDict:
        line = await session.context.new_cdp_session(session.page)
        try:
            answer: JsonDict = await line.send(method, params)
            return answer
        finally:
            await line.detach()

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
