"""`vision_analyze`: images of all sorts, looked at by a model of its own or by the one that asks."""

from __future__ import annotations

import base64
import io
import json
import struct
import threading
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from handrail.config.config_file import ConfigFile
from handrail.core.registry import registry
from handrail.model_tools import handle_function_call, reset
from handrail.types import CancelToken
from tests.support import error_in, takes_less_than, wait_until

from .conftest import Configure, call
from .provider import Provider, png


def _saved(path: Path, kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 20), **more: Any) -> str:
    Image.new(mode, size, 1 if mode in ("L", "1", "P", "I;16") else None).save(path, kind, **more)
    return str(path)


@pytest.fixture
def eyes(media: Configure, provider: Provider) -> None:
    media(vision_model="lab:eyes")
    provider.says["eyes"] = "a red square"


@pytest.fixture
def forgetful(home: Path) -> None:
    registry.availability.forget()


class TestByAModel:
    def test_the_question_and_the_image_reach_it(self, eyes: None, provider: Provider, workdir: Path) -> None:
        (workdir / "a.png").write_bytes(png(30, 20))
        answer = json.loads(call("vision_analyze", image_url="a.png", question="Which colour?"))
        assert (answer["answer"], answer["model"], answer["width"], answer["height"]) == (
            "a red square",
            "eyes",
            30,
            20,
        )
        assert provider.images[0].size == (30, 20)
        assert provider.requests[0]["messages"][-1]["content"][0] == {"type": "text", "text": "Which colour?"}

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            ("PNG", "RGBA"),
            ("JPEG", "RGB"),
            ("JPEG", "CMYK"),
            ("GIF", "P"),
            ("WEBP", "RGBA"),
            ("BMP", "RGB"),
            ("TIFF", "I;16"),
        ],
    )
    def test_every_usual_kind_is_taken(
        self, eyes: None, provider: Provider, workdir: Path, kind: str, mode: str
    ) -> None:
        call("vision_analyze", image_url=_saved(workdir / "picture", kind, mode))
        assert provider.images[0].size == (40, 20)

    def test_a_large_one_is_made_smaller(self, eyes: None, provider: Provider, workdir: Path) -> None:
        call("vision_analyze", image_url=_saved(workdir / "large", "PNG", size=(4000, 1000)))
        assert provider.images[0].size == (1568, 392)

    def test_one_that_lies_on_its_side_is_turned(self, eyes: None, provider: Provider, workdir: Path) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        call("vision_analyze", image_url=_saved(workdir / "phone.jpg", "JPEG", exif=exif))
        assert provider.images[0].size == (20, 40)

    def test_a_data_url_is_taken(self, eyes: None, provider: Provider) -> None:
        call("vision_analyze", image_url="data:image/png;base64," + base64.b64encode(png()).decode())
        assert provider.images[0].size == (8, 8)

    def test_a_refused_key_is_said_and_not_shown(
        self, eyes: None, provider: Provider, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LAB_KEY", "sk-wrong-but-secret-0123456789")
        (workdir / "a.png").write_bytes(png())
        error = error_in(call("vision_analyze", image_url="a.png"))
        assert error["status"] == 401
        assert "sk-wrong" not in error["error"]

    @pytest.mark.parametrize("said", [(200, {"choices": []}), (200, {}), "", "  "])
    def test_an_answer_that_is_none_is_an_error(self, eyes: None, provider: Provider, workdir: Path, said: Any) -> None:
        provider.says["eyes"] = said
        (workdir / "a.png").write_bytes(png())
        assert "the model 'eyes'" in error_in(call("vision_analyze", image_url="a.png"))["error"]

    def test_it_can_be_cancelled(self, eyes: None, provider: Provider, workdir: Path) -> None:
        (workdir / "a.png").write_bytes(png())
        provider.held = threading.Event()
        cancel, outcomes = CancelToken(), []
        arguments = {"image_url": "a.png"}
        thread = threading.Thread(
            target=lambda: outcomes.append(handle_function_call("vision_analyze", arguments, cancel=cancel))
        )
        thread.start()
        wait_until(lambda: provider.requests)
        with takes_less_than(30):
            cancel.cancel()
            thread.join()
        assert error_in(outcomes[0])["error_type"] == "cancelled"

    def test_one_that_takes_too_long_is_given_up(self, media: Configure, provider: Provider, workdir: Path) -> None:
        media(vision_model="lab:eyes", timeout=0.3)
        provider.says["eyes"], provider.held = "late", threading.Event()
        (workdir / "a.png").write_bytes(png())
        assert error_in(call("vision_analyze", image_url="a.png"))["error_type"] == "timeout"

    def test_without_its_key_the_tool_says_so(self, eyes: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("LAB_KEY")
        registry.availability.forget()
        error = error_in(call("vision_analyze", image_url="a.png"))
        assert error["error_type"] == "unavailable"
        assert "LAB_KEY" in error["error"]


class TestByTheModelThatAsks:
    def test_it_gets_the_image_itself(self, forgetful: None, workdir: Path) -> None:
        outcome = call("vision_analyze", image_url=_saved(workdir / "a.webp", "WEBP"), question="What is it?")
        assert outcome["_multimodal"] is True
        text, image = outcome["content"]
        assert json.loads(text["text"])["question"] == "What is it?"
        head, _, data = image["image_url"]["url"].partition(";base64,")
        assert head == "data:image/jpeg"
        assert Image.open(io.BytesIO(base64.b64decode(data))).size == (40, 20)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"hello",
            png()[:40],
            png()[:-30],
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            b"GIF89a" + b"\xff" * 50,
        ],
        ids=["empty", "text", "cut in its head", "cut in its pixels", "SVG", "nonsense"],
    )
    def test_what_is_no_image_or_a_broken_one_is_said(self, forgetful: None, workdir: Path, data: bytes) -> None:
        (workdir / "x.png").write_bytes(data)
        error = error_in(call("vision_analyze", image_url="x.png"))
        assert "broken" in error["error"]

    def test_a_few_bytes_that_unpack_to_gigabytes_are_refused(self, forgetful: None, workdir: Path) -> None:
        head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        bomb = png()[:8] + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + png()[33:]
        (workdir / "bomb.png").write_bytes(bomb)
        with takes_less_than(30):
            assert "pixels" in error_in(call("vision_analyze", image_url="bomb.png"))["error"]

    def test_a_file_that_is_too_large_is_refused(self, media: Configure, workdir: Path) -> None:
        media(max_image_bytes=100)
        (workdir / "x.png").write_bytes(png(500, 500))
        assert "the limit is 100 bytes" in error_in(call("vision_analyze", image_url="x.png"))["error"]

    def test_a_name_that_is_nearly_right_gets_a_hint(self, forgetful: None, workdir: Path) -> None:
        (workdir / "chart.png").write_bytes(png())
        assert error_in(call("vision_analyze", image_url="chart.pgn"))["similar"] == ["chart.png"]

    @pytest.mark.parametrize("url", ["data:image/png", "data:image/png;base64,%%%", "ftp://example.org/a.png"])
    def test_an_address_that_is_none_is_said(self, forgetful: None, workdir: Path, url: str) -> None:
        assert error_in(call("vision_analyze", image_url=url))


class TestFromTheWeb:
    @pytest.fixture
    def site(self, workdir: Path) -> Iterator[str]:
        class Quiet(SimpleHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Tests print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(workdir)))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        server.server_close()
        thread.join()

    def test_a_private_address_is_refused(self, forgetful: None, site: str, workdir: Path) -> None:
        (workdir / "a.png").write_bytes(png())
        assert error_in(call("vision_analyze", image_url=f"{site}/a.png"))["error_type"] == "denied"

    def test_an_image_is_fetched(self, forgetful: None, site: str, workdir: Path) -> None:
        (workdir / "a.png").write_bytes(png(24, 12))
        ConfigFile().set("web.allow_private", ["127.0.0.1"])
        reset()
        outcome = call("vision_analyze", image_url=f"{site}/a.png")
        assert json.loads(outcome["content"][0]["text"])["width"] == 24
        assert error_in(call("vision_analyze", image_url=f"{site}/b.png"))["status"] == 404
