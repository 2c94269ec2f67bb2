"""Run calls of `web_search` and `web_extract`."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...base.safe_text import safe_error
from ...base.workers import pool
from ...core.outcome import tool_result
from ...egress.questions import tool_guard
from ...errors import InvalidArguments, ToolError, ToolFailed, ToolUnavailable
from ...net.fetch import NOTE, Fetcher, clean
from ...net.http_client import ask
from ...net.url_guard import without_login
from ...settings.services import WebConfig
from ...types import JsonDict, ToolContext, Unavailable
from .extract import extract
from .web_search import backends, choose, url_of

_HITS = 8
_FIELD_CHARS = 600
_PAGE_CHARS = 20_000
_MAX_EXTRACTED = 4  # pages at a time
_MAX_BYTES = 5_000_000
_REFUSALS = {
    401: "the key is not accepted",
    403: "access is denied (for SearXNG: add json to search.formats in its settings)",
    429: "too many requests; wait, or use another backend",
}


async def web_search(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    if not (query := args["query"].strip()):
        raise InvalidArguments("the query is empty", argument="query")
    limit = args.get("limit", _HITS)
    config = context.config.web
    backend = choose(config)
    if isinstance(backend, Unavailable):
        raise ToolUnavailable(f"web_search is unavailable: {backend}", reason=backend.reason, fix=backend.fix)
    context.progress(f"asking {backend}")
    hits = (await search(backend, query, limit, config))[:limit]
    shown = [{name: clean(value)[:_FIELD_CHARS] for name, value in hit._asdict().items() if value} for hit in hits]
    if not shown:
        return tool_result(results=[], backend=backend, hint="nothing was found; try fewer or other words")
    return tool_result(note=NOTE, results=shown, backend=backend)


async def web_extract(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    config = context.config.web
    urls = list(dict.fromkeys(args["urls"]))
    max_chars = args.get("max_chars", _PAGE_CHARS)
    done = 0

    async def one(url: str) -> JsonDict:
        nonlocal done
        result = await _read(url, fetcher, slots, max_chars)
        done += 1
        context.progress(f"read {without_login(url)}", done / len(urls))
        return result

    slots = asyncio.Semaphore(_MAX_EXTRACTED)
    async with Fetcher(tool_guard(context, "web_extract"), config) as fetcher:
        results = await asyncio.gather(*(one(url) for url in urls))
    return tool_result(note=NOTE, results=results)


async def _read(url: str, fetcher: Fetcher, slots: asyncio.Semaphore, max_chars: int) -> JsonDict:
    """One page, or why it could not be read: the other pages are returned all the same."""
    result: JsonDict = {"url": without_login(url)}
    try:
        page = await fetcher.get(url)
        if page.url != url:
            result["final_url"] = page.url
        if page.status >= 400:
            result |= {"error": f"the server answered {page.status}", "error_type": "tool_failed"}
        async with slots:
            title, text = (clean(part) for part in await extract(page))
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


class Hit(NamedTuple):
    title: str
    url: str
    snippet: str = ""
    published: str = ""


async def search(name: str, query: str, limit: int, config: WebConfig) -> list[Hit]:
    """What the backend of that name finds. The user chose its address, which is not guarded. Raises ToolFailed."""
    if name == "ddgs":  # the result pages of public search engines, with no key
        return await asyncio.wrap_future(pool.submit(_ask_engines, query, limit, config.timeout))
    api, url = backends()[name], url_of(name, config).rstrip("/")
    key = os.environ.get(api.key, "")
    asked = {api.query: query, **({api.limit: limit} if api.limit else {}), **api.fixed}
    headers = {"accept": "application/json"}
    if api.key_header:
        headers[api.key_header] = f"Bearer {key}" if api.key_header == "authorization" else key
    reply = await ask(
        "POST" if api.is_post else "GET",
        url + api.path,
        what=name,
        seconds=config.timeout,
        max_bytes=_MAX_BYTES,
        headers=headers,
        **{"json" if api.is_post else "params": asked},
    )
    if not reply.is_good:
        why = _REFUSALS.get(reply.status)
        raise ToolFailed(f"{name} answers {reply.status}: {why}") if why else reply.failure(name)
    found = reply.json()
    if not isinstance(found, dict):
        raise ToolFailed(f"{name} answered with something that is not its JSON; is {url} its address?")
    hits = _hits(found.get("web", found).get("results", []), snippet=api.snippet, published=api.published)
    return [hit._replace(snippet=re.sub(api.marks, "", hit.snippet)) for hit in hits] if api.marks else hits


def _ask_engines(query: str, limit: int, timeout: float) -> list[Hit]:
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        found = DDGS(timeout=max(1, round(timeout))).text(query, max_results=limit)
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise ToolFailed(
            f"the public search engines cannot be asked: {error}. If that stays so, set up another backend: web.search"
        ) from None
    return _hits(found, url="href", snippet="body")


def _hits(
    found: Sequence[Mapping[str, Any]], *, url: str = "url", snippet: str = "content", published: str = ""
) -> list[Hit]:
    """The results of a service that has these names for their parts."""
    return [Hit(*(one.get(name) or "" for name in ("title", url, snippet, published))) for one in found]
