"""A conversation in a real browser: how it reads, what its keys do, and what happens while the agent works."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

from handrail.protocols import ModelReply
from handrail.store.sessions import SessionStore
from handrail.testing.model_server import ModelServer, Raw

from ..serve.conftest import Server
from ..support import call
from . import console_parts
from .console_parts import HOSTILE, HOSTILE_NAME, PHONE, Visit, eventually, overlaps, shoot, violations

if console_parts.missing() and not os.environ.get("CI"):
    pytest.skip(console_parts.missing(), allow_module_level=True)

expect: Any = import_module("playwright.sync_api").expect

_MARKDOWN = f"""## What I found

The total is wrong: **discounts** are applied twice in `orders.py`.

| order | was | should be |
|---|---|---|
| 1041 | 18.00 | 20.00 |

```python
def total(lines):
    # one discount per order
    return sum(line.price for line in lines) * 0.9
```

### One

### Two

1. a [page](https://example.org/x) and a [trap](javascript:alert(1))
2. ![a picture](https://example.org/secret.png)

{HOSTILE}
"""
_DIFF = """--- a/orders.py
+++ b/orders.py
@@ -10,4 +10,4 @@
 def total(lines):
--- a comment of another language
-    price = sum(lines) * 0.9 * 0.9
+-- a comment of another language, too
+    price = sum(lines) * 0.9
     return price
"""
_TODOS = '{"todos": [{"content": "find it", "status": "completed"}, {"content": "mend it", "status": "in_progress"}]}'


def _picture() -> str:
    """A PNG of one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = chunk(b"IHDR", (1).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0]))
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _told(server: Server) -> str:
    """A conversation with everything in it. Its id."""
    store = SessionStore(server.home / "state/sessions.db")
    info = store.create(platform="cli", model="a-model", cwd="/srv/shop", title="The wrong total")
    output = json.dumps({"output": "".join(f"line {number}\n" for number in range(40)), "exit_code": 0})
    shown = [{"type": "text", "text": "Look at this"}, {"type": "image_url", "image_url": {"url": _picture()}}]
    patch = {"path": "orders.py", "old": "x", "new": "y"}
    asked = [
        call("terminal", command="make test"),
        call("patch", **patch),
        call("todo", todos=[]),
        call("mcp__clock__now"),
    ]
    store.append(
        info.id,
        [
            *({"role": "user", "content": f"an older question, {number}"} for number in range(40)),
            {"role": "user", "content": shown},
            {"role": "assistant", "content": "I run the tests.", "tool_calls": asked},
            {"role": "tool", "tool_call_id": "terminal", "content": output},
            {"role": "tool", "tool_call_id": "patch", "content": json.dumps({"diff": _DIFF})},
            {"role": "tool", "tool_call_id": "todo", "content": _TODOS},
            {"role": "tool", "tool_call_id": "mcp__clock__now", "content": '{"content": "it is noon"}'},
            {"role": "assistant", "content": _MARKDOWN},
        ],
    )
    store.close()
    return info.id


_ONLY_THE_FIRST_EVENTS = """
const whole = window.fetch;
window.fetch = async (url, options) => {
    const answer = await whole(url, options);
    if (!String(url).includes("/v1/events")) return answer;
    const reader = answer.body.getReader(), pieces = [], decoder = new TextDecoder();
    for (let text = ""; !/event: hello[^]*\\n\\n/.test(text); ) {  // it may come in several pieces
        const piece = await reader.read();
        if (piece.done) return answer;
        pieces.push(piece.value);
        text += decoder.decode(piece.value, { stream: true });
    }
    const body = new ReadableStream({ start: (controller) => pieces.forEach((each) => controller.enqueue(each)) });
    return new Response(body, { status: answer.status, headers: answer.headers });
};
"""
_AT_END = """() => {
    const box = document.querySelector('.talk-box');
    return box.scrollHeight - box.scrollTop - box.clientHeight < 50;
}"""


