"""What bad pages do to the browser tools, and what the guard keeps them from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.environments import private_dirs
from handrail.model_tools import get_tool_definitions
from handrail.runtime.dispatch import Runtime
from handrail.types import CancelToken, Unavailable

from ...support import error_in, in_thread, takes_less_than, wait_until
from .. import pages
from ..pages import Handler, Site, html, redirect
from .conftest import Call, downloaded
from .test_browser_pages import ref_of

# Dialogs


def test_a_dialog_waits_for_its_answer(site: Site, browser: Call) -> None:
    site.pages["/"] = html(
        "<p id=p></p><button onclick=\"p.textContent = 'you said ' + prompt('Your name?', 'nobody')\">ask</button>"
    )
    tree = browser("navigate", url=site.url + "/")["snapshot"]
    asked = browser("click", ref=ref_of(tree, "ask"))
    assert asked["dialog"] == {"type": "prompt", "message": "Your name?", "default": "nobody"}
    assert "browser_dialog" in browser("snapshot")["error"]
    answered = browser("dialog", action="accept", prompt_text="Ada")
    assert "you said Ada" in answered["snapshot"]
    assert "no dialog" in browser("dialog", action="accept")["error"]


def test_a_dialog_while_loading_is_told(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<script>window.sure = confirm('Sure?')</script><p>loaded</p>")
    assert browser("navigate", url=site.url + "/")["dialog"]["message"] == "Sure?"
    assert "loaded" in browser("dialog", action="dismiss")["snapshot"]
    assert browser("console", expression="sure")["result"] is False


def test_a_thousand_dialogs_are_survived(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<script>for (let i = 0; i < 1000; i++) alert('again ' + i)</script><p>the end</p>")
    page = browser("navigate", url=site.url + "/")
    answers = 0
    while "dialog" in page:
        page = browser("dialog", action="accept")
        answers += 1
    assert answers == 5
    if "the end" not in page.get("snapshot", ""):
        page = browser("snapshot")
    assert "the end" in page["snapshot"]


def test_one_can_leave_a_page_that_asks(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<script>while (true) alert('stay')</script>")
    site.pages["/other"] = html("<p>elsewhere</p>")
    assert "dialog" in browser("navigate", url=site.url + "/")
    assert "elsewhere" in browser("navigate", url=site.url + "/other")["snapshot"]


# Pages that do not end


@pytest.mark.usefixtures("in_haste")
def test_pages_that_never_answer_end_in_time(site: Site, own_browser: Callable[..., Call]) -> None:
    browser = own_browser("timeout: 2")

    def opened(path: str) -> str:
        """What a good page shows: it too has only two seconds, which may not do on a busy machine."""
        page: dict[str, Any] = {}
        wait_until(lambda: page.update(browser("navigate", url=site.url + path)) or "snapshot" in page)
        return str(page["snapshot"])

    site.pages["/"] = pages.slow(60, "late")
    site.pages["/busy"] = html("<p>busy</p><button onclick='while (true);'>go</button>")
    site.pages["/other"] = html("<p>elsewhere</p>")
    opened("/other")
    with takes_less_than(30):
        assert browser("navigate", url=site.url + "/")["error_type"] == "timeout"
    tree = opened("/busy")
    with takes_less_than(30):
        assert "error" in browser("click", ref=ref_of(tree, "go"))
    assert "elsewhere" in opened("/other")


@pytest.mark.usefixtures("in_haste")
def test_a_page_that_never_finishes_is_shown_as_far_as_it_came(site: Site, browser: Call) -> None:
    def half(handler: Handler) -> None:
        handler.head("text/html")
        handler.wfile.write(b"<p>the first half</p>" + b" " * 4096)
        handler.wfile.flush()
        handler.wait(60)

    site.pages["/"] = half
    page = browser("navigate", url=site.url + "/")
    assert "the first half" in page["snapshot"]
    assert "still loading" in page["notices"][0]


def test_thirty_tabs_are_not_kept(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<button onclick=\"for (let i = 0; i < 30; i++) window.open('/tab' + i)\">open</button>")
    tree = browser("navigate", url=site.url + "/")["snapshot"]
    page = browser("click", ref=ref_of(tree, "open"))
    assert len(page.get("tabs", [])) <= 13
    assert "error" not in browser("snapshot")


@pytest.mark.usefixtures("in_haste")
def test_a_cancelled_call_ends_at_once(site: Site, browser: Call, shared_runtime: Runtime, task: str) -> None:
    site.pages["/"] = pages.slow(60, "late")
    site.pages["/first"] = html("first")
    browser("navigate", url=site.url + "/first")
    cancel = CancelToken()

    def stop() -> None:
        wait_until(lambda: "/" in site.asked)
        cancel.cancel()

    thread = threading.Thread(target=stop)
    thread.start()
    with takes_less_than(30):
        answer = in_thread(
            lambda: shared_runtime.handle("browser_navigate", {"url": site.url + "/"}, task, cancel=cancel)
        )
    thread.join()
    assert error_in(answer)["error_type"] == "cancelled"
    assert "first" in browser("navigate", url=site.url + "/first")["snapshot"]


@pytest.mark.parametrize("ref", ["e999", "x y", "", "'); alert(1)//", "[ref=e999]"])
def test_a_ref_that_is_none_is_told(site: Site, browser: Call, ref: str) -> None:
    site.pages["/"] = html("<button>one</button>")
    browser("navigate", url=site.url + "/")
    answer = browser("click", ref=ref)
    assert answer["error_type"] in ("tool_failed", "invalid_arguments")
    assert "snapshot" in answer["error"]


def test_without_a_page_no_browser_is_started(own_browser: Callable[..., Call]) -> None:
    browser = own_browser()
    for name in ("snapshot", "back", "console", "get_images"):
        assert "browser_navigate" in browser(name)["error"]
    assert not [thread for thread in threading.enumerate() if thread.name == "handrail-browser"]


# The guard


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.2:1/", "denied"),
        ("http://2130706434:1/", "denied"),
        ("http://[::1]:1/", "denied"),
        ("http://169.254.169.254/latest/meta-data/", "denied"),
        ("file:///etc/passwd", "invalid_arguments"),
        ("javascript:alert(1)", "invalid_arguments"),
        ("data:text/html,hello", "invalid_arguments"),
        ("chrome://version", "invalid_arguments"),
        ("view-source:http://x.example/", "invalid_arguments"),
        ("http://user:pass@x.example/", "invalid_arguments"),
        ("about:blank", "invalid_arguments"),
        ("x.example", "invalid_arguments"),
    ],
)
def test_an_address_that_is_not_public_is_refused(site: Site, browser: Call, url: str, kind: str) -> None:
    assert browser("navigate", url=url)["error_type"] == kind


@pytest.fixture
def inner() -> Iterator[pages.Site]:
    """A server on another loopback address, which is not allowed."""
    with pages.site("127.0.0.2") as made:
        for path in ("/secret", "/secret.js", "/socket"):
            made.pages[path] = html("secret()", kind="text/javascript", access_control_allow_origin="*")
        yield made


def test_a_redirect_does_not_lead_past_the_guard(site: Site, inner: Site, browser: Call) -> None:
    site.pages["/"] = redirect(inner.url + "/secret")
    answer = browser("navigate", url=site.url + "/")
    assert answer["error_type"] == "denied"
    assert "127.0.0.2" in answer["error"]
    assert inner.asked == []


def test_a_page_does_not_reach_past_the_guard(site: Site, inner: Site, browser: Call) -> None:
    site.pages["/"] = html(
        f"""<script src='{inner.url}/secret.js'></script><img src='{inner.url}/secret'><iframe src='{inner.url}/secret'></iframe>
        <script>
        window.got = [];
        fetch('{inner.url}/secret', {{mode: 'no-cors'}}).then(r => got.push(r.type), e => got.push('failed'));
        const socket = new WebSocket('ws://127.0.0.2:{inner.port}/socket');
        socket.onerror = () => got.push('no socket');
        navigator.sendBeacon('{inner.url}/secret', 'x');
        </script><a href='{inner.url}/secret'>go there</a>"""
    )
    page = browser("navigate", url=site.url + "/")
    wait_until(lambda: "no socket" in browser("console", expression="got")["result"])
    browser("click", ref=ref_of(page["snapshot"], "go there"))
    assert inner.asked == []


def test_a_page_cannot_open_files_of_the_machine(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<a href='file:///etc/hostname'>file</a><script>location = 'file:///etc/hostname'</script>")
    page = browser("navigate", url=site.url + "/")
    browser("click", ref=ref_of(page["snapshot"], "file"))
    browser("console", expression="window.open('file:///etc/hostname') && 1")
    for tab in range(1, len(browser("snapshot").get("tabs", [1])) + 1):
        shown = browser("snapshot", tab=tab)
        assert not shown["url"].startswith("file:")
        assert Path("/etc/hostname").read_text().strip() not in shown["snapshot"]


def test_a_large_download_is_ended(site: Site, own_browser: Callable[..., Call]) -> None:
    browser = own_browser("max_download_bytes: 100000")

    def endless(handler: Handler) -> None:
        handler.head("application/zip", content_disposition="attachment; filename=bomb.zip")
        while not handler.site.over.is_set():
            handler.wfile.write(b"x" * 20_000)
            handler.wait(0.01)

    site.pages["/"] = endless
    page = browser("navigate", url=site.url + "/")
    assert "larger than 100000 bytes" in downloaded(browser, page)["error"]


# What is left behind


def _browser_processes() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"chromium" in command.split(b"\0")[0] or b"playwright" in command.split(b"\0")[0]:
                found.add(int(entry.name))
    return found


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def _folders_of(pid: int) -> set[str]:
    return {folder for folder in private_dirs.every("browser") if f".{pid}." in folder}


def test_closing_leaves_no_process_and_no_file(site: Site, own_browser: Callable[..., Call]) -> None:
    before, before_folders = _browser_processes(), _folders_of(os.getpid())
    browser = own_browser()
    site.pages["/"] = html("hello")
    browser("navigate", url=site.url + "/")
    mine = _descendants(os.getpid()) & _browser_processes() - before
    assert mine
    folders = _folders_of(os.getpid()) - before_folders
    assert folders
    model_tools.reset()
    assert not folders & _folders_of(os.getpid())
    wait_until(lambda: not mine & _browser_processes(), otherwise=lambda: f"left: {mine & _browser_processes()}")


def test_a_browser_that_nobody_uses_is_closed(site: Site, own_browser: Callable[..., Call]) -> None:
    def is_open() -> bool:
        return any(thread.name == "handrail-browser" for thread in threading.enumerate())

    browser = own_browser("idle_seconds: 1")
    site.pages["/"] = html("hello")
    assert "hello" in browser("navigate", url=site.url + "/")["snapshot"]
    wait_until(lambda: not is_open())
    assert "browser_navigate" in browser("snapshot")["error"]
    model_tools.default().environments.close(None)
    model_tools.reset()  # there is nothing to close any more
    page = browser("navigate", url=site.url + "/")
    assert "hello" in page.get("snapshot", ""), page


@pytest.mark.parametrize("how", ["-9", "group"])
def test_a_killed_runtime_leaves_no_browser_and_no_file(site: Site, own_browser: Callable[..., Call], how: str) -> None:
    own_browser()
    site.pages["/"] = html("hello")
    program = (
        "import sys, time\nfrom handrail.model_tools import handle_function_call\n"
        f"print(handle_function_call('browser_navigate', {{'url': '{site.url}/'}}), flush=True)\ntime.sleep(60)"
    )
    runtime = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ), start_new_session=True
    )
    assert runtime.stdout
    with runtime.stdout:
        assert "hello" in json.loads(runtime.stdout.readline())["snapshot"]
        running = _descendants(runtime.pid) & _browser_processes()
        assert running
        folders = _folders_of(runtime.pid)
        assert [name for folder in folders for name in os.listdir(folder) if "profile" in name]
        if how == "-9":
            runtime.kill()
        else:  # the driver too, which would have closed the browser
            os.killpg(runtime.pid, signal.SIGKILL)
        runtime.wait()
    wait_until(lambda: not running & _browser_processes(), otherwise=lambda: f"left: {running & _browser_processes()}")

    def are_taken_away() -> bool:
        private_dirs.prune_browsers(dry_run=False)
        return not folders & _folders_of(runtime.pid)

    wait_until(are_taken_away)  # the driver may still be at it too


def test_a_browser_that_died_is_started_again(site: Site, own_browser: Callable[..., Call]) -> None:
    before = _browser_processes()
    browser = own_browser()
    site.pages["/"] = html("hello")
    browser("navigate", url=site.url + "/")
    for pid in _descendants(os.getpid()) - before:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"chromium" in command and b"--type=" not in command and b"crashpad" not in command:
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "hello" in browser("navigate", url=site.url + "/").get("snapshot", ""))


# How it is listed


def test_the_web_tools_are_named_only_when_they_are_there() -> None:
    def text(*toolsets: str) -> str:
        listed = {one["function"]["name"]: one["function"] for one in get_tool_definitions(list(toolsets))}
        return str(listed["browser_navigate"]["description"])

    assert "web_search" in text("browser", "web")
    assert "web_extract" in text("browser", "web")
    assert "web_" not in text("browser")


def test_a_missing_browser_is_told(home: Path) -> None:
    from handrail.config.store import load_config
    from handrail.tools.browser.tool import check

    (home / "config.yaml").write_text("browser: {executable: /proc/nowhere/browser}\n")
    lack = check(load_config())
    assert isinstance(lack, Unavailable)
    assert "browser.executable" in lack.fix


def test_a_dead_cdp_address_is_told(own_browser: Callable[..., Call], site: Site) -> None:
    browser = own_browser("cdp_url: 'http://127.0.0.1:9', timeout: 5")
    assert "browser.cdp_url" in browser("navigate", url=site.url + "/")["error"]
