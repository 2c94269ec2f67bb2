"""`text_to_speech`: by the real espeak-ng, and by a provider."""

from __future__ import annotations

import io
import json
import shutil
import wave
from pathlib import Path

import pytest

from handrail.core.registry import registry
from tests.services.components import absent
from tests.support import error_in

from .conftest import Configure, call
from .provider import Provider


def _seconds(path: str | Path) -> float:
    with wave.open(str(path)) as sound:
        return sound.getnframes() / sound.getframerate()


def _sound() -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"\0\0" * 800)
    return written.getvalue()


class TestByEspeak:
    @pytest.fixture(autouse=True)
    def _is_there(self, home: Path, workdir: Path) -> None:
        if shutil.which("espeak-ng") is None:
            absent("espeak-ng", "apt-get install espeak-ng")
        registry.availability.forget()

    def test_more_words_take_longer(self, workdir: Path) -> None:
        short = json.loads(call("text_to_speech", text="Hello."))
        long = json.loads(call("text_to_speech", text="Hello, this is a longer text. " * 5, output_path="out/long.wav"))
        assert 0.2 < _seconds(short["path"]) < _seconds(long["path"])
        assert long["path"] == str(workdir / "out/long.wav")
        assert long["by"] == "espeak-ng"

    def test_what_looks_like_an_option_or_another_script_is_text(self, workdir: Path) -> None:
        answer = json.loads(call("text_to_speech", text="-w /tmp/elsewhere; Привет, 世界 \U0001f600"))
        assert _seconds(answer["path"]) > 0.2

    def test_another_voice_sounds_otherwise(self, media: Configure, workdir: Path) -> None:
        call("text_to_speech", text="one two three", output_path="a.wav")
        media(speech_voice="de")
        call("text_to_speech", text="one two three", output_path="b.wav")
        assert (workdir / "a.wav").read_bytes() != (workdir / "b.wav").read_bytes()

    def test_a_voice_that_is_not_there_is_said(self, media: Configure, workdir: Path) -> None:
        media(speech_voice="klingon-of-nowhere")
        assert "espeak-ng failed" in error_in(call("text_to_speech", text="x"))["error"]
        assert list(workdir.iterdir()) == []

    @pytest.mark.parametrize(
        ("text", "path"), [("", "a.wav"), (" \n", "a.wav"), ("x" * 50_001, "a.wav"), ("x", "a.mp3")]
    )
    def test_what_cannot_be_spoken_is_said(self, text: str, path: str) -> None:
        assert error_in(call("text_to_speech", text=text, output_path=path))["error_type"] == "invalid_arguments"


class TestByAModel:
    @pytest.fixture(autouse=True)
    def _voice(self, media: Configure, provider: Provider, workdir: Path) -> None:
        media(speech_model="lab:voice", speech_voice="nova")
        provider.says["voice"] = (200, _sound())

    def test_the_sound_is_saved_in_the_wanted_form(self, provider: Provider, workdir: Path) -> None:
        json.loads(call("text_to_speech", text="Hello", output_path="hello.mp3"))
        assert (workdir / "hello.mp3").read_bytes() == _sound()
        assert provider.requests == [
            {"path": "/v1/audio/speech", "model": "voice", "input": "Hello", "voice": "nova", "response_format": "mp3"}
        ]

    @pytest.mark.parametrize("said", [(200, {"error": "no"}), (200, b""), (500, {"error": {"message": "overloaded"}})])
    def test_what_is_no_sound_leaves_no_file(self, provider: Provider, workdir: Path, said: tuple[int, object]) -> None:
        provider.says["voice"] = said
        assert error_in(call("text_to_speech", text="Hello"))
        assert list(workdir.iterdir()) == []


def test_without_espeak_it_says_what_it_needs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    registry.availability.forget()
    error = error_in(call("text_to_speech", text="x"))
    assert error["error_type"] == "unavailable"
    assert "install espeak-ng" in error["fix"]
