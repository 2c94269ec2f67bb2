"""Models beside the agent's own: `providers` asks them, `images` loads and converts pictures, and answers questions about them.
Here are the checks of the tools: every listing runs them, so nothing heavy is imported."""

import os

from ..core.availability import first_lack, missing, usable_unless
from ..settings.schema import Config
from ..types import Unavailable

ESPEAK = "espeak-ng"


def check_vision(config: Config) -> Unavailable | bool:
    model = config.media.vision_model
    return usable_unless(first_lack(missing("media", "PIL", "httpx"), _model_lack(model, config) if model else None))


def check_image_generation(config: Config) -> Unavailable | bool:
    if not (model := config.media.image_model):
        return Unavailable("no model that makes images is configured", "set media.image_model in config.yaml")
    return usable_unless(first_lack(missing("media", "PIL"), _model_lack(model, config)))


def check_speech(config: Config) -> Unavailable | bool:
    if config.media.speech_model:
        return usable_unless(_model_lack(config.media.speech_model, config))
    if any(os.access(os.path.join(folder, ESPEAK), os.X_OK) for folder in os.get_exec_path()):
        return True
    return Unavailable(f"{ESPEAK} is not installed", f"install {ESPEAK}, or set media.speech_model in config.yaml")


def check_mixture(config: Config) -> Unavailable | bool:
    names = config.media.mixture_models
    if len(names) < 2:
        fix = "list them under media.mixture_models in config.yaml"
        return Unavailable("fewer than two models are configured for it", fix)
    wanted = [*names, *([config.media.mixture_merger] if config.media.mixture_merger else [])]
    return usable_unless(first_lack(*(_model_lack(name, config) for name in wanted)))


def _model_lack(name: str, config: Config) -> Unavailable | None:
    from .providers import why_not  # most users have no model but the agent's own

    return why_not(name, config)
