"""An agent's question stands in the browser and in a chat at once; whoever answers first, both show it, and the agent goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import pytest

from handrail.testing import ModelReply, call

from .. import conftest
from ..serve.gateway.conftest import Place, place  # noqa: F401  a fixture
from . import console_parts
from .console_parts import CHROMIUM, FLAGS, PATIENCE_SECONDS

if console_parts.missing() and not os.environ.get("CI"):
    pytest.skip(console_parts.missing(), allow_module_level=True)

sync_api: Any = import_module("playwright.sync_api")
expect: Any = sync_api.expect


@pytest.fixture(scope="module")
def page(place: Place) -> Iterator[Any]:  # noqa: F811  the fixture above
    """The console's questions, in a browser that came in by a link."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS.split(), timeout=PATIENCE_SECONDS * 1000
        )
        conftest._loops.clear()  # its loop lives as long as the browser, and is no test's
        made = browser.new_page()
        made.set_default_timeout(PATIENCE_SECONDS * 1000)
        made.goto(place.server.client.post("/v1/links", json={"role": "operate"}).json()["url"])
        made.get_by_text("connected", exact=True).wait_for()
        made.goto(f"{place.server.url}/#/approvals")
        made.get_by_text("connected", exact=True).wait_for()
        yield made
        browser.close()


def test_a_no_in_the_browser_shows_in_the_chat_and_the_agent_takes_another_way(place: Place, page: Any) -> None:  # noqa: F811  the fixture above
    room, folder = place.room(), place.folder("precious")
    aside = folder.with_name("aside")
    place.model.say(
        ModelReply("", [call("terminal", command=f"rm -rf {folder}")]),
        ModelReply("", [call("terminal", command=f"mv {folder} {aside}")]),
        ModelReply("I have put it aside."),
    )
    room.say("make room, please")
    question = room.hears(f"⟦rm -rf {folder}⟧")  # not the message about what runs
    card = page.get_by_role("article", name="terminal")
    expect(card.locator("mark")).to_have_text(f"rm -rf {folder}")
    card.get_by_role("button", name="Deny").click()
    page.get_by_label("Why not?").fill("the audit needs it")
    page.keyboard.press("Enter")
    edit = room.hears("denied by web:")
    assert "the audit needs it" in edit["content"]["body"]
    assert edit["content"]["m.relates_to"]["event_id"] == question["event_id"]
    expect(card).to_have_count(0)
    room.hears("I have put it aside.")
    assert aside.is_dir()
    assert not folder.exists()
    assert "the audit needs it" in str(place.model.requests[-2]["messages"][-1])


def test_a_no_in_the_chat_takes_the_card_out_of_the_browser(place: Place, page: Any) -> None:  # noqa: F811  the fixture above
    folder = place.folder("dear")
    place.model.say(ModelReply("", [call("terminal", command=f"rm -rf {folder}")]), ModelReply("Then I leave it."))
    body = {"model": "scripted", "messages": [{"role": "user", "content": "make room, please"}]}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(place.server.client.post, "/v1/chat/completions", json=body)
        question = place.home.hears(f"⟦rm -rf {folder}⟧")
        card = page.get_by_role("article", name="terminal")
        expect(card.locator("mark")).to_have_text(f"rm -rf {folder}")
        place.home.react(question, "❌")
        expect(card).to_have_count(0)
        over = page.get_by_role("article").filter(has_text=f"rm -rf {folder}")
        expect(over).to_contain_text("by chat:@ada:localhost")
        answer = asked.result(PATIENCE_SECONDS).json()
    assert answer["choices"][0]["message"]["content"] == "Then I leave it."
    assert folder.exists()
    place.home.hears("denied by chat:@ada:localhost")
