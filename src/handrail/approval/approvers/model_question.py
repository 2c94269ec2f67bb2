"""One request to an OpenAI-compatible API, with the standard library only: bounded in time and size, no thread."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

_MAX_BYTES = 256 * 1024


class ChatError(Exception):
    """No usable answer came."""


class ChatModel(NamedTuple):
    """`url` is the address of the API, such as `https://api.openai.com/v1`."""

    url: str
    model: str
    key: str = ""

    async def ask(self, messages: list[dict[str, str]], *, max_tokens: int) -> str:
        """The text of the reply. Raises ChatError. The caller bounds the time."""
        body = {"model": self.model, "messages": messages, "max_tokens": max_tokens, "temperature": 0}
        try:
            status, data = await self._post("/chat/completions", json.dumps(body).encode())
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise ChatError(f"{type(error).__name__}: {error}") from None
        if status != 200:
            raise ChatError(f"the server answered with status {status}")
        try:
            content = json.loads(data)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ChatError("the server's answer is not a chat completion") from None
        if not isinstance(content, str):
            raise ChatError("the server's answer has no text")
        return content

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        url = urlsplit(self.url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{self.url!r} is not an http address")
        secure = ssl.create_default_context() if url.scheme == "https" else None
        port = url.port or (443 if secure else 80)
        reader, writer = await asyncio.open_connection(url.hostname, port, ssl=secure, limit=_MAX_BYTES)
        try:
            writer.write(self._head(url.path.rstrip("/") + path, f"{url.hostname}:{port}", len(body)) + body)
            await writer.drain()
            return await _answer(reader)
        finally:
            writer.transport.abort()

    def _head(self, path: str, host: str, length: int) -> bytes:
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {host}",
            "Content-Type: application/json",
            "Accept: application/json",
            "Accept-Encoding: identity",
            f"Content-Length: {length}",
            "Connection: close",
        ]
        if self.key:
            lines.append(f"Authorization: Bearer {self.key}")
        if any(character in line for line in lines for character in "\r\n"):
            raise ValueError("the address or the key holds an end of line")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    if not head[0].startswith("HTTP/1."):
        raise ValueError("this is not an HTTP server")
    status = int(head[0].split(" ")[1])
    headers: dict[str, str] = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return status, await _chunks(reader)
    if "content-length" in headers:
        return status, await reader.readexactly(_bounded(int(headers["content-length"])))
    return status, await _rest(reader)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            return data
        _bounded(len(data) + size)
        data += await reader.readexactly(size)
        await reader.readexactly(2)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while piece := await reader.read(65_536):
        data += piece
        _bounded(len(data))
    return data


def _bounded(size: int) -> int:
    if not 0 <= size <= _MAX_BYTES:
        raise ValueError(f"an answer of {size} bytes is too large")
    return size
