"""`web_search` finds pages on the web, `web_extract` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.availability import missing, usable_unless
from ...core.builtin import registry
from ...core.registry import tool_result
from ...errors import InvalidArguments, ToolUnavailable
from ...types import JsonDict, ToolContext, Unavailable

if TYPE_CHECKING:
    from ...net.fetch import Fetcher
    from .extract import Extractor

_HITS = 8
_FIELD_CHARS = 600
_MAX_URLS = 20
_PAGE_CHARS = 20_000


async def web_search(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...core.call_config import config_of
    from ...net.untrusted import NOTE, clean
    from .search import choose, search

    query = args["query"].strip()
    if not query:
        raise InvalidArguments("the query is empty", argument="query")
    limit = args.get("limit", _HITS)
    config = config_of(context).web
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
    import asyncio

    from ...core.call_config import config_of
    from ...net.fetch import Fetcher
    from ...net.untrusted import NOTE
    from ...net.url_guard import Guard, without_login
    from .extract import Extractor

    config = config_of(context).web
    urls = list(dict.fromkeys(args["urls"]))
    most = args.get("max_chars", _PAGE_CHARS)
    done = 0

    async def one(url: str) -> JsonDict:
        nonlocal done
        result = await _read(url, fetcher, extractor, most)
        done += 1
        if context is not None:
            context.progress(f"read {without_login(url)}", done / len(urls))
        return result

    extractor = Extractor()
    async with Fetcher(Guard(config.allow_private), config) as fetcher:
        results = await asyncio.gather(*(one(url) for url in urls))
    return tool_result(note=NOTE, results=results)


async def _read(url: str, fetcher: Fetcher, extractor: Extractor, most: int) -> JsonDict:
    """One page, or why it could not be read: the others are given all the same."""
    from ...base.safe_text import safe_error
    from ...errors import ToolError
    from ...net.untrusted import clean
    from ...net.url_guard import without_login

    told: JsonDict = {"url": without_login(url)}
    try:
        page = await fetcher.get(url)
        if page.url != url:
            told["final_url"] = page.url
        if page.status >= 400:
            told |= {"error": f"the server answered {page.status}", "error_type": "tool_failed"}
        title, text = (clean(part) for part in await extractor.read(page))
    except ToolError as error:
        return {"error": safe_error(str(error)), "error_type": error.error_type, **told}
    if title:
        told["title"] = title
    told["content"] = text[:most]
    more = [
        f"{len(text) - most} more characters" if len(text) > most else "",
        "the page is longer than what is read of one" if page.is_cut else "",
        "" if text else "it has no text without its scripts; a browser may show more",
    ]
    if any(more):
        told["more"] = "; ".join(part for part in more if part)
    return told


def _can_search() -> Unavailable | bool:
    from ...config import load_config
    from .search import choose

    chosen = choose(load_config().web)
    return chosen if isinstance(chosen, Unavailable) else True


def _can_read() -> Unavailable | bool:
    return usable_unless(missing("web", "httpx", "trafilatura"))


registry.register(
    name="web_search",
    toolset="web",
    schema={
        "description": "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, as you would type it."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 20,
                    "description": f"Results at most ({_HITS}).",
                },
            },
            "required": ["query"],
        },
    },
    handler=web_search,
    is_async=True,
    check_fn=_can_search,
    emoji="🔎",
    timeout=90,
    read_only=True,
)
registry.register(
    name="web_extract",
    toolset="web",
    schema={
        "description": (
            "Read web pages, PDFs and office files as Markdown, several at once. Only public addresses. For pages that need "
            "clicks or scripts use `browser_navigate`."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "urls": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": _MAX_URLS,
                    "description": "The addresses, in full.",
                },
                "max_chars": {
                    "type": "integer",
                    "minimum": 100,
                    "maximum": 1_000_000,
                    "description": f"Characters of each page at most ({_PAGE_CHARS}).",
                },
            },
            "required": ["urls"],
        },
    },
    handler=web_extract,
    is_async=True,
    check_fn=_can_read,
    emoji="📄",
    timeout=180,
    read_only=True,
)
