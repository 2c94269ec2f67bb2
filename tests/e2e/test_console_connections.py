"""What the console does when its connection is lost, silently or not, and what a second tab sees."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from handrail.protocols import ModelReply
from handrail.testing.model_server import ModelServer, Raw

from ..serve.conftest import TOKEN, Server
from ..support import call
from . import console_parts
from .console_parts import CHROMIUM, FLAGS, PATIENCE_SECONDS, Visit, eventually

if console_parts.missing() and not os.environ.get("CI"):
    pytest.skip(console_parts.missing(), allow_module_level=True)

expect: Any = import_module("playwright.sync_api").expect

# Time passes when the test says so: for the timers of this length, which look for silence, and for the clock.
_TICKS = """
window.ticks = [];
const every = window.setInterval, clock = Date.now;
window.setInterval = (act, ms, ...rest) => { if (ms === 5000) window.ticks.push(act); return every(act, ms, ...rest); };
window.slept = 0;
Date.now = () => clock() + window.slept;
"""
_HALF_A_MINUTE = "() => { for (let tick = 0; tick < 6; tick++) for (const act of [...window.ticks]) act(); }"
_WOKEN = "() => { window.slept += 600_000; document.dispatchEvent(new Event('visibilitychange')); }"


class _Network:
    """Forwards connections to a server, until they fall silent: nothing comes through, and nothing ends."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._silent: list[threading.Event] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far, silent = (
                    self._listener.accept()[0],
                    socket.create_connection(self._target),
                    threading.Event(),
                )
                self._silent.append(silent)
                self._sockets += (near, far)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(one, other, silent), daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not silent.is_set():
                    target.sendall(data)
            if not silent.is_set():
                target.shutdown(socket.SHUT_WR)

    def fall_silent(self) -> None:
        for each in self._silent:
            each.set()

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def network(server: Server) -> Iterator[_Network]:
    made = _Network(server.port)
    yield made
    made.close()


@pytest.fixture
def far_page(browser: Any, server: Server, network: _Network) -> Iterator[Any]:
    """The console in a browser whose every connection goes through this network."""
    rule = f"--host-resolver-rules=MAP localhost:{server.port} 127.0.0.1:{network.port}"
    far = browser.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS.split(), rule])
    page = far.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    page.add_init_script(_TICKS)
    page.goto(f"http://localhost:{server.port}/#/sessions/new")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("connected", exact=True).wait_for()
    yield page
    far.close()


class _Told:
    """Words that a model says when the test lets it, one after the other."""

    def __init__(self, *words: str) -> None:
        self._words, self._may = words, threading.Semaphore(0)

    def go_on(self) -> None:
        self._may.release()

    def __iter__(self) -> Iterator[Any]:
        for word in self._words:
            self._may.acquire(timeout=PATIENCE_SECONDS)
            yield {"content": f"{word} "}

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, _: Any) -> Any:
        raise IndexError


def _send(page: Any, text: str) -> None:
    page.get_by_label("Message to the agent").fill(text)
    page.get_by_label("Message to the agent").press("Enter")


@pytest.mark.parametrize("how", [_HALF_A_MINUTE, _WOKEN], ids=["silent", "asleep"])
def test_an_answer_goes_on_after_the_connection_has_died_without_an_end(
    far_page: Any, network: _Network, model: ModelServer, how: str
) -> None:
    words = _Told("early", "meanwhile", "late")
    model.say(Raw(words))
    _send(far_page, "Talk")
    words.go_on()
    said = far_page.locator(".talk .assistant .markdown")
    expect(said).to_have_text("early")
    network.fall_silent()
    words.go_on()
    far_page.evaluate(how)
    expect(said).to_have_text("early meanwhile")
    words.go_on()
    expect(said).to_have_text("early meanwhile late")
    expect(far_page.get_by_text("Working…")).to_have_count(0)
    expect(far_page.get_by_text("connected", exact=True)).to_be_visible()


def test_a_second_tab_sees_what_is_being_written(visit: Visit, model: ModelServer) -> None:
    words = _Told("one", "two")
    model.say(Raw(words))
    page = visit("sessions/new")
    _send(page, "Count")
    words.go_on()
    expect(page.locator(".markdown")).to_have_text("one")
    other = visit(page.url.partition("#/")[2])
    expect(other.locator(".markdown")).to_have_text("one")
    words.go_on()
    for each in (page, other):
        expect(each.locator(".markdown")).to_have_text("one two")
        expect(each.get_by_text("Working…")).to_have_count(0)


def test_a_second_tab_sees_the_output_of_a_running_command(visit: Visit, server: Server, model: ModelServer) -> None:
    command = "n=0; until [ -e enough ]; do n=$((n+1)); echo step-$n; sleep 0.2; done"
    model.say(ModelReply("", [call("terminal", command=command)]), ModelReply("Done."))
    page = visit("sessions/new")
    _send(page, "Run it")
    page.get_by_label("Output").wait_for()
    other, live = visit(page.url.partition("#/")[2]), visit("live")
    try:
        expect(other.get_by_label("Output")).to_contain_text(re.compile(r"step-\d+"))
        expect(other.locator(".called small")).to_have_text(re.compile(r"\d m?s$"))
        expect(live.locator(".row .cut").first).to_have_text(re.compile(r"step-\d+"))
    finally:
        (server.cwd / "enough").touch()
    expect(other.get_by_text("Done.")).to_be_visible()


def test_a_conversation_that_another_process_begins_shows_in_the_list(visit: Visit, server: Server) -> None:
    page = visit("sessions")
    page.get_by_role("listbox", name="Conversations").wait_for()
    server.cli("ask", "begun in a terminal")
    expect(page.get_by_role("option").filter(has_text="begun in a terminal")).to_be_visible()


def test_a_conversation_goes_on_when_the_server_was_killed_in_the_middle_of_it(
    visit: Visit, server: Server, model: ModelServer
) -> None:
    words = _Told("never", "ends")
    model.say(Raw(words))
    page = visit("sessions/new")
    _send(page, "Are you there?")
    words.go_on()
    expect(page.locator(".markdown")).to_have_text("never")
    server.process.kill()
    page.get_by_text("connecting…", exact=True).wait_for()
    page.get_by_role("alert").first.wait_for()
    server.stop()
    server.start()
    words.go_on()
    page.get_by_text("connected", exact=True).wait_for()
    expect(page.get_by_role("alert")).to_have_count(0)
    model.say(ModelReply("Again."))
    _send(page, "And now?")
    expect(page.locator(".markdown").last).to_have_text("Again.")


def test_a_page_that_loads_while_the_server_does_not_answer_waits_for_it(visit: Visit) -> None:
    page = visit("live")
    page.route("**/v1/me", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("the server does not answer")
    assert page.get_by_label("Token").count() == 0
    page.unroute("**/v1/me")
    page.get_by_text("connected", exact=True).wait_for()


def test_an_address_that_is_no_address_shows_a_page(visit: Visit) -> None:
    page = visit("sessions/%")
    eventually(lambda: page.get_by_role("alert").count() > 0)
    expect(page.get_by_role("navigation")).to_be_visible()
