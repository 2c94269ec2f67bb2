"""Run a call of `image_generate`: a model makes the image."""

from __future__ import annotations

import asyncio
import base64
import binascii
import posixpath
from urllib.parse import urlsplit

from ...base.workers import pool
from ...core.outcome import tool_result
from ...errors import ToolFailed
from ...files.task_arguments import text_argument, write_actions, written_name
from ...media.images import check_suffix, in_format
from ...media.providers import Place, place_of, post
from ...net.http_client import ask
from ...protocols import Action, Preview
from ...types import JsonDict, Resources, ToolContext
from .output_files import output_path, save

SIZES = {"square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536"}
_MAX_BYTES = 64 * 1024 * 1024


async def image_generate(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    """Return where the image is, and its size."""
    context = context or ToolContext()
    config, path = context.config, _path(args)
    place, suffix = place_of(config.media.image_model, config), posixpath.splitext(path)[1]
    check_suffix(suffix)
    context.progress(f"{place.model} draws")
    wanted = SIZES[args.get("aspect_ratio") or "square"]
    body = {"prompt": text_argument(args, "prompt"), "n": 1, "size": wanted}
    reply = await post(place, "/images/generations", body, config=config, max_bytes=_MAX_BYTES)
    try:
        made = reply.json()["data"][0]
        inline = made.get("b64_json")
        data = base64.b64decode(inline, validate=True) if inline else await _downloaded(made["url"], place)
    except (TypeError, LookupError, AttributeError, binascii.Error):
        raise ToolFailed(f"{place.label} answered with no image") from None
    picture = await in_format(data, suffix, what="the image that was made")
    saved = await asyncio.wrap_future(pool.submit(save, picture.data, path, context))
    size = {"width": picture.width, "height": picture.height, "bytes": len(picture.data)}
    revised = made.get("revised_prompt")
    more = {"revised_prompt": revised} if revised else {}
    return tool_result({"path": saved, **size, "model": place.model, **more})


def _path(args: JsonDict) -> str:
    return output_path(args, "image", ".png", args.get("prompt"), args.get("aspect_ratio"))


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    return Resources(writes=(written_name(_path(args), context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    shown = Preview(f"[an image that is made of:]\n{args.get('prompt')}")
    return write_actions([_path(args)], context, lambda: shown)


async def _downloaded(url: str, place: Place) -> bytes:
    """An image that the provider hosts for a while. Only from an https address, or the provider itself."""
    parts, own = urlsplit(str(url)), urlsplit(place.base_url)
    if parts.scheme != "https" and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
        raise ToolFailed(f"{place.label} gave an image address that may not be fetched")
    reply = await ask("GET", str(url), what="the provider's store of images", max_bytes=_MAX_BYTES)
    if not reply.is_good:
        raise reply.failure("the provider's store of images")
    return reply.body