class TestReading:
    def test_markdown_is_formatted_and_html_stays_text(self, visit: Visit, server: Server) -> None:
        page = visit(f"sessions/{_told(server)}")
        said = page.locator(".markdown").last
        expect(said.locator("strong")).to_have_text("discounts")
        expect(said.get_by_role("cell", name="20.00")).to_be_visible()
        expect(said.get_by_role("heading", level=4)).to_have_text(["One", "Two"])
        expect(said.locator("pre .hljs-keyword").first).to_have_text("def")
        expect(said).to_contain_text("<script>")
        expect(said.get_by_role("link", name="page")).to_have_attribute("rel", "noopener noreferrer")
        assert said.locator("a[href^='javascript']").count() == 0
        assert said.locator("img, script").count() == 0
        assert "owned" not in page.title()

    def test_it_opens_at_its_end_with_the_field_in_sight(self, visit: Visit, server: Server) -> None:
        for size in ({"width": 1200, "height": 850}, PHONE):
            page = visit(f"sessions/{_told(server)}", viewport=size)
            page.locator(".markdown strong").wait_for()
            page.wait_for_function(_AT_END)
            box = page.get_by_label("Message to the agent").bounding_box()
            assert box["y"] + box["height"] <= size["height"]

    def test_nothing_takes_back_the_wheel(self, visit: Visit, server: Server) -> None:
        """Neither a scroll of the page's own that is heard late, nor the first step of the way up, which is short."""
        page = visit(f"sessions/{_told(server)}")
        page.locator(".markdown strong").wait_for()
        page.wait_for_function(_AT_END)
        box, latest = page.locator(".talk-box"), page.get_by_role("button", name="Latest")
        box.evaluate(
            """box => {
                [new WheelEvent('wheel', {deltaY: -1}), new Event('scroll')].forEach((each) => box.dispatchEvent(each));
                box.scrollTop -= 5;
                return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            }"""
        )
        expect(latest).to_be_visible()
        box.hover()
        page.mouse.wheel(0, -400)
        page.wait_for_function(f"() => !({_AT_END})()")
        page.mouse.wheel(0, 1000)
        expect(latest).to_have_count(0)

    def test_calls_look_as_in_the_terminal(self, visit: Visit, server: Server) -> None:
        page = visit(f"sessions/{_told(server)}")
        diff = page.get_by_label("Changes in orders.py")
        expect(diff.locator(".minus")).to_have_count(2)  # a removed line may look like a header
        expect(diff.locator(".minus .number").last).to_contain_text("12")
        expect(diff.locator(".minus .hljs-number .word")).to_have_text("0.9")  # marked, and coloured as code
        assert "".join(diff.locator(".minus .word").all_text_contents()) == " * 0.9"
        output = page.get_by_label("Output").first
        expect(output).to_contain_text("line 39")
        expect(output).not_to_contain_text("line 1\n")
        page.get_by_role("button", name="more lines above").click()
        expect(output).to_contain_text("line 1\n")
        expect(page.get_by_label("Output").last).to_have_text("it is noon")
        expect(page.locator(".todo-strip summary")).to_contain_text("Todo 1/2 · mend it")
        expect(page.get_by_label("in progress").first).to_be_visible()
        picture = page.get_by_alt_text("Image in the conversation")
        assert picture.evaluate("each => each.complete && each.naturalWidth") == 1

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_is_accessible_and_fits_a_phone(self, visit: Visit, server: Server, scheme: str) -> None:
        session = _told(server)
        for name, size in (("desktop", {"width": 1200, "height": 850}), ("phone", PHONE)):
            page = visit(f"sessions/{session}", viewport=size, color_scheme=scheme)
            page.locator(".markdown strong").wait_for()
            shoot(page, f"console-chat-{name}-{scheme}")
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            assert violations(page) == []
            page.locator(".talk-box").evaluate("box => box.scrollTop -= 500")
            shoot(page, f"console-chat-{name}-{scheme}-above")
            assert overlaps(page) == []


class _Endless(Sequence[Any]):
    """An answer that goes on as fast as people can read, until it is over."""

    def __init__(self, is_over: threading.Event) -> None:
        self._is_over = is_over

    def __iter__(self) -> Iterator[Any]:
        while not self._is_over.wait(0.02):
            yield {"content": "again and again and once more,\n\n"}

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: Any) -> Any:
        raise IndexError


