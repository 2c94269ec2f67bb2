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
def let_in(browser: Any, server: Server) -> Callable[[str], Any]:
    """What a browser keeps that came in by a link, by its role."""
    kept: dict[str, Any] = {}

    def state(role: str) -> Any:
        if role not in kept:
            context = browser.new_context()
            page = context.new_page()
            page.goto(server.client.post("/v1/links", json={"role": role}).json()["url"])
            page.get_by_text("connected", exact=True).wait_for()
            assert page.url.rstrip("#/") == server.url  # the code is not in the address any more
            kept[role] = context.storage_state()
            context.close()
        return kept[role]

    return state


@pytest.fixture
def visit(browser: Any, server: Server, let_in: Callable[[str], Any]) -> Iterator[Visit]:
    """Open a page of the console, as somebody who may do everything or has another role. Errors in the page fail the test."""
    contexts, errors = [], []

    def go(place: str, role: str = "operate", before: str = "", **options: Any) -> Any:
        context = browser.new_context(storage_state=let_in(role), **{"viewport": DESKTOP, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        context.add_init_script(before or "0")
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if "Content Security" in told.text else None)
        page.goto(f"{server.url}/#/{place}")
        page.get_by_text("connected", exact=True).wait_for()
        return page

    yield go
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")  # what a route still fetches is not the next test's
        context.close()
    deny_all(server)
    assert not errors
