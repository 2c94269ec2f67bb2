"""What the console's tests stand on: a server with a past, a browser, and somebody who asks."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from ..serve.conftest import Server
from ..support import trust_plugins, wait_until

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/handrail/serve/console"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# Pages of the console share a renderer: starting one costs more than most tests.
FLAGS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync "
    "--process-per-site"
)
PICTURES = os.environ.get("CONSOLE_PICTURES", "")
# A machine may be so busy that nothing of ours runs for a while; where all is well nobody waits so long.
PATIENCE_SECONDS = int(os.environ.get("CONSOLE_PATIENCE", "180"))
HOSTILE_NAME = "<img src=x onerror=\"document.title='owned'\">"
HOSTILE = f"{HOSTILE_NAME}<script>document.title='owned'</script>"
OLD_SESSIONS = 10_000
DESKTOP, PHONE = {"width": 1200, "height": 850}, {"width": 390, "height": 740}
Visit = Callable[..., Any]

eventually = partial(wait_until, timeout=PATIENCE_SECONDS)

_PLUGIN = f"""
def register(api):
    @api.tool(name="hostile", toolset="a_hostile_one", description={HOSTILE!r})
    def hostile(text: str = "") -> str:
        return {HOSTILE!r}
"""


def missing() -> str:
    """What these tests cannot do without."""
    if find_spec("playwright") is None:
        return "no Playwright: pip install 'handrail[browser]'"
    if CHROMIUM is None:
        return "no Chromium: apt install chromium"
    return "" if (BUILT / "index.html").is_file() else "the console is not built: make console"


def remember(home: Path) -> str:
    """A home with a plugin and many conversations, one of them with words in it. Its id."""
    from handrail.store.sessions import SessionStore

    (home / "plugins").mkdir()
    (home / "plugins/hostile.py").write_text(_PLUGIN)
    trust_plugins(home)
    path = home / "state/sessions.db"
    store = SessionStore(path)
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
    _fill(path)
    return info.id


def _fill(path: Path) -> None:
    now = time.time()
    rows = [
        (f"old-{n:05}", now - n - 100, now - n - 100, f"An old one, {n}", "cli", "a-model", "/srv/app", "main", 0, 0)
        for n in range(OLD_SESSIONS)
    ]
    names = "id, created, updated, title, platform, model, cwd, kind, input_tokens, output_tokens"
    with sqlite3.connect(path) as database:
        database.executemany(f"INSERT INTO sessions ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    database.close()


def deny_all(server: Server) -> None:
    for question in server.waiting():
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "deny"})


class Asking:
    """Somebody's call that waits for an answer. Its result is None when the server was gone first."""

    def __init__(self, server: Server, command: str = "", *, tool: str = "terminal", **arguments: str) -> None:
        self.result: Any = None
        body = {"tool": tool, "arguments": arguments or {"command": command}}
        self._thread = threading.Thread(target=self._run, args=(server, body))
        self._thread.start()

    def _run(self, server: Server, body: Any) -> None:
        with contextlib.suppress(httpx.TransportError):
            answer = server.client.post("/v1/calls", json=body, timeout=2 * PATIENCE_SECONDS)
            self.result = answer.json()["result"]

    def over(self) -> Any:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        return self.result


def shoot(page: Any, name: str, **part: int) -> None:
    """Pictures for the docs are made where they are wanted. `part` leaves out what is empty."""
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", clip={"x": 0, "y": 0, **page.viewport_size, **part})


def violations(page: Any, **options: Any) -> list[str]:
    """What axe finds in the page as it is now."""
    if not AXE.is_file():
        assert not os.environ.get("CI"), "axe-core is not there: make console"
        return []
    if not page.evaluate("'axe' in window"):
        # Through the debugger, as the page's own policy lets no foreign script in.
        page.evaluate(AXE.read_text())
    found = page.evaluate(
        "async (options) => (await axe.run({resultTypes: ['violations'], preload: false, ...options})).violations",
        options,
    )
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


# Controls whose visible parts cover each other; one inside another does not count.
_OVERLAPS = """() => {
    const seen = (each) => {
        let {left, right, top, bottom} = each.getBoundingClientRect();
        for (let outer = each.parentElement; outer; outer = outer.parentElement) {
            if (getComputedStyle(outer).overflow === 'visible') continue;
            const box = outer.getBoundingClientRect();
            left = Math.max(left, box.left); right = Math.min(right, box.right);
            top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom);
        }
        return {left, right, top, bottom};
    };
    const all = [...document.querySelectorAll('button, input, select, textarea')].filter((each) => each.checkVisibility());
    const boxes = all.map((each) => [each, seen(each)]).filter(([, box]) => box.left < box.right && box.top < box.bottom);
    const found = [];
    boxes.forEach(([one, a], index) => boxes.slice(index + 1).forEach(([other, b]) => {
        const isOver = a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        if (isOver && !one.contains(other)) found.push(`${one.outerHTML.slice(0, 80)} / ${other.outerHTML.slice(0, 80)}`);
    }));
    return found;
}"""


def overlaps(page: Any) -> list[str]:
    """Controls that cover each other. A button that floats above the text of a list may cover what is scrolled below it."""
    found: list[str] = page.evaluate(_OVERLAPS)
    return [each for each in found if "to-end" not in each]
