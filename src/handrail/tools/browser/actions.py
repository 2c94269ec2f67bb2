"""The actions of the browser tools: one function per tool, which returns the facts for the model."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error, Locator, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from ...errors import CallTimeout, Denied, InvalidArguments, ToolFailed
from ...types import JsonDict
from . import snapshots
from .proxy import REFUSED_HEADER

if TYPE_CHECKING:
    from .session import Session

_PART_LOADED_SECONDS = 3.0
_MAX_IMAGES = 100
_RESULT_CHARS = 20_000
_IMAGES = """() => [...document.images].map(image => ({
  url: image.currentSrc || image.src, alt: image.alt, width: image.naturalWidth, height: image.naturalHeight,
})).filter(image => image.url)"""


async def _state(session: Session, **more: Any) -> JsonDict:
    """The facts after every action: where the page is, what it shows now, and what happened meanwhile."""
    await session.downloads.wait()
    facts: JsonDict = {**more}
    if session.dialog is None and session.tabs:
        await _stay_public(session)
        text = await session.act(snapshots.take(session))
        if text is not None:
            facts |= {"url": session.page.url, "title": await _title(session)}
            facts["snapshot"] = "unchanged" if text and text == session.last_snapshot else text
            session.last_snapshot = text
    return {**facts, **session.news()}


async def _stay_public(session: Session) -> None:
    """A browser on another machine follows redirects unasked; leave a private page before anything of it is read."""
    url = session.page.url
    if not session.config.cdp_url or not url.startswith(("http:", "https:")):
        return
    try:
        target = session.guard.check_url(url)
        await session.guard.addresses(target.host, target.port)
    except Denied:
        await session.page.goto("about:blank")
        raise


async def navigate(session: Session, url: str) -> JsonDict:
    target = session.guard.check_url(url)
    await session.guard.addresses(target.host, target.port)  # raises now, instead of showing an error page
    page = await session.fresh_page()
    session.reset_page_counters()
    session.last_snapshot = ""
    response = await session.act(_load(session, page, url.strip()))
    more: JsonDict = {}
    if response is not None:
        if response.headers.get(REFUSED_HEADER):
            raise session.refused(response.url) or Denied(f"{response.url} is not a public address")
        if response.status >= 400:
            more["status"] = response.status
    return await _state(session, **more)


async def _load(session: Session, page: Any, url: str) -> Response | None:
    session.downloads.expect()
    try:
        response: Response | None = await page.goto(url, wait_until="commit")
    except PlaywrightTimeout:
        raise CallTimeout(f"the server sent nothing within {session.config.timeout:g} s") from None
    except Error as error:
        if "Download is starting" in error.message:
            await session.downloads.wait_for_start()
            return None
        if "net::ERR_ABORTED" in error.message:
            return None
        raise _failed(session, url, error.message) from None
    try:
        await page.wait_for_load_state("load", timeout=_PART_LOADED_SECONDS * 1000)
    except PlaywrightTimeout:
        session.notices.append("the page was still loading when it was read")
    return response


def _failed(session: Session, url: str, message: str) -> Exception:
    """A redirect may have been refused on its way."""
    words = message.split("\n")[0].removeprefix("Page.goto: ")
    if "ERR_TUNNEL" in words or "ERR_BLOCKED" in words or "interrupted by another navigation" in words:
        for _, error in reversed(session.proxy.refusals):
            if isinstance(error, Denied):
                return error
    return ToolFailed(f"{url[:200]} cannot be opened: {words[:300]}")


async def snapshot(session: Session, *, full: bool, tab: int | None) -> JsonDict:
    session.raise_if_dialog()
    if tab is not None:
        await session.switch(tab)
    text = await session.act(snapshots.take(session, full=full))
    facts: JsonDict = {"url": session.page.url}
    if text is not None:
        facts |= {"title": await _title(session), "snapshot": text}
        session.last_snapshot = text
    return {**facts, **session.news()}


async def click(session: Session, ref: str) -> JsonDict:
    await session.act(_on(session, ref, lambda element: element.click()))
    return await _state(session)


async def type_text(session: Session, ref: str, text: str, *, submit: bool) -> JsonDict:
    async def work(element: Locator) -> None:
        kind = await element.evaluate("element => element.tagName + ' ' + (element.type || '')")
        if kind.startswith("SELECT"):
            await element.select_option(label=text)
        elif kind == "INPUT file":
            raise ToolFailed("files of this machine are not given to pages")
        else:
            await element.fill(text)
        if submit:
            await element.press("Enter")

    await session.act(_on(session, ref, work))
    return await _state(session)


async def press(session: Session, key: str) -> JsonDict:
    async def work() -> None:
        try:
            await session.page.keyboard.press(key)
        except Error as error:
            if "Unknown key" in error.message:
                raise InvalidArguments(
                    f"{key!r} is not a key; keys are Enter, Tab, Escape, ArrowDown, PageDown, F5, a, Control+a",
                    argument="key",
                ) from None
            raise

    await session.act(work())
    return await _state(session)


async def scroll(session: Session, direction: str) -> JsonDict:
    async def work() -> JsonDict:
        sign = -1 if direction == "up" else 1
        place: JsonDict = await session.page.evaluate(
            """sign => new Promise(done => {
              window.scrollBy({top: sign * innerHeight * 0.9, behavior: 'instant'});
              requestAnimationFrame(() => setTimeout(() => done({
                at: Math.round(scrollY), of: Math.max(0, document.documentElement.scrollHeight - innerHeight),
              }), 50));
            })""",
            sign,
        )
        return place

    place = await session.act(work())
    return await _state(session, scrolled=place)


async def back(session: Session) -> JsonDict:
    async def work() -> bool:
        page = session.page
        try:
            if await page.go_back(wait_until="commit") is not None or page.url != before:
                await page.wait_for_load_state("load", timeout=_PART_LOADED_SECONDS * 1000)
                return True
        except PlaywrightTimeout:
            session.notices.append("the page was still loading when it was read")
            return True
        return False

    before = session.page.url
    session.reset_page_counters()
    went = await session.act(work())
    if went is False and len(session.tabs) > 1:
        await session.page.close()  # a tab that has no page before it: back is where it came from
        return await _state(session, note="the tab had no page before this one, and was closed")
    if went is False:
        raise ToolFailed("there is no page before this one")
    return await _state(session)


async def images(session: Session) -> JsonDict:
    found: list[JsonDict] | None = await session.act(session.page.evaluate(_IMAGES))
    shown = [{**image, "url": image["url"][:500]} for image in (found or [])[:_MAX_IMAGES]]
    more = {"more": len(found) - len(shown)} if found and len(found) > len(shown) else {}
    return {"images": shown, **more, **session.news()}


async def console(session: Session, *, clear: bool, expression: str | None) -> JsonDict:
    facts: JsonDict = {}
    if expression is not None:
        try:
            value = await session.act(session.page.evaluate(expression))
        except Error as error:
            raise ToolFailed(f"the expression failed: {error.message[:1000]}") from None
        text = json.dumps(value, ensure_ascii=False, default=str)
        facts["result"] = value if len(text) <= _RESULT_CHARS else text[:_RESULT_CHARS] + "… (cut)"
    facts["messages"] = list(session.console)
    if clear:
        session.console.clear()
    return {**facts, **session.news()}


async def answer_dialog(session: Session, *, accept: bool, text: str | None) -> JsonDict:
    await session.answer(accept=accept, text=text)
    return await _state(session)


async def screenshot(session: Session, *, full_page: bool = False) -> bytes:
    """The page as a picture (PNG)."""
    png = await session.act(session.page.screenshot(full_page=full_page, type="png", animations="disabled"))
    if png is None:
        raise ToolFailed("the page shows a dialog; answer it first", dialog=session.dialog_facts())
    return png


async def _on(session: Session, ref: str, work: Callable[[Locator], Awaitable[Any]]) -> None:
    """Do something with an element of the last snapshot."""
    name = ref.strip().removeprefix("[").removesuffix("]").removeprefix("ref=").removeprefix("@")
    if not name.isalnum():
        raise InvalidArguments(f"{ref[:50]!r} is not a ref; the snapshot has refs such as [ref=e12]", argument="ref")
    element = session.page.locator(f"aria-ref={name}")
    try:
        if await element.count() == 0:
            raise ToolFailed(f"there is no element {name} on the page now; the next snapshot shows which there are")
        await work(element)
    except PlaywrightTimeout as error:
        why = error.message.split("Call log:")[-1].strip().splitlines()[-3:]
        raise CallTimeout(
            f"the element {name} could not be used within {session.config.timeout:g} s: {' '.join(' '.join(why).split())[:400]}"
        ) from None
    except Error as error:
        if "Element is not an <input>" in error.message:
            raise ToolFailed(f"the element {name} is not a field that can be filled in") from None
        raise ToolFailed(f"the element {name} could not be used: {error.message.splitlines()[0][:400]}") from None


async def _title(session: Session) -> str:
    try:
        return (await session.page.title())[:300]
    except Error:  # the page is just changing
        return ""
