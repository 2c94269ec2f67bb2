"""Commands of the DevTools protocol that a model may send, by name: those that stay inside its page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.async_api import Error

from ...errors import Denied, ToolFailed
from ...types import JsonDict

if TYPE_CHECKING:
    from .session import Session

# Each reads or changes nothing but the page, and none takes a path: the browser would hand files of this machine to the page.
# Everything else is refused, also what a later version of the protocol adds.
ALLOWED = frozenset(
    f"{domain}.{name}"
    for domain, names in {
        "Accessibility": "getFullAXTree getPartialAXTree queryAXTree",
        "Animation": "getCurrentTime seekAnimations setPaused setPlaybackRate",
        "CSS": "enable getBackgroundColors getComputedStyleForNode getInlineStylesForNode getMatchedStylesForNode "
        "getPlatformFontsForNode",
        "DOM": "describeNode enable focus getAttributes getBoxModel getContentQuads getDocument getNodeForLocation getOuterHTML "
        "performSearch querySelector querySelectorAll requestNode resolveNode scrollIntoViewIfNeeded",
        "DOMDebugger": "getEventListeners",
        "DOMSnapshot": "captureSnapshot",
        "Emulation": "clearDeviceMetricsOverride setDeviceMetricsOverride setEmulatedMedia setEmulatedVisionDeficiency "
        "setGeolocationOverride setLocaleOverride setTimezoneOverride setTouchEmulationEnabled setUserAgentOverride",
        "Input": "dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent insertText synthesizePinchGesture "
        "synthesizeScrollGesture synthesizeTapGesture",
        "Network": "getCookies setBlockedURLs setCacheDisabled setExtraHTTPHeaders",
        "Page": "captureScreenshot getAppManifest getFrameTree getLayoutMetrics getNavigationHistory getResourceTree printToPDF "
        "reload stopLoading",
        "Performance": "enable getMetrics",
        "Runtime": "callFunctionOn evaluate getHeapUsage getProperties",
    }.items()
    for name in names.split()
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
    if method not in ALLOWED:
        domain = method.partition(".")[0]
        alike = sorted(each for each in ALLOWED if each.startswith(f"{domain}.")) or sorted(ALLOWED)
        raise Denied(
            f"{method[:100]} is not sent, as it could reach past the page; what is allowed: {', '.join(alike)}"
        )
