"""Run a call of `text_to_speech`: by espeak-ng on this machine, or by a model."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from ...base.workers import pool
from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed
from ...files.task_arguments import text_argument, write_actions, written_name
from ...media import ESPEAK
from ...media.providers import place_of, post
from ...protocols import Action, Preview
from ...settings.schema import Config
from ...types import JsonDict, Resources, ToolContext
from .output_files import output_path, save

# Formats that models write; espeak-ng writes only WAV.
FORMATS = ("mp3", "wav", "opus", "flac", "aac", "pcm")
_MAX_CHARS = 50_000
_MAX_MODEL_CHARS = 4096
_MAX_BYTES = 256 * 1024 * 1024


async def text_to_speech(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    """Return where the sound file is."""
    context = context or ToolContext()
    config, path = context.config, _path(args)
    text, model = text_argument(args, "text"), config.media.speech_model
    limit = _MAX_MODEL_CHARS if model else _MAX_CHARS
    if not text.strip():
        raise InvalidArguments("the text is empty", argument="text")
    if len(text) > limit:
        raise InvalidArguments(f"the text has {len(text):,} characters; the limit is {limit:,}", argument="text")
    context.progress(f"{model or ESPEAK} speaks")
    suffix = path.rpartition(".")[2].lower()
    allowed = FORMATS if model else ("wav",)
    if suffix not in allowed:
        raise InvalidArguments(
            f"output_path must end in {', '.join('.' + each for each in allowed)}", argument="output_path"
        )
    data = await (_by_model(text, suffix, config) if model else _by_espeak(text, config.media.speech_voice))
    saved = await asyncio.wrap_future(pool.submit(save, data, path, context))
    return tool_result(path=saved, bytes=len(data), by=model or ESPEAK)


def _path(args: JsonDict) -> str:
    return output_path(args, "speech", ".wav", args.get("text"))


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    return Resources(writes=(written_name(_path(args), context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    shown = Preview(f"[speech that is made of:]\n{args.get('text')}")
    return write_actions([_path(args)], context, lambda: shown)


async def _by_model(text: str, suffix: str, config: Config) -> bytes:
    place = place_of(config.media.speech_model, config)
    body = {"input": text, "voice": config.media.speech_voice or "alloy", "response_format": suffix}
    reply = await post(place, "/audio/speech", body, config=config, max_bytes=_MAX_BYTES)
    if not reply.body or reply.headers.get("content-type", "").startswith(("application/json", "text/")):
        raise ToolFailed(f"{place.label} answered without sound")
    return reply.body


async def _by_espeak(text: str, voice: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="handrail-speech-") as folder:
        path = Path(folder) / "speech.wav"
        chosen = ["-v", voice] if voice else []
        process = await asyncio.create_subprocess_exec(
            ESPEAK, *chosen, "-b", "1", "-w", str(path), "--stdin",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            _, errors = await process.communicate(text.encode())
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode or not path.exists():
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise ToolFailed(f"{ESPEAK} failed: {lines[0] if lines else f'exit code {process.returncode}'}")
        return path.read_bytes()
