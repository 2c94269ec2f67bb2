"""What `browser_cdp` may send, and what leaves the browser past its proxy."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.tools.browser.actions import ALLOWED

from ..pages import Site, html
from .conftest import Call

_PATH_WORDS = frozenset({"path", "paths", "file", "files", "filename", "folder", "dir", "directory"})
_DROP = """<title>Drop</title><body style="height:500px" ondragenter="event.preventDefault()" ondragover="event.preventDefault()"
ondrop="event.preventDefault(); event.dataTransfer.files[0]?.text().then((text) => fetch('/got?' + text))">"""


def test_no_file_of_this_machine_is_dropped_onto_a_page(site: Site, browser: Call, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    site.pages["/"] = html(_DROP)
    browser("navigate", url=site.url + "/")
    dragged = {"items": [], "files": [str(secret)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        sent = browser("cdp", method="Input.dispatchDragEvent", params={"type": kind, "x": 9, "y": 9, "data": dragged})
        assert sent["error_type"] == "denied"
    assert not [path for path in site.asked if "got" in str(path)]


def test_no_allowed_command_takes_a_path(running_browser: str) -> None:
    """By the protocol of the browser that is installed. A later one may add a parameter to a command."""
    protocol = httpx.get(f"{running_browser}/json/protocol").json()
    types = {f"{each['domain']}.{one['id']}": one for each in protocol["domains"] for one in each.get("types", [])}
    commands = {f"{each['domain']}.{one['name']}": one for each in protocol["domains"] for one in each["commands"]}

    def names(domain: str, value: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[str]:
        for field in [*value.get("parameters", []), *value.get("properties", [])]:
            yield field["name"]
            yield from names(domain, field, seen)
        if "items" in value:
            yield from names(domain, value["items"], seen)
        reference = value.get("$ref", "")
        full = reference if "." in reference else f"{domain}.{reference}"
        if reference and full not in seen:
            yield from names(full.partition(".")[0], types[full], seen | {full})

    def is_path(name: str) -> bool:
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
        return not _PATH_WORDS.isdisjoint(word.lower() for word in words)

    found = {
        method: [each for each in names(method.partition(".")[0], command) if is_path(each)]
        for method, command in commands.items()
    }
    assert {method for method in ALLOWED if method not in commands} == set()
    assert {method: taken for method, taken in found.items() if taken and method in ALLOWED} == {}
    # The search itself finds those that are known.
    assert found["Input.dispatchDragEvent"] == ["files"]
    assert found["DOM.setFileInputFiles"]


_CALL_OUT = """async (port) => {
    const made = new RTCPeerConnection({iceServers: [{urls: `stun:127.0.0.1:${port}`},
        {urls: `turn:127.0.0.1:${port}?transport=udp`, username: 'a', credential: 'b'}]});
    made.createDataChannel('x');
    await made.setLocalDescription(await made.createOffer());
    if (made.iceGatheringState !== 'complete')
        await new Promise((done) => made.onicegatheringstatechange = () => made.iceGatheringState === 'complete' && done());
    return made.localDescription.sdp.split('candidate:').length - 1;
}"""


def test_voice_and_video_send_nothing_past_the_proxy(site: Site, browser: Call) -> None:
    site.pages["/"] = html("<title>T</title><p>here</p>")
    browser("navigate", url=site.url + "/")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        expression = f"({_CALL_OUT})({listener.getsockname()[1]})"
        params = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = browser("cdp", method="Runtime.evaluate", params=params)
        assert answer["result"]["result"]["value"] == 0, answer
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.recv(2_000)
