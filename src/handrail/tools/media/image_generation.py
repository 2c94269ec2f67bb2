"""Have an image made by a model."""

from __future__ import annotations

import asyncio
import base64
import binascii
import posixpath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...base.workers import pool
from ...core.outcome import tool_result
from ...errors import ToolFailed
from ...files.task_arguments import text_argument
from ...media.images import check_suffix, in_format
from ...media.providers import Place, place_of, post
from ...net.http_client import ask
from .output_files import save

if TYPE_CHECKING:
    from ...config import Config
    from ...types import JsonDict, ToolContext

SIZES = {"square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536"}
_MAX_BYTES = 64 * 1024 * 1024


async def draw(args: JsonDict, path: str, *, config: Config, context: ToolContext | None) -> str:
    """The answer of the tool: where the image is, and what it is."""
    place, suffix = place_of(config.media.image_model, config), posixpath.splitext(path)[1]
    check_suffix(suffix)
    if context is not None:
        context.progress(f"{place.model} draws")
    wanted = SIZES[args.get("aspect_ratio") or "square"]
    body = {"prompt": text_argument(args, "prompt"), "n": 1, "size": wanted}
    reply = await post(place, "/images/generations", body, config=config, max_bytes=_MAX_BYTES)
    try:
        made = reply.json()["data"][0]
        inline = made.get("b64_json")
        data = base64.b64decode(inline, validate=True) if inline else await _got(made["url"], place)
    except (TypeError, LookupError, AttributeError, binascii.Error):
        raise ToolFailed(f"{place.label} answered with no image") from None
    picture = await in_format(data, suffix, what="the image that was made")
    saved = await asyncio.wrap_future(pool.submit(save, picture.data, path, context))
    size = {"width": picture.width, "height": picture.height, "bytes": len(picture.data)}
    told = {"path": saved, **size, "model": place.model}
    revised = made.get("revised_prompt")
    return tool_result({**told, "revised_prompt": revised} if revised else told)


async def _got(url: str, place: Place) -> bytes:
    """An image that the provider keeps for a while. It is not led elsewhere: only https, or the provider itself."""
    parts, own = urlsplit(str(url)), urlsplit(place.base_url)
    if parts.scheme != "https" and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
        raise ToolFailed(f"{place.label} gave an address for its image that is not fetched")
    reply = await ask("GET", str(url), what="the provider's store of images", max_bytes=_MAX_BYTES)
    if not reply.is_good:
        raise reply.failure("the provider's store of images")
    return reply.body