class TestTalking:
    def test_enter_sends_and_shift_enter_is_a_new_line(self, visit: Visit, model: ModelServer) -> None:
        model.say(ModelReply("**Two** lines."), ModelReply("And again."))
        page = visit("sessions/new")
        field = page.get_by_label("Message to the agent")
        field.press_sequentially("one")
        field.press("Shift+Enter")
        field.press_sequentially("two")
        expect(field).to_have_value("one\ntwo")
        field.press("Enter")
        expect(page.locator(".talk .user .words")).to_have_text("one\ntwo")
        expect(page.locator(".markdown strong")).to_have_text("Two")
        assert re.search(r"#/sessions/\d", page.url)
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        field.press_sequentially("more")
        field.press("Enter")
        expect(page.get_by_text("And again.")).to_be_visible()
        expect(page.locator(".talk > li")).to_have_count(4)

    def test_an_image_is_attached_and_reaches_the_model(self, visit: Visit, model: ModelServer) -> None:
        model.say(ModelReply("A grey pixel."))
        page = visit("sessions/new", viewport=PHONE)
        data = base64.b64decode(_picture().partition(",")[2])
        files = [{"name": f"{each}.png", "mimeType": "image/png", "buffer": data} for each in ("one", "two")]
        page.locator("input[type=file]").set_input_files(files)
        page.get_by_role("button", name="Remove image 2").click()
        expect(page.get_by_role("list", name="Attached images").get_by_role("listitem")).to_have_count(1)
        page.get_by_label("Message to the agent").fill("What is this?")
        shoot(page, "console-image")
        assert violations(page) == []
        assert overlaps(page) == []
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("A grey pixel.")).to_be_visible()
        expect(page.locator(".talk .user .picture")).to_have_count(1)
        expect(page.get_by_role("list", name="Attached images")).to_have_count(0)
        sent = [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "user"][-1]
        assert sent[1]["image_url"]["url"] == _picture()

    def test_a_question_is_answered_in_the_conversation(self, visit: Visit, server: Server, model: ModelServer) -> None:
        folder = server.cwd / "precious"
        folder.mkdir()
        model.say(ModelReply("I tidy up.", [call("terminal", command="rm -rf precious")]), _another_way)
        page = visit("sessions/new")
        page.get_by_label("Message to the agent").fill("Tidy up, please")
        page.get_by_label("Message to the agent").press("Enter")
        card = page.locator(".chat").get_by_role("article", name="terminal")
        expect(card.locator("mark")).to_have_text("rm -rf precious")
        expect(card).to_contain_text(re.compile(r"auto-deny in \d:\d\d"))
        this_session = page.url.rpartition("/")[2]
        expect(card.get_by_role("link", name=this_session)).to_have_count(0)
        expect(page.locator(".called small")).to_have_text("waiting for an answer")
        page.wait_for_function(_AT_END)
        shoot(page, "console-session", x=501, y=58, width=699, height=792)
        card.get_by_role("button", name="Deny").click()
        page.get_by_label("Why not?").fill("somebody needs it")
        page.keyboard.press("Enter")
        expect(page.get_by_text("I leave it: somebody needs it")).to_be_visible()
        expect(page.locator(".failed")).to_have_text("Denied by operator (web console): somebody needs it")
        expect(page.get_by_role("log")).to_be_focused()
        expect(card).to_have_count(0)
        assert folder.exists()

    def test_a_child_agent_is_opened_while_it_works_and_afterwards(self, visit: Visit, model: ModelServer) -> None:
        model.say(
            ModelReply("", [call("delegate_task", goal="Count the files.")]),
            ModelReply("I look at them first.", [call("terminal", command="rm -rf build")]),
            ModelReply("There are three."),
            ModelReply("A child counted."),
        )
        page = visit("sessions/new")
        page.get_by_label("Message to the agent").fill("Count them")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Deny").wait_for()
        parent = page.url
        page.locator("small", has_text="Child agents:").get_by_role("link").click()
        expect(page.locator(".markdown").last).to_have_text("I look at them first.")
        page.goto(parent)
        page.get_by_role("button", name="Deny").click()
        page.get_by_role("button", name="Deny").click()
        expect(page.locator(".markdown").last).to_have_text("A child counted.")
        page.get_by_role("link", name="Open").click()
        expect(page.locator(".markdown").last).to_have_text("There are three.")

    def test_it_follows_the_stream_unless_scrolled_up_and_is_stopped(self, visit: Visit, model: ModelServer) -> None:
        is_over = threading.Event()
        model.say(Raw(_Endless(is_over)))
        page = visit("sessions/new", viewport={"width": 1200, "height": 500})
        page.get_by_label("Message to the agent").fill("Talk")
        page.get_by_label("Message to the agent").press("Enter")
        grown = "() => document.querySelector('.talk-box').scrollHeight > 3 * document.querySelector('.talk-box').clientHeight"
        page.wait_for_function(grown)
        page.wait_for_function(_AT_END)
        page.locator(".talk-box").hover()
        page.mouse.wheel(0, -400)
        page.get_by_role("button", name="Latest").wait_for()
        at = page.locator(".talk-box").evaluate("box => box.scrollTop")
        high = page.locator(".talk-box").evaluate("box => box.scrollHeight")
        page.wait_for_function("high => document.querySelector('.talk-box').scrollHeight > high + 100", arg=high)
        assert abs(page.locator(".talk-box").evaluate("box => box.scrollTop") - at) < 50
        expect(page.get_by_role("button", name="Stop")).to_be_in_viewport()
        page.get_by_role("button", name="Latest").click()
        page.wait_for_function(_AT_END)
        page.get_by_label("Message to the agent").press("Escape")
        expect(page.get_by_role("alert")).to_contain_text("stopped by operator")
        is_over.set()
        expect(page.get_by_role("button", name="Send")).to_be_enabled()

    def test_another_conversation_begins_while_one_works_and_a_stopped_command_keeps_its_output(
        self, visit: Visit, model: ModelServer
    ) -> None:
        command = "n=0; until [ -e enough ]; do n=$((n+1)); echo step-$n; sleep 0.2; done"
        model.say(ModelReply("", [call("terminal", command=command)]), ModelReply("**Another** one."))
        page = visit("sessions/new")
        field, talk = page.get_by_label("Message to the agent"), page.locator(".talk > li")
        expect(field).to_be_focused()
        page.keyboard.type("Wait")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Output")).to_have_text(re.compile(r"step-\d+\s+step-\d+"))
        first = page.url
        page.get_by_role("button", name="New").click()
        expect(talk).to_have_count(0)
        page.keyboard.type("Another")
        page.keyboard.press("Enter")
        expect(page.locator(".markdown strong")).to_have_text("Another")
        expect(talk).to_have_count(2)
        page.goto(first)
        expect(page.get_by_role("button", name="Stop")).to_be_enabled()
        page.get_by_role("log").focus()
        page.keyboard.press("Escape")
        expect(page.locator(".talk .tool .tag")).to_have_text("cancelled")
        expect(page.get_by_label("Output")).to_contain_text(re.compile(r"step-\d+\s+step-\d+"))

    def test_what_is_said_while_it_works_is_heard_before_its_next_step(
        self, visit: Visit, server: Server, model: ModelServer
    ) -> None:
        command = "until [ -e heard ]; do sleep 0.05; done"
        model.say(ModelReply("", [call("terminal", command=command)]), ModelReply("Green it is."))
        page = visit("sessions/new")
        field = page.get_by_label("Message to the agent")
        field.fill("Paint it red")
        field.press("Enter")
        page.locator(".talk .tool").wait_for()
        field.fill("Rather green")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".talk .user .words").last).to_have_text("Rather green")
        shoot(page, "console-steer")
        (server.cwd / "heard").touch()
        expect(page.get_by_text("Green it is.")).to_be_visible()
        said = [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "user"]
        assert "Rather green" in said[-1]
        page.reload()
        expect(page.locator(".talk .user .words").last).to_have_text("Rather green")

    def test_what_is_said_just_after_its_end_begins_another_turn(
        self, visit: Visit, server: Server, model: ModelServer
    ) -> None:
        command = "until [ -e late ]; do sleep 0.05; done"
        model.say(
            ModelReply("", [call("terminal", command=command)]), ModelReply("Red it is."), ModelReply("Now green.")
        )
        page = visit("sessions/new")
        field = page.get_by_label("Message to the agent")
        field.fill("Paint it red")
        field.press("Enter")
        page.locator(".talk .tool").wait_for()
        session = page.url.rpartition("/")[2]

        def after_its_end(route: Any) -> None:
            (server.cwd / "late").touch()
            eventually(lambda: not server.client.get(f"/v1/sessions/{session}").json()["is_running"])
            route.continue_()

        page.route("**/steer", after_its_end)
        field.fill("Rather green")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("Now green.")).to_be_visible()
        expect(page.get_by_text("Red it is.")).to_be_visible()
        assert "Rather green" in json.dumps(model.requests[-1]["messages"])

    def test_a_conversation_that_began_here_stays_when_its_turn_ends(
        self, visit: Visit, server: Server, model: ModelServer
    ) -> None:
        """Also where nothing leads to loading it once more: no event, and no turn that was seen to run."""
        command = "until [ -e stays ]; do sleep 0.05; done"
        model.say(ModelReply("", [call("terminal", command=command)]), ModelReply("**Here** to stay."))
        page = visit("sessions/new", before=_ONLY_THE_FIRST_EVENTS)

        def is_over(route: Any) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "is_running": False})

        page.route(re.compile(r"/v1/sessions/\d[^/]*$"), is_over)
        page.get_by_label("Message to the agent").fill("Stay")
        page.get_by_label("Message to the agent").press("Enter")
        page.locator(".chat-head").wait_for()
        (server.cwd / "stays").touch()
        expect(page.locator(".markdown strong")).to_have_text("Here")
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        expect(page.locator(".markdown strong")).to_have_text("Here", timeout=5_000)

    def test_the_mode_is_chosen_and_holds(self, visit: Visit, server: Server, model: ModelServer) -> None:
        model.say(ModelReply("", [call("terminal", command="touch planned")]), ModelReply("Only planned."))
        model.say(ModelReply("", [call("terminal", command="touch asked")]), ModelReply("Done now."))
        page = visit("sessions/new")
        page.get_by_label("Mode").select_option("plan")
        page.get_by_label("Message to the agent").fill("Make a file")
        page.get_by_label("Message to the agent").press("Enter")
        expect(page.get_by_text("Only planned.")).to_be_visible()
        assert not (server.cwd / "planned").exists()
        expect(page.get_by_label("Mode")).to_have_value("plan")
        page.get_by_label("Mode").select_option("ask")
        session = page.url.rpartition("/")[2]
        eventually(lambda: server.client.get(f"/v1/sessions/{session}").json()["mode"] == "ask")
        page.get_by_label("Message to the agent").fill("Now really")
        page.get_by_label("Message to the agent").press("Enter")
        page.get_by_role("article", name="terminal").get_by_role("button", name="Once").click()
        expect(page.get_by_text("Done now.")).to_be_visible()
        assert (server.cwd / "asked").exists()

    def test_who_may_not_operate_cannot_change_the_mode(self, visit: Visit, server: Server) -> None:
        session = _told(server)
        page = visit(f"sessions/{session}", role="approve")
        page.locator(".markdown strong").wait_for()
        assert page.get_by_label("Mode").count() == 0
        code = """async (path) => (await fetch(path, {method: 'PUT', body: '{"mode": "yolo"}',
            headers: {'x-handrail': localStorage.getItem('handrail-page-key')}})).status"""
        assert page.evaluate(code, f"/v1/sessions/{session}/mode") == 403

    def test_a_model_that_fails_is_told(self, visit: Visit) -> None:
        page = visit("sessions/new")
        page.get_by_label("Message to the agent").fill("Hello?")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("alert")).to_contain_text("the script is over")
        expect(page.get_by_label("Message to the agent")).to_have_value("Hello?")

    def test_what_another_process_adds_appears(self, visit: Visit, server: Server) -> None:
        session = _told(server)
        page = visit(f"sessions/{session}")
        page.locator(".markdown strong").wait_for()
        store = SessionStore(server.home / "state/sessions.db")
        store.append(session, [{"role": "user", "content": f"typed in a terminal {HOSTILE_NAME}"}])
        store.close()
        expect(page.get_by_text("typed in a terminal")).to_be_visible()


def _another_way(messages: Any, _: Any) -> ModelReply:
    """What a model says that reads why it may not."""
    return ModelReply(f"I leave it: {re.search('somebody needs it', str(messages[-1]))[0]}")  # type: ignore[index]
