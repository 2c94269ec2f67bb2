"""Run calls of `web_search` and `web_extract`."""

from __future__ import annotations

import asyncio

from ...base.safe_text import safe_error
from ...core.outcome import tool_result
from ...egress.questions import tool_guard
from ...errors import InvalidArguments, ToolError, ToolUnavailable
from ...net.fetch import NOTE, Fetcher, clean
from ...net.url_guard import without_login
from ...types import JsonDict, ToolContext, Unavailable
from .extract import Extractor
from .search import choose, search

_HITS = 8
_FIELD_CHARS = 600
_PAGE_CHARS = 20_000


async def web_search(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    query = args["query"].strip()
    if not query:
        raise InvalidArguments("the query is empty", argument="query")
    limit = args.get("limit", _HITS)
    config = (context or ToolContext()).config.web
    backend = choose(config)
    if isinstance(backend, Unavailable):
        raise ToolUnavailable(f"web_search is unavailable: {backend}", reason=backend.reason, fix=backend.fix)
    if context is not None:
        context.progress(f"asking {backend}")
    hits = await search(backend, query, limit, config)
    shown = [
        {name: clean(value)[:_FIELD_CHARS] for name, value in hit._asdict().items() if value} for hit in hits[:limit]
    ]
    if not shown:
        return tool_result(results=[], backend=backend, hint="nothing was found; try fewer or other words")
    return tool_result(note=NOTE, results=shown, backend=backend)


async def web_extract(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    config = (context or ToolContext()).config.web
    urls = list(dict.fromkeys(args["urls"]))
    max_chars = args.get("max_chars", _PAGE_CHARS)
    done = 0

    async def one(url: str) -> JsonDict:
        nonlocal done
        result = await _read(url, fetcher, extractor, max_chars)
        done += 1
        if context is not None:
            context.progress(f"read {without_login(url)}", done / len(urls))
        return result

    extractor = Extractor()
    async with Fetcher(tool_guard(context or ToolContext(), "web_extract"), config) as fetcher:
        results = await asyncio.gather(*(one(url) for url in urls))
    return tool_result(note=NOTE, results=results)


async def _read(url: str, fetcher: Fetcher, extractor: Extractor, max_chars: int) -> JsonDict:
    """One page, or why it could not be read: the other pages are returned all the same."""
    result: JsonDict = {"url": without_login(url)}
    try:
        page = await fetcher.get(url)
        if page.url != url:
            result["final_url"] = page.url
        if page.status >= 400:
            result |= {"error": f"the server answered {page.status}", "error_type": "tool_failed"}
        title, text = (clean(part) for part in await extractor.read(page))
    except ToolError as error:
        return {"error": safe_error(str(error)), "error_type": error.error_type, **result}
    if title:
        result["title"] = title
    result["content"] = text[:max_chars]
    more = [
        f"{len(text) - max_chars} more characters" if len(text) > max_chars else "",
        "the page is longer than what is read of one" if page.is_cut else "",
        "" if text else "it has no text without its scripts; a browser may show more",
    ]
    if any(more):
        result["more"] = "; ".join(part for part in more if part)
    return result
