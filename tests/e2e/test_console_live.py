"""Live, Stats and Calls in a real browser: what other processes do shows there, too."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from importlib import import_module
from typing import Any

import pytest

from handrail.protocols import ModelReply
from handrail.store.sessions import SessionStore, StoredCall, StoredModelCall
from handrail.testing.model_server import ModelServer

from ..serve.conftest import Server
from ..support import call
from . import console_parts
from .console_parts import PHONE, Asking, Visit, deny_all, eventually, overlaps, shoot, violations

if console_parts.missing() and not os.environ.get("CI"):
    pytest.skip(console_parts.missing(), allow_module_level=True)

expect: Any = import_module("playwright.sync_api").expect


def _row(page: Any, text: str) -> Any:
    return page.locator(".row").filter(has_text=text)


def _session_with_calls(server: Server, *calls: StoredCall, asked: StoredModelCall | None = None) -> str:
    store = SessionStore(server.home / "state/sessions.db")
    info = store.create(platform="cron", model="a-model", cwd="/srv/app", title="By another process")
    store.append(info.id, [{"role": "assistant", "content": "done"}], calls=calls, asked=asked)
    store.close()
    return info.id


class TestLive:
    def test_a_call_of_the_command_line_shows_with_its_time(self, visit: Visit, server: Server) -> None:
        page = visit("live")
        server.cli("call", "terminal", "command=echo from-the-command-line")
        row = _row(page, "from-the-command-line")
        expect(row).to_have_count(1)
        expect(row.locator("time")).to_have_text(re.compile(r"\d:\d\d"))
        # Also one that no gate sees, with how long it took and what came out.
        server.cli("call", "read_file", "path=/etc/hostname")
        row = _row(page, "/etc/hostname")
        expect(row).to_contain_text("ok")
        expect(row).to_contain_text(re.compile(r"\d+ ms|\d s"))
        row.click()
        expect(page.get_by_label("Result")).to_contain_text("content")

    def test_a_call_that_waits_for_an_answer_says_so(self, visit: Visit, server: Server) -> None:
        page = visit("live")
        asking = Asking(server, "rm -rf /srv/waits-for-an-answer")
        row = _row(page, "waits-for-an-answer")
        expect(row).to_contain_text("waiting for an answer")
        deny_all(server)
        expect(row).to_contain_text("denied")
        asking.over()

    def test_an_agent_of_another_process_shows_while_it_runs(
        self, visit: Visit, server: Server, model: ModelServer
    ) -> None:
        command = "until [ -e go ]; do sleep 0.1; done; echo by-an-agent"
        model.say(ModelReply("", [call("terminal", command=command)]), ModelReply("ok"))
        page = visit("live")
        asking = threading.Thread(target=server.cli, args=("ask", "wait for it"))
        asking.start()
        row = _row(page, "by-an-agent")
        try:
            expect(row).to_contain_text("running")
            page.reload()
            expect(row).to_contain_text("running")
        finally:
            (server.cwd / "go").touch()
            asking.join()
        expect(row.locator(".tag.good")).to_have_text("ok")
        expect(row).to_have_count(1)

    def test_a_call_of_this_server_shows_once(self, visit: Visit, server: Server, model: ModelServer) -> None:
        model.say(ModelReply("", [call("terminal", command="echo only-once")]), ModelReply("ok"))
        page = visit("live")
        with server.client.stream("POST", "/v1/sessions", json={"text": "go"}) as answer:
            answer.read()
        _session_with_calls(server, StoredCall("read_file", "c", {"path": "after-it"}, time.time(), 0.1, ""))
        expect(_row(page, "after-it")).to_have_count(1)
        expect(_row(page, "only-once")).to_have_count(1)

    def test_calls_are_filtered(self, visit: Visit, server: Server) -> None:
        now = time.time()
        mine = _session_with_calls(
            server,
            StoredCall("web_search", "a", {"query": "filtered one"}, now, 2.0, ""),
            StoredCall("web_search", "b", {"query": "filtered two"}, now, 1.0, "denied"),
            StoredCall("read_file", "c", {"path": "filtered three"}, now, 0.1, "not_found"),
        )
        page = visit("live")
        rows = page.locator(".row")
        page.get_by_label("Session").select_option(mine)
        expect(rows).to_have_count(3)
        page.get_by_label("Tool").select_option("web_search")
        expect(rows).to_have_count(2)
        page.get_by_label("Outcome").select_option("denied")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("filtered two")
        rows.click()
        expect(page.get_by_role("link", name="its conversation")).to_be_visible()


class TestStats:
    def test_waiting_is_told_apart_and_cost_is_per_model_and_day(self, visit: Visit, server: Server) -> None:
        asked = StoredModelCall(time.time(), 1.0, "a-priced-model", 1000, 200, 0, 0.25)
        _session_with_calls(server, asked=asked)
        asking = Asking(server, "rm -rf waited_for")
        eventually(server.waiting)
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 1.2)
        deny_all(server)
        asking.over()
        found = {each["tool"]: each for each in server.client.get("/v1/stats").json()["tools"]}["terminal"]
        assert found["waited"] >= 1.2
        page = visit("stats")
        expect(page.get_by_role("row").filter(has_text="a-priced-model")).to_contain_text("$0.25")
        expect(page.get_by_role("columnheader", name="median")).to_be_visible()
        expect(page.get_by_role("columnheader", name="waited")).to_be_visible()
        shoot(page, "console-stats")
        row = page.get_by_role("row").filter(has_text="terminal")
        expect(row.get_by_role("cell").nth(5)).to_have_text(re.compile(r"\d\.\d s"))
        page.goto(f"{server.url}/#/live")
        expect(_row(page, "waited_for")).to_contain_text(re.compile(r"waited \d\.\d s"))
        expect(_row(page, "waited_for")).not_to_contain_text("ran ")

    def test_a_call_that_was_allowed_shows_how_long_it_ran_and_waited(self, visit: Visit, server: Server) -> None:
        asking = Asking(server, "rm -rf allowed_later")
        eventually(server.waiting)
        (question,) = server.waiting()
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 1.2)
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"})
        asking.over()
        expect(_row(visit("live"), "allowed_later")).to_contain_text(re.compile(r"ran [\d.]+ m?s, waited \d\.\d s"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_controls_cover_each_other_on_a_phone(visit: Visit, server: Server, scheme: str) -> None:
    asking = Asking(server, "rm -rf on_a_phone")
    page = visit("approvals", viewport=PHONE, color_scheme=scheme)
    page.get_by_role("article", name="terminal").get_by_role("button", name="Deny").click()
    page.get_by_label("Why not?").wait_for()
    shoot(page, f"console-phone-deny-{scheme}")
    assert overlaps(page) == []
    for place in ("live", "tools/terminal", "sessions", "policy", "stats", "calls"):
        page.goto(f"{server.url}/#/{place}")
        page.locator(".row, .empty, .plot canvas, details, form").locator("visible=true").first.wait_for()
        shoot(page, f"console-phone-{place.replace('/', '-')}-{scheme}")
        assert overlaps(page) == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], place
    deny_all(server)
    asking.over()


class TestCalls:
    def test_a_change_is_seen_as_a_diff_and_taken_back(self, visit: Visit, server: Server) -> None:
        target = server.cwd / "changed.py"
        target.write_text("def total():\n    return 1\n")
        server.call("write_file", path=str(target), content="def total():\n    return 2\n")
        page = visit("calls")
        _row(page, "changed.py").first.click()
        diff = page.get_by_label(re.compile("^Changes in .*changed.py"))
        expect(diff.locator(".plus")).to_contain_text("return 2")
        shoot(page, "console-calls")
        assert violations(page) == []
        page.get_by_role("button", name="Undo this call").press("Enter")
        expect(page.get_by_role("status").filter(has_text="as before")).to_be_visible()
        # The button is gone, and a keyboard goes on from where it was.
        page.wait_for_function("() => document.querySelector('.split-detail').contains(document.activeElement)")
        assert "return 1" in target.read_text()
        page.get_by_role("button", name="Redo").click()
        eventually(lambda: target.exists() and "return 2" in target.read_text())

    def test_a_conflict_is_told_and_nothing_is_lost(self, visit: Visit, server: Server) -> None:
        target = server.cwd / "conflict.txt"
        target.write_text("before\n")
        server.call("write_file", path=str(target), content="by the call\n")
        target.write_text("by somebody else\n")
        page = visit("calls")
        _row(page, "conflict.txt").first.click()
        page.get_by_role("button", name="Undo this call").click()
        expect(page.get_by_role("alert")).to_contain_text("conflict.txt by someone else")
        assert target.read_text() == "by somebody else\n"
        page.get_by_role("button", name="Undo anyway").click()
        expect(page.get_by_text("is kept as")).to_be_visible()
        assert target.read_text() == "before\n"
        assert "by somebody else\n" in [each.read_text() for each in server.cwd.glob("conflict.txt.*")]

    def test_many_paths_are_counted_and_the_later_call_that_is_in_the_way_is_named(
        self, visit: Visit, server: Server
    ) -> None:
        (folder := server.cwd / "many").mkdir()
        for number in range(150):
            (folder / f"{number}.txt").write_text("before\n")
        server.call("terminal", command="cd many && for each in *.txt; do echo after > $each; done; cd ..")
        later = server.call("terminal", command="echo later > many/1.txt; sleep 86397 &")["call"]
        page = visit("calls")
        _row(page, "echo after").first.click()
        page.get_by_role("button", name="Show 50 more that were changed").click()
        expect(page.locator(".change")).to_have_count(150)
        page.get_by_role("button", name="Undo this call").click()
        expect(page.get_by_role("alert")).to_contain_text(f"many/1.txt by call {later}")
        page.get_by_role("alert").get_by_role("link").click()
        expect(page.get_by_role("heading", name=f"Call {later}: terminal")).to_be_visible()
        expect(page.locator(".facts")).to_contain_text("left running")
        expect(page.locator(".facts")).to_contain_text("sleep 86397")
        assert violations(page) == []

    def test_who_only_watches_cannot_undo(self, visit: Visit, server: Server) -> None:
        server.call("write_file", path=str(server.cwd / "watched.txt"), content="x\n")
        page = visit("calls", role="watch")
        _row(page, "watched.txt").first.click()
        page.locator(".change").first.wait_for()
        assert page.get_by_role("button", name="Undo").count() == 0
        assert json.loads(server.client.get("/v1/effects").text)["calls"]
