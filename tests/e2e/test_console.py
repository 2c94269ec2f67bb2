"""A person in a real browser, with a real server: what they see, and what their keys and clicks do."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import conftest
from ..serve.conftest import TOKEN, Server
from ..support import wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install 'handrail[browser]'")

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/handrail/serve/console"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync"
PICTURES = os.environ.get("CONSOLE_PICTURES", "")
PAGES = ("live", "approvals", "terminal", "tools", "sessions", "policy", "stats")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def _missing() -> str:
    if CHROMIUM is None:
        return "no Chromium: apt install chromium"
    return "" if (BUILT / "index.html").is_file() else "the console is not built: make console"


if _missing() and not os.environ.get("CI"):
    pytest.skip(_missing(), allow_module_level=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("served")
    _remember_a_conversation(home)
    # Pictures for the documentation show a folder that people could have.
    pictured = Path("/srv/shop")
    work = pictured if PICTURES and not pictured.exists() else tmp_path_factory.mktemp("work")
    work.mkdir(exist_ok=True)
    made = Server(home, work)
    yield made
    for process in made.client.get("/v1/processes").json()["processes"]:
        made.client.delete(f"/v1/processes/{process['id']}")
    made.stop()
    if work == pictured:
        shutil.rmtree(pictured)


def _remember_a_conversation(home: Path) -> None:
    from handrail.config.paths import state_dir
    from handrail.store.sessions import SessionStore

    before = os.environ.get("HANDRAIL_HOME")
    os.environ["HANDRAIL_HOME"] = str(home)
    try:
        folder = state_dir()
    finally:
        os.environ.pop("HANDRAIL_HOME") if before is None else os.environ.update(HANDRAIL_HOME=before)
    folder.mkdir(parents=True, exist_ok=True)
    store = SessionStore(folder / "sessions.db")
    info = store.create(platform="cli", model="a-model", cwd="/srv/app", title=f"Tidy up {HOSTILE}")
    asked = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    store.append(
        info.id,
        [
            {"role": "user", "content": "please count the marmalade jars"},
            {"role": "assistant", "content": "I look.", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": "c1", "content": HOSTILE},
            {"role": "assistant", "content": "There are seven."},
        ],
    )
    store.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        conftest._loops.clear()  # its loop lives as long as the browser, and is no test's
        yield made
        made.close()


@pytest.fixture
def visit(browser: Any, server: Server) -> Iterator[Callable[..., Any]]:
    """Open a page of the console as somebody who may do everything. Errors in the page fail the test."""
    contexts, errors = [], []

    def go(name: str, **options: Any) -> Any:
        context = (
            browser.new_context(viewport={"width": 1200, "height": 850}, **options)
            if "viewport" not in options
            else browser.new_context(**options)
        )
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        link = server.client.post("/v1/links", json={"role": "operate"}).json()["url"]
        page.goto(link)
        page.goto(f"{server.url}/#/{name}")
        page.get_by_text("connected", exact=True).wait_for()
        return page

    yield go
    for context in contexts:
        context.close()
    for question in server.waiting():
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "deny"})
    assert not errors


class Asking:
    """Somebody's call that waits for an answer."""

    def __init__(self, server: Server, command: str) -> None:
        self.result: Any = None
        self._thread = threading.Thread(target=self._run, args=(server, command))
        self._thread.start()

    def _run(self, server: Server, command: str) -> None:
        self.result = server.call("terminal", command=command)

    def over(self) -> Any:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.result


