"""Figures of the web console, in a real browser: a yes to the command's start, the first paint, a frame of a long list."""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from .harness import Figure, milliseconds
from .serve import _TOKEN, _call, _server

_ROUNDS, _ROWS, _STEPS = 9, 10_000, 60
_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_SCROLL = """async (steps) => {
    const box = document.querySelector('.rows');
    for (let step = 0; step < steps; step++) {
        box.scrollTop = (step % 2 ? 0.9 : 0.1) * box.scrollHeight + step * 40;
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    }
}"""


def figures() -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    if _CHROMIUM is None:
        return
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as work,
        _server(home, work) as (url, _),
        httpx.Client(base_url=url, headers={"authorization": f"Bearer {_TOKEN}"}, timeout=60) as client,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        page = browser.new_page()
        page.goto(client.post("/v1/links", json={"role": "operate"}).json()["url"])
        page.get_by_text("connected", exact=True).wait_for()
        yield from _first_paint(page, url)
        yield _yes(page, url, client, Path(work))
        yield _frame(page, url, client, Path(home))
        browser.close()


def _first_paint(page: Any, url: str) -> Iterator[Figure]:
    """As the user sees it, and what the page's own code takes of it: that varies less on a busy machine."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    painted, scripted = [], []
    for _ in range(_ROUNDS):
        page.goto(url)
        page.reload()
        page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
        metrics = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
        scripted.append(metrics["ScriptDuration"])
    took, script = statistics.median(painted), statistics.median(scripted)
    yield Figure("the console's first paint", milliseconds(took), "1 s", took, 1)
    yield Figure("the console's scripts until then, of the CPU", milliseconds(script), "1 s", script, 1)


def _yes(page: Any, url: str, client: httpx.Client, work: Path) -> Figure:
    """From the click, by the browser's clock, to what the command says the time is."""
    page.goto(f"{url}/#/approvals")
    stamp, times = work / "stamp", []
    for number in range(_ROUNDS):
        command = f"date +%s.%N > {stamp}; rm -rf ~/nothing-{number}"
        asked = threading.Thread(target=client.post, args=("/v1/calls",), kwargs={"json": _call(command)})
        asked.start()
        page.get_by_role("button", name="Once").wait_for()
        clicked = page.evaluate("() => { document.querySelector('button.allow').click(); return Date.now() / 1000; }")
        asked.join()
        times.append(float(stamp.read_text()) - clicked)
        page.get_by_text("No open questions").wait_for()
    took = statistics.median(times)
    return Figure("a click on Once, to the command's start", milliseconds(took), "100 ms", took / 0.1, 1)


def _frame(page: Any, url: str, client: httpx.Client, home: Path) -> Figure:
    """What the page computes for one step through ten thousand rows, of the time that a frame has."""
    client.get("/v1/sessions")
    now = time.time()
    rows = [(f"old-{n:05}", now - n, now - n, f"An old one, {n}", "cli", "m", "/", "main", 0, 0) for n in range(_ROWS)]
    names = "id, created, updated, title, platform, model, cwd, kind, input_tokens, output_tokens"
    with sqlite3.connect(home / "state/sessions.db") as database:
        database.executemany(f"INSERT INTO sessions ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    database.close()
    page.goto(f"{url}/#/sessions")
    page.get_by_role("option").first.wait_for()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    page.evaluate(_SCROLL, _STEPS)
    before = spent()
    page.evaluate(_SCROLL, _STEPS)
    took = (spent() - before) / _STEPS
    return Figure(f"a frame of {_ROWS:,} rows", milliseconds(took), "16.7 ms", took * 60, 1)
