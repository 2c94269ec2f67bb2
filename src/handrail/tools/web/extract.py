"""Extract the main text of a fetched page or document as Markdown."""

import asyncio
import codecs
import importlib.util
import logging
import re
import sys
from typing import Any, NamedTuple

from ...base.workers import pool
from ...errors import CallTimeout, ToolFailed
from ...net.fetch import Page

_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/toml")
_DOCUMENTS = {
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
# Larger pages are mostly data, and the time of extraction grows faster than they do.
_MAX_HTML_CHARS = 3_000_000
_TITLE_CHARS = 300
_SHORT_CHARS = 200
_SECONDS = 30
_CONVERSION_SECONDS = 60
_MEMORY_BYTES = 4 * 1024**3
_MAX_CHARS = 2_000_000
# Limits first: they apply to the libraries too.
_PROGRAM = """
import io, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
body = sys.stdin.buffer.read()
from markitdown import StreamInfo, converters
reader = getattr(converters, {reader!r})()
text = reader.convert(io.BytesIO(body), StreamInfo(extension={suffix!r})).markdown
sys.stdout.buffer.write(text[:{most}].encode("utf-8", "replace"))
"""


async def convert(body: bytes, suffix: str) -> str:
    """The text of a PDF or office file, converted in a process of its own: such files can hang a converter, or be a bomb. Raises
    ToolFailed when it cannot be read."""
    if importlib.util.find_spec("markitdown") is None:
        raise ToolFailed(f"a {suffix} file needs a converter that is not installed: pip install 'handrail[documents]'")
    limits = {"seconds": _CONVERSION_SECONDS, "memory": _MEMORY_BYTES, "most": _MAX_CHARS}
    program = _PROGRAM.format(reader=f"{suffix[1:].title()}Converter", suffix=suffix, **limits)
    pipe = asyncio.subprocess.PIPE
    # None of our keys: what is read comes from strangers.
    variables = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", program, stdin=pipe, stdout=pipe, stderr=pipe, env=variables
    )
    try:
        async with asyncio.timeout(_CONVERSION_SECONDS):
            out, err = await child.communicate(body)
    except TimeoutError:
        raise CallTimeout(f"the document could not be read within {_CONVERSION_SECONDS} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {child.returncode}"]
        raise ToolFailed(f"the {suffix} file cannot be read: {last[0][:300]}")
    return out.decode(errors="replace").strip()


class Extract(NamedTuple):
    title: str
    text: str


async def extract(page: Page) -> Extract:
    """In a worker thread, as the work is CPU-bound. Raises ToolFailed for a page without text."""
    if suffix := document_suffix(page):
        return Extract("", await convert(page.body, suffix))
    try:
        async with asyncio.timeout(_SECONDS):
            return await asyncio.wrap_future(pool.submit(read_text, page))
    except TimeoutError:
        raise CallTimeout(f"its text could not be extracted within {_SECONDS} s") from None


def document_suffix(page: Page) -> str:
    """Of the kinds that a converter reads; empty for all others."""
    if page.body.startswith(b"%PDF-"):
        return ".pdf"
    if page.body.startswith(b"PK\x03\x04"):
        by_name = re.search(r"\.(docx|pptx|xlsx)(?:[?#]|$)", page.url, re.IGNORECASE)
        return _DOCUMENTS.get(page.content_type, "") or (by_name.group(0)[:5].lower() if by_name else "")
    return ""


def read_text(page: Page) -> Extract:
    if (kind := page.content_type or _sniffed(page.body)) in _HTML_TYPES:
        return _from_html(decoded(page.body, page.charset), page.url)
    if not (kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))):
        raise ToolFailed(f"{kind or 'unknown'} is not a kind of document with readable text ({len(page.body)} bytes)")
    if b"\0" in page.body[:1000] and not page.charset and not page.body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolFailed(f"the server says that it is {kind}, but it is not text ({len(page.body)} bytes)")
    return Extract("", decoded(page.body, page.charset))


def decoded(body: bytes, charset: str) -> str:
    """The text of a body, decoded by its byte order mark, the server's or the page's charset, or a guess."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, "replace")
    declared = _META_CHARSET.search(body[:4096])
    for name in (charset, declared.group(1).decode("ascii", "replace") if declared else ""):
        if name and (codec := _codec(name)):
            return body.decode(codec, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        # A page that was cut may end inside a character.
        if error.start > len(body) - 4:
            return body.decode(errors="replace")
    from charset_normalizer import from_bytes

    best = from_bytes(body[:200_000]).best()
    return body.decode(best.encoding if best else "cp1252", "replace")


def _codec(name: str) -> str:
    """The codec that browsers mean by a name."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return ""
    if not found._is_text_encoding:  # rot13 and zip are codecs too
        return ""
    return "cp1252" if found.name in ("iso8859-1", "ascii") else found.name


def _sniffed(body: bytes) -> str:
    start = body[:1000].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")) or b"<body" in start:
        return "text/html"
    return "" if b"\0" in body[:1000] else "text/plain"


def _from_html(html: str, url: str) -> Extract:
    import trafilatura

    # Oddities of a page are not for our log.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    html = html[:_MAX_HTML_CHARS]
    if (tree := _tree(html)) is None:
        return Extract("", "")
    title = " ".join((tree.findtext(".//title") or "").split())[:_TITLE_CHARS]
    text = trafilatura.extract(
        tree, url=url, output_format="markdown", include_links=True, include_tables=True, include_comments=False
    )
    if not text or len(text) < _SHORT_CHARS:  # a list of links, an app's shell, a very short page: then all of its text
        whole = trafilatura.html2txt(_tree(html))
        text = whole if len(whole) > 2 * len(text or "") else text
    return Extract(title, _BLANK_LINES.sub("\n\n", text or "").strip())


def _tree(html: str) -> Any:
    """The page parsed as a browser would: most of the outer tags may be missing. None for an empty page."""
    from lxml import etree  # type: ignore[import-untyped]
    from lxml.html import HTMLParser, document_fromstring  # type: ignore[import-untyped]

    try:
        return document_fromstring(html.encode("utf-8", "replace"), parser=HTMLParser(encoding="utf-8"))
    except (etree.ParserError, etree.XMLSyntaxError):
        return None
