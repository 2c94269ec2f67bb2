"""Run a call of `vision_analyze`."""

from __future__ import annotations

from ...core.outcome import Outcome
from ...files.task_arguments import read_name, text_argument
from ...media.images import analyze, picture_at
from ...types import JsonDict, Resources, ToolContext


async def vision_analyze(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Outcome:
    context = context or ToolContext()
    question = text_argument(args, "question", "Describe this image in detail, with all text in it.")
    picture = await picture_at(text_argument(args, "image_url"), context)
    return await analyze(picture, question, context)


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    return Resources(reads=(read_name(args.get("image_url"), context),))
