"""The actions of the browser tools: one function per tool, which returns the facts for the model."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Locator, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from ...egress.proxy import REFUSED_HEADER
from ...errors import CallTimeout, Denied, InvalidArguments, ToolFailed
from ...types import JsonDict
from .session import Session, target_host

_PART_LOADED_SECONDS = 3.0
_MAX_IMAGES = 100
_RESULT_CHARS = 20_000
_IMAGES = """() => [...document.images].map(image => ({
  url: image.currentSrc || image.src, alt: image.alt, width: image.naturalWidth, height: image.naturalHeight,
})).filter(image => image.url)"""
_SCROLL = """sign => new Promise(done => {
  window.scrollBy({top: sign * innerHeight * 0.9, behavior: 'instant'});
  requestAnimationFrame(() => setTimeout(() => done({
    at: Math.round(scrollY), of: Math.max(0, document.documentElement.scrollHeight - innerHeight),
  }), 50));
})"""
SHORT_CHARS = 6_000
FULL_CHARS = 40_000
# Elements to act on, and those that say where the page is.
_KEPT_ROLES = frozenset(
    "button link textbox searchbox checkbox radio combobox listbox option menuitem menuitemcheckbox menuitemradio tab switch "
    "slider spinbutton treeitem iframe heading alert alertdialog dialog status".split()
)
_LINE = re.compile(r"^(\s*)- ([\w/]+)")
# Everything else is refused: the file says why these are not.
ALLOWED = frozenset(
    f"{domain}.{name}"
    for domain, names in re.findall(r"(?m)^(\w+): (.*)$", Path(__file__).with_name("devtools_commands.txt").read_text())
    for name in names.split()
)
_ANSWER_CHARS = 50_000


async def take(session: Session, *, full: bool = False) -> str:
    """The page's tree, read again if the page was still waiting for its server."""
    text = await session.page.aria_snapshot(mode="ai")
    if session.is_waiting_for_server:
        await session.settle()
        if session.dialog is not None:
            return ""
        text = await session.page.aria_snapshot(mode="ai")
    return shortened(text, full=full)


def shortened(text: str, *, full: bool) -> str:
    """A short tree unchanged; else only what can be acted on, cut at the end of a line with a notice."""
    max_chars = FULL_CHARS if full else SHORT_CHARS
    if len(text) <= max_chars:
        return text
    hint = "the rest is left out"
    if not full:
        text = compact(text)
        hint = "text and the rest are left out; full=true shows them"
    if len(text) <= max_chars:
        return f"{text}\n# {hint if not full else ''}"
    kept = text[:max_chars].rsplit("\n", 1)[0]
    left = text.count("\n") - kept.count("\n")
    return f"{kept}\n# {left} more lines: {hint}"


def compact(text: str) -> str:
    """The lines of elements to act on, with the lines of the elements that contain them."""
    lines = text.split("\n")
    kept: list[str] = []
    # The containers of the current line that are not kept yet, with their depth.
    waiting: list[tuple[int, str]] = []
    for line in lines:
        if (match := _LINE.match(line)) is None:
            continue
        depth, role = len(match.group(1)), match.group(2)
        waiting = [(outer, text) for outer, text in waiting if outer < depth]
        if role in _KEPT_ROLES:
            kept += [text for _, text in waiting]
            waiting = []
            kept.append(line)
        elif role != "text" and not role.startswith("/"):
            waiting.append((depth, line))
    return "\n".join(kept)


async def _state(session: Session, **more: Any) -> JsonDict:
    """The facts after every action: where the page is, what it shows now, and what happened meanwhile."""
    await session.downloads.wait()
    facts: JsonDict = {**more}
    if session.dialog is None and session.tabs:
        await _stay_public(session)
        if (text := await session.act(take(session))) is not None:
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
            host = target_host(response.url)
            error = next((why for name, why in reversed(session.proxy.refusals) if name == host), None)
            raise error if isinstance(error, Denied) else Denied(f"{response.url} is not a public address")
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
    text = await session.act(take(session, full=full))
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
    try:
        await session.act(session.page.keyboard.press(key))
    except Error as error:
        if "Unknown key" not in error.message:
            raise
        known = "Enter, Tab, Escape, ArrowDown, PageDown, F5, a, Control+a"
        raise InvalidArguments(f"{key!r} is not a key; keys are {known}", argument="key") from None
    return await _state(session)


async def scroll(session: Session, direction: str) -> JsonDict:
    place = await session.act(session.page.evaluate(_SCROLL, -1 if direction == "up" else 1))
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
        last = error.message.split("Call log:")[-1].strip().splitlines()[-3:]
        why = f"within {session.config.timeout:g} s: {' '.join(' '.join(last).split())[:400]}"
        raise CallTimeout(f"the element {name} could not be used {why}") from None
    except Error as error:
        if "Element is not an <input>" in error.message:
            raise ToolFailed(f"the element {name} is not a field that can be filled in") from None
        raise ToolFailed(f"the element {name} could not be used: {error.message.splitlines()[0][:400]}") from None


async def _title(session: Session) -> str:
    try:
        return (await session.page.title())[:300]
    except Error:  # the page is just changing
        return ""


async def send(session: Session, method: str, params: JsonDict) -> JsonDict:
    """The protocol's answer. Raises Denied for what reaches past the page."""
    check(method)
    session.raise_if_dialog()

    async def work() -> Any:
        channel = await session.context.new_cdp_session(session.page)
        try:
            return await channel.send(method, params)
        finally:
            await channel.detach()

    try:
        answer = await session.act(work())
    except Error as error:
        raise ToolFailed(f"{method} failed: {error.message[:500]}") from None
    text = json.dumps(answer, ensure_ascii=False)
    shown = answer if len(text) <= _ANSWER_CHARS else text[:_ANSWER_CHARS] + "… (cut)"
    return {"result": shown, **session.news()}


def check(method: str) -> None:
    if method in ALLOWED:
        return
    domain = method.partition(".")[0]
    alike = sorted(each for each in ALLOWED if each.startswith(f"{domain}.")) or sorted(ALLOWED)
    raise Denied(f"{method[:100]} is not sent, as it could reach past the page; what is allowed: {', '.join(alike)}")
