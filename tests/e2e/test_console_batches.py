"""The Batches page in a real browser, beside a real batch: progress, questions, failures, and a stop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from handrail.testing.model_server import ModelServer

from ..batch.conftest import MANY, Batch, scripted
from ..serve.conftest import Server
from . import console_parts
from .console_parts import HOSTILE_NAME, PHONE, Visit, deny_all, eventually, overlaps, shoot, violations

if console_parts.missing() and not os.environ.get("CI"):
    pytest.skip(console_parts.missing(), allow_module_level=True)

sync_api: Any = import_module("playwright.sync_api")
expect: Any = sync_api.expect
_ASKED = "mkdir -p d/x && rm -rf d && echo asked >> effects"


@pytest.fixture
def batch(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batch]:
    with ModelServer([scripted] * MANY) as model:
        known = {"HANDRAIL_HOME": str(server.home), "OPENAI_BASE_URL": model.base_url}
        for name, value in {**known, "OPENAI_API_KEY": "k", "HANDRAIL_MODEL": "scripted"}.items():
            monkeypatch.setenv(name, value)
        made = Batch(tmp_path)
        yield made
        if made.driver is not None and made.driver.poll() is None:
            made.driver.kill()
            made.driver.communicate()


def _row(page: Any, state: str) -> Any:
    return page.get_by_role("option").filter(has_text=state)


def test_a_batch_is_watched_answered_and_its_failures_read(visit: Visit, server: Server, batch: Batch) -> None:
    batch.out = batch.folder / HOSTILE_NAME.replace("/", "")
    tasks = [batch.task("asks", _ASKED), *(batch.task(f"t{n}", "true") for n in range(3))]
    driver = batch.start([*tasks, batch.task("poison", "true", toolsets=["no-such-toolset"])], "--attempts", "2")
    page = visit("batches", viewport=PHONE)
    _row(page, "4/5").click()  # all but the one that asks
    card = page.get_by_role("article", name="terminal")
    expect(card.locator("mark")).to_have_text("rm -rf d")
    expect(page.get_by_role("region", name="Failed tasks")).to_contain_text("no-such-toolset")
    expect(page.get_by_label("4 of 5 tasks ended").last).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(page) == []
    assert overlaps(page) == []
    shoot(page, "console-phone-batch")
    card.get_by_role("button", name="Once").click()
    batch.ended(driver, 1)
    assert batch.count_effects() == {"asked": 1}
    expect(page.get_by_text("5 of 5 tasks")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    page.get_by_role("button", name="Back").click()
    expect(_row(page, "done").first).to_contain_text("5/5 · 1 failed")
    assert violations(page) == []


def test_a_batch_is_stopped_by_who_may_and_one_whose_folder_is_gone_is_not_shown(
    visit: Visit, server: Server, batch: Batch
) -> None:
    driver = batch.start([batch.task("waits", _ASKED)], "--workers", "1")
    eventually(server.waiting)
    (found,) = [each for each in server.client.get("/v1/batches").json()["batches"] if each["state"] == "running"]
    assert (found["questions"], found["running"], found["folder"]) == (1, 1, str(batch.out))
    page = visit(f"batches/{found['id']}", role="watch")
    expect(page.get_by_text("Read-only")).to_be_visible()
    expect(page.get_by_role("button", name="Stop batch")).to_have_count(0)
    refused = server.as_(server.client.post("/v1/tokens", json={"name": "w", "role": "watch"}).json()["token"])
    assert refused.post(f"/v1/batches/{found['id']}/stop").status_code == 403
    page = visit(f"batches/{found['id']}")
    page.get_by_role("button", name="Stop batch").click()
    batch.ended(driver, 130)
    expect(page.get_by_text("handrail batch resume")).to_be_visible()
    assert violations(page) == []
    (batch.out / "batch.json").unlink()
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("no such batch")
    assert found["id"] not in [each["id"] for each in server.client.get("/v1/batches").json()["batches"]]
    deny_all(server)


def test_a_ledger_that_cannot_be_read_is_named_and_the_others_are_shown(
    visit: Visit, server: Server, batch: Batch
) -> None:
    batch.run([batch.task("fine", "true")], "--workers", "1")
    (batch.out / "ledger.db").write_bytes(b"not a database" * 1000)
    page = visit("batches")
    expect(_row(page, "unreadable").first).to_contain_text("ledger.db")
    assert violations(page) == []
