"""`image_generate`: an image from words, by a provider."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from handrail.core.registry import registry
from tests.support import error_in

from .conftest import Configure, call
from .provider import Provider, png


@pytest.fixture
def painter(media: Configure, provider: Provider, workdir: Path) -> Provider:
    media(image_model="lab:painter")
    provider.says["painter"] = (200, {"data": [{"b64_json": base64.b64encode(png(64, 64)).decode()}]})
    return provider


def test_the_image_is_saved_and_described(painter: Provider, workdir: Path) -> None:
    answer = json.loads(call("image_generate", prompt="a cat", aspect_ratio="landscape", output_path="out/cat.png"))
    assert answer["path"] == str(workdir / "out/cat.png")
    assert (answer["width"], answer["height"], answer["model"]) == (64, 64, "painter")
    with Image.open(workdir / "out/cat.png") as saved:
        assert saved.size == (64, 64)
    assert painter.requests == [
        {"path": "/v1/images/generations", "model": "painter", "prompt": "a cat", "n": 1, "size": "1536x1024"}
    ]


def test_the_file_is_what_its_name_says_and_whole(painter: Provider, workdir: Path) -> None:
    painter.says["painter"] = (200, {"data": [{"b64_json": base64.b64encode(png(2048, 64)).decode()}]})
    answer = json.loads(call("image_generate", prompt="a cat", output_path="cat.jpg"))
    with Image.open(workdir / "cat.jpg") as saved:
        assert (saved.format, saved.size) == ("JPEG", (2048, 64))
    assert (answer["width"], answer["bytes"]) == (2048, (workdir / "cat.jpg").stat().st_size)


def test_a_name_that_means_no_image_is_said(painter: Provider, workdir: Path) -> None:
    error = error_in(call("image_generate", prompt="a cat", output_path="cat.psd"))
    assert (error["error_type"], error["argument"]) == ("invalid_arguments", "output_path")
    assert painter.requests == [], "nothing is paid for that cannot be kept"


def test_without_a_path_it_gets_a_name_of_its_own(painter: Provider, workdir: Path) -> None:
    paths = {json.loads(call("image_generate", prompt=prompt))["path"] for prompt in ("a cat", "a dog")}
    assert len(paths) == 2
    assert all(Path(path).parent == workdir and path.endswith(".png") for path in paths)


def test_an_image_that_the_provider_keeps_is_fetched(painter: Provider, workdir: Path) -> None:
    url = painter.base_url.replace("/v1", "/store/1.png")
    painter.says["painter"] = (200, {"data": [{"url": url, "revised_prompt": "a nice cat"}]})
    answer = json.loads(call("image_generate", prompt="a cat", output_path="cat.png"))
    assert answer["revised_prompt"] == "a nice cat"
    assert (workdir / "cat.png").read_bytes() == painter.stored


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a.png", "file:///etc/passwd", "http://169.254.169.254/"])
def test_an_address_that_leads_elsewhere_is_not_fetched(painter: Provider, workdir: Path, url: str) -> None:
    painter.says["painter"] = (200, {"data": [{"url": url}]})
    assert "may not be fetched" in error_in(call("image_generate", prompt="a cat"))["error"]


@pytest.mark.parametrize(
    "said",
    [
        (200, {}),
        (200, {"data": []}),
        (200, {"data": [{}]}),
        (200, {"data": ["x"]}),
        (200, {"data": [{"b64_json": "%%%"}]}),
        (200, {"data": [{"b64_json": base64.b64encode(b"no image").decode()}]}),
        (400, {"error": {"message": "Your request was rejected by the safety system"}}),
    ],
)
def test_what_is_no_image_leaves_no_file(painter: Provider, workdir: Path, said: Any) -> None:
    painter.says["painter"] = said
    assert error_in(call("image_generate", prompt="a cat"))
    assert list(workdir.iterdir()) == []


def test_without_a_model_it_says_what_it_needs(home: Path) -> None:
    registry.availability.forget()
    error = error_in(call("image_generate", prompt="a cat"))
    assert error["error_type"] == "unavailable"
    assert "media.image_model" in error["fix"]
