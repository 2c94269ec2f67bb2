"""Convert a PDF or office file to Markdown in a process of its own: such files can hang a converter, or be a bomb."""

from __future__ import annotations

import asyncio
import importlib.util
import sys

from ...errors import CallTimeout, ToolFailed

_SECONDS = 60
_MEMORY_BYTES = 4 * 1024**3
_MAX_CHARS = 2_000_000
READERS = {".pdf": "PdfConverter", ".docx": "DocxConverter", ".pptx": "PptxConverter", ".xlsx": "XlsxConverter"}
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
    """The text of a document. Raises ToolFailed when it cannot be read."""
    if importlib.util.find_spec("markitdown") is None:
        raise ToolFailed(f"a {suffix} file needs a converter that is not installed: pip install 'handrail[documents]'")
    program = _PROGRAM.format(
        seconds=_SECONDS, memory=_MEMORY_BYTES, reader=READERS[suffix], suffix=suffix, most=_MAX_CHARS
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        program,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # None of our keys: what is read comes from strangers.
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"},
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await child.communicate(body)
    except TimeoutError:
        raise CallTimeout(f"the document could not be read within {_SECONDS} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {child.returncode}"]
        raise ToolFailed(f"the {suffix} file cannot be read: {last[0][:300]}")
    return out.decode(errors="replace").strip()
