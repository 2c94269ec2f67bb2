"""What each tool of this family needs, and how to get it. Every start asks, so nothing heavy is imported here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.availability import first_lack, missing
from ..types import Unavailable

if TYPE_CHECKING:
    from ..config import Config

SPEAKER = "espeak-ng"


def seeing(config: Config) -> Unavailable | None:
    model = config.media.vision_model
    return first_lack(missing("media", "PIL", "httpx"), _model_lack(model, config) if model else None)


def drawing(config: Config) -> Unavailable | None:
    model = config.media.image_model
    if not model:
        return Unavailable("no model that makes images is configured", "set media.image_model in config.yaml")
    return first_lack(missing("media", "PIL"), _model_lack(model, config))


def speaking(config: Config) -> Unavailable | None:
    if config.media.speech_model:
        return _model_lack(config.media.speech_model, config)
    folders = os.get_exec_path()
    if any(os.access(os.path.join(folder, SPEAKER), os.X_OK) for folder in folders):
        return None
    return Unavailable(f"{SPEAKER} is not installed", f"install {SPEAKER}, or set media.speech_model in config.yaml")


def mixing(config: Config) -> Unavailable | None:
    names = config.media.mixture_models
    if len(names) < 2:
        return Unavailable(
            "fewer than two models are configured for it", "list them under media.mixture_models in config.yaml"
        )
    wanted = [*names, *([config.media.mixture_merger] if config.media.mixture_merger else [])]
    return first_lack(*(_model_lack(name, config) for name in wanted))


def _model_lack(name: str, config: Config) -> Unavailable | None:
    from .providers import why_not  # most have no model but the agent's own

    return why_not(name, config)
