"""What can be configured of messages, images, speech and asking several models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .options import MIB, Section, count, named, option, seconds, size


class MessagesConfig(Section):
    """Where messages can be sent, and where a person is asked."""

    targets: Mapping[str, Mapping[str, Any]] = named(
        "Who or what can be written to, by name: `kind` (email, matrix, slack, ...) and the settings of that kind."
    )
    person: str = option("", "Target at which `clarify` asks its questions when nobody is at the terminal.")
    answer_timeout: float = seconds(300.0, "Seconds to wait for an answer there.")
    max_attachment_bytes: int = size(20 * MIB, "Size of the largest file that is sent along.", minimum=0)


class ProviderConfig(Section):
    """A server with an OpenAI-compatible API."""

    base_url: str = option("", "Its address, such as http://127.0.0.1:11434/v1.")
    key_variable: str = option("", "Environment variable with the key; none is sent if empty.")


class MediaConfig(Section):
    """Models beside the agent's own. `NAME:MODEL` is a model at one of the providers, `MODEL` one where the agent's own is."""

    providers: Mapping[str, ProviderConfig] = named("Servers with an OpenAI-compatible API, by name.")
    vision_model: str = option(
        "", "The model that looks at images. If empty, the agent's own model is given the image and looks itself."
    )
    image_model: str = option("", "The model that makes images.")
    speech_model: str = option("", "The model that speaks. If empty, espeak-ng speaks, on this machine.")
    speech_voice: str = option("", "The voice; the model's or espeak-ng's own names. If empty, a usual one.")
    mixture_models: tuple[str, ...] = option((), "The models that answer for `mixture_of_agents`.")
    mixture_merger: str = option("", "The model that merges their answers; the first of them if empty.")
    max_image_bytes: int = size(20 * MIB, "Size of the largest image that is looked at.")
    max_image_side: int = count(1568, "Pixels of the longer side; a larger image is made smaller.", minimum=16)
    timeout: float = seconds(180.0, "Seconds that one request to a model may take.")
