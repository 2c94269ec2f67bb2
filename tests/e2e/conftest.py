"""A server with a past, a model that says what it is told, and browsers that are logged in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from handrail.testing.model_server import ModelServer

from .. import conftest as top_conftest
from ..serve.conftest import Server
from .console_parts import CHROMIUM, DESKTOP, FLAGS, PATIENCE_SECONDS, PICTURES, Visit, deny_all, remember


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("served")
    remember(home)
    # Pictures for the documentation show a folder that people could have.
    pictured = Path("/srv/shop")
    work = pictured if PICTURES and not pictured.exists() else tmp_path_factory.mktemp("work")
    work.mkdir(exist_ok=True)
    made = Server(home, work, HANDRAIL_MODEL="scripted", OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k")
    yield made
    for process in made.client.get("/v1/processes").json()["processes"]:
        made.client.delete(f"/v1/processes/{process['id']}")
    made.stop()
    if work == pictured:
        shutil.rmtree(pictured)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = import_module("playwright.sync_api")
    sync_api.expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split(), timeout=PATIENCE_SECONDS * 1000)
        top_conftest._loops.clear()  # its loop lives as long as the browser, and is no test's
        yield made
        made.close()


@pytest.fixture(scope="module")
def let_in(server: Server) -> Callable[[str], Any]:
    """What a browser keeps that came in by a link, by its role. A page of its own for that would cost as much as a test."""
    kept: dict[str, Any] = {}

    def state(role: str) -> Any:
        if role not in kept:
            client = server.browser(code=server.code(role))
            limits = {"domain": "127.0.0.1", "path": "/", "httpOnly": True, "sameSite": "Strict"}
            cookies = [{"name": name, "value": value, **limits} for name, value in client.cookies.items()]
            key = {"name": "handrail-page-key", "value": client.headers["x-handrail"]}
            kept[role] = {"cookies": cookies, "origins": [{"origin": server.url, "localStorage": [key]}]}
        return kept[role]

    return state


@pytest.fixture(scope="module")
def profile(browser: Any, server: Server, let_in: Callable[[str], Any]) -> Iterator[Callable[..., Any]]:
    """A context that was let in, by its role and options. A module's tests share it: a page in a new one costs several times as
    much as one that finds a renderer, which the first page of each keeps alive. All that the console keeps in it is the login."""
    made: dict[str, Any] = {}

    def one(role: str, **options: Any) -> Any:
        key = repr((role, options))
        if key not in made:
            made[key] = browser.new_context(storage_state=let_in(role), **options)
            made[key].set_default_timeout(PATIENCE_SECONDS * 1000)
            made[key].new_page().goto(f"{server.url}/assets/icon.svg")
        return made[key]

    yield one
    for context in made.values():
        context.close()


@pytest.fixture
def visit(browser: Any, server: Server, let_in: Callable[[str], Any], profile: Callable[..., Any]) -> Iterator[Visit]:
    """Open a page of the console, as somebody who may do everything or has another role. Errors in the page fail the test."""
    contexts: list[Any] = []
    others: list[Any] = []  # that only this test has
    errors: list[str] = []

    def go(place: str, role: str = "operate", before: str = "", **options: Any) -> Any:
        options = {"viewport": DESKTOP, **options}
        context = profile(role, **options)
        if context in contexts:  # somebody with a second browser
            context = browser.new_context(storage_state=let_in(role), **options)
            context.set_default_timeout(PATIENCE_SECONDS * 1000)
            context.new_page()
            others.append(context)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(before or "0")
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if "Content Security" in told.text else None)
        page.goto(f"{server.url}/#/{place}")
        page.get_by_text("connected", exact=True).wait_for()
        return page

    yield go
    for context in contexts:
        for page in context.pages[1:]:
            page.unroute_all(behavior="ignoreErrors")  # what a route still fetches is not the next test's
            page.close()
    for context in others:
        context.close()
    deny_all(server)
    assert not errors