def _shoot(page: Any, name: str) -> None:
    """Pictures for the docs are made where they are wanted."""
    folder = PICTURES
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def test_a_token_lets_a_browser_in_and_a_wrong_one_does_not(browser: Any, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Come in").click()
    sync_api.expect(page.get_by_role("alert")).to_contain_text("not known")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Come in").click()
    page.get_by_text("connected", exact=True).wait_for()
    assert page.evaluate("document.cookie") == ""
    context.close()


def test_a_click_allows_once_and_the_command_runs(visit: Callable[..., Any], server: Server) -> None:
    folder = server.cwd / "by_click"
    folder.mkdir()
    page = visit("approvals")
    asking = Asking(server, "rm -rf by_click; echo gone")
    card = page.get_by_role("article", name="terminal")
    sync_api.expect(card.locator("mark")).to_have_text("rm -rf by_click")
    _shoot(page, "console-approval")
    card.get_by_role("button", name="Once").click()
    assert "gone" in asking.over()["output"]
    assert not folder.exists()
    sync_api.expect(page.get_by_text("Nothing waits for you")).to_be_visible()


def test_keys_deny_with_a_reason_that_the_model_reads(visit: Callable[..., Any], server: Server) -> None:
    folder = server.cwd / "by_key"
    folder.mkdir()
    page = visit("approvals")
    asking = Asking(server, "rm -rf by_key")
    page.get_by_role("article", name="terminal").wait_for()
    page.keyboard.press("j")
    reason = page.get_by_label("Why not?")
    # Keys that come right after a card are not meant for it, so it takes a moment before it listens.
    page.wait_for_function(
        "() => { document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'd', bubbles: true}));"
        " return document.querySelector('.denying input') !== null; }"
    )
    sync_api.expect(reason).to_be_focused()
    page.keyboard.type("move it to trash instead")
    page.keyboard.press("Enter")
    assert "move it to trash instead" in str(asking.over())
    assert folder.exists()


def test_keys_allow_for_the_task_and_the_grant_can_be_revoked(visit: Callable[..., Any], server: Server) -> None:
    page = visit("approvals")
    (server.cwd / "granted").mkdir()
    asking = Asking(server, "rm -rf granted")
    page.get_by_role("article", name="terminal").wait_for()
    page.keyboard.press("j")
    page.wait_for_function(
        "() => { document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 't', bubbles: true}));"
        " return document.querySelector('.card') === null; }"
    )
    asking.over()
    wait_until(lambda: server.client.get("/v1/approvals").json()["grants"])
    page.goto(f"{server.url}/#/policy")
    page.get_by_role("button", name=re.compile("^Revoke")).first.click()
    wait_until(lambda: not server.client.get("/v1/approvals").json()["grants"])
    sync_api.expect(page.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)


def test_an_answer_from_elsewhere_takes_the_card_away(visit: Callable[..., Any], server: Server) -> None:
    page = visit("approvals")
    asking = Asking(server, "rm -rf elsewhere")
    page.get_by_role("article", name="terminal").wait_for()
    server.client.post(f"/v1/approvals/{server.waiting()[0]['id']}", json={"decision": "deny"})
    asking.over()
    sync_api.expect(page.get_by_role("article", name="terminal")).to_have_count(0)


def test_calls_show_as_they_run_and_their_output_is_never_markup(visit: Callable[..., Any], server: Server) -> None:
    page = visit("live")
    (server.cwd / "hostile.txt").write_text(HOSTILE)
    server.call("terminal", command="cat hostile.txt")
    page.get_by_role("option").filter(has_text="hostile.txt").first.click()
    sync_api.expect(page.get_by_label("Result", exact=True)).to_contain_text("<script>")
    assert page.locator("main img").count() == 0
    assert "owned" not in page.title()
    _shoot(page, "console-live")


def test_a_terminal_is_watched_and_typed_into(visit: Callable[..., Any], server: Server) -> None:
    started = server.call("terminal", command="cat", background=True, pty=True)
    page = visit(f"terminal/{started['session_id']}")
    page.get_by_label("Type into it").check()
    page.locator(".xterm-helper-textarea").wait_for(state="attached")
    page.keyboard.type("hello from the browser")
    page.keyboard.press("Enter")
    log = f"/v1/processes/{started['session_id']}/log"
    wait_until(lambda: server.client.get(log).json()["text"].count("hello from the browser") == 2)
    sync_api.expect(page.locator(".xterm-rows")).to_contain_text("hello from the browser")
    _shoot(page, "console-terminal")
    page.get_by_role("button", name="End it").click()
    wait_until(lambda: server.client.get(log.removesuffix("/log")).json()["ended_at"] is not None)


def test_a_form_runs_a_tool(visit: Callable[..., Any], server: Server) -> None:
    page = visit("tools/terminal")
    page.get_by_label(re.compile("^command")).fill("echo $((6 * 7))")
    page.get_by_role("button", name="Run").click()
    sync_api.expect(page.get_by_label("Result", exact=True)).to_contain_text("42")
    _shoot(page, "console-tools")


def test_conversations_are_found_by_their_words(visit: Callable[..., Any], server: Server) -> None:
    page = visit("sessions")
    page.get_by_label("Search all conversations").fill("marmalade")
    page.get_by_role("option").filter(has_text="marmalade").click()
    sync_api.expect(page.get_by_text("There are seven.")).to_be_visible()
    page.get_by_text("terminal", exact=True).click()
    sync_api.expect(page.get_by_label("Result", exact=True)).to_contain_text("<script>")
    assert "owned" not in page.title()
    _shoot(page, "console-sessions")


def test_a_command_is_judged_and_not_run(visit: Callable[..., Any], server: Server) -> None:
    page = visit("policy")
    page.get_by_label("Command", exact=True).fill("rm -rf /")
    page.keyboard.press("Enter")
    sync_api.expect(page.get_by_text("It would be blocked")).to_be_visible()
    _shoot(page, "console-policy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_phone(visit: Callable[..., Any], server: Server, scheme: str) -> None:
    server.call("terminal", command="true")
    asking = Asking(server, "rm -rf some_folder")
    wait_until(server.waiting)
    page = visit("approvals", viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.get_by_role("article", name="terminal").wait_for()
    _shoot(page, f"console-phone-{scheme}")
    for name in PAGES:
        page.goto(f"{server.url}/#/{name}")
        page.get_by_role("heading", level=1, name=name.title()).wait_for(state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert _violations(page) == [], name
    server.client.post(f"/v1/approvals/{server.waiting()[0]['id']}", json={"decision": "deny"})
    asking.over()


def _violations(page: Any) -> list[str]:
    if not AXE.is_file():
        assert not os.environ.get("CI"), "axe-core is not there: make console"
        return []
    # Through the debugger, as the page's own policy lets no foreign script in.
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})).violations")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


def test_the_bundle_is_small() -> None:
    files = [
        each
        for each in (BUILT / "assets").iterdir()
        if each.suffix in (".js", ".css") and not each.name.startswith("screen-")
    ]
    assert sum(len(gzip.compress(each.read_bytes())) for each in files) <= 400_000


def test_the_first_paint_comes_within_a_second(visit: Callable[..., Any], server: Server) -> None:
    page = visit("live")
    page.reload()
    page.get_by_text("connected", exact=True).wait_for()
    first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert first <= 1000
