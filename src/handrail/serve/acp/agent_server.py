"""The agent's side of the protocol: what an editor may ask, and the answers."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import acp
from acp import schema

from ... import __version__
from ...agent.agent_factory import open_store
from ...errors import HandrailError, ModelError, SessionNotFound
from ...types import JsonDict
from ..mcp.stdio import stdio_pair
from .commands import available_commands, command_reply
from .link import PRESENTATION, EditorLink
from .session import Prompt, Session, open_session
from .updates import plan_of, replayed

_PAGE = 50
_MAX_TEXT = 400_000
_CODES: dict[type[HandrailError], int] = {SessionNotFound: -32002, ModelError: -32000}


class AgentServer:
    """All sessions of one editor. The SDK calls a method per request. `terminals`: commands run in those of the editor."""

    def __init__(self, model: str | None, *, terminals: bool) -> None:
        self._model, self._terminals = model, terminals
        self._store = open_store()
        self._sessions: dict[str, Session] = {}
        self._reopening = asyncio.Lock()
        self._capabilities: schema.ClientCapabilities | None = None
        self._client: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turns = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turns.run_forever, name="handrail-acp-turns", daemon=True)
        self._thread.start()

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        self._capabilities = client_capabilities
        return schema.InitializeResponse(
            protocol_version=min(max(protocol_version, 1), acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="handrail", title="Handrail", version=__version__),
            agent_capabilities=schema.AgentCapabilities.model_validate(PRESENTATION["capabilities"]),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        raise acp.RequestError.invalid_params({"methodId": method_id, "reason": "no login is needed"})

    async def new_session(self, cwd: str, **more: Any) -> schema.NewSessionResponse:
        session = await self._open(cwd, **more)
        return schema.NewSessionResponse(session_id=session.id, **session.state())

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> schema.LoadSessionResponse:
        session = await self._reopen(cwd, session_id, **more)
        for update in replayed(self._store.messages(session.id), session.agent.cwd):
            session.link.send(update)
        if todos := session.agent.todos.items():
            session.link.send(plan_of(todos))
        await session.link.flush()
        return schema.LoadSessionResponse(**session.state())

    async def resume_session(self, cwd: str, session_id: str, **more: Any) -> schema.ResumeSessionResponse:
        return schema.ResumeSessionResponse(**(await self._reopen(cwd, session_id, **more)).state())

    async def fork_session(self, cwd: str, session_id: str, **more: Any) -> schema.ForkSessionResponse:
        session = await self._open(cwd, resume=self._store.branch(self._known(session_id)).id, **more)
        return schema.ForkSessionResponse(session_id=session.id, **session.state())

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> Any:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise acp.RequestError.invalid_params({"cursor": cursor})
        start = int(cursor or 0)
        found = self._store.recent(limit=_PAGE + 1, offset=start, cwd=cwd)
        listed = []
        for info in found[:_PAGE]:
            used = datetime.fromtimestamp(info.updated, UTC).isoformat(timespec="seconds")
            more: Any = {"cwd": info.cwd, "title": info.title or None, "updated_at": used}
            listed.append(schema.SessionInfo(session_id=info.id, **more))
        following = str(start + _PAGE) if len(found) > _PAGE else None
        return schema.ListSessionsResponse(sessions=listed, next_cursor=following)

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        await self._sessions.pop(self._session(session_id).id).close()
        return schema.CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        self._session(session_id).set_mode(mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> Any:
        session = self._session(session_id)
        with _told():
            await session.set_config_option(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=session.config_options())

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> schema.PromptResponse:
        session, content = self._session(session_id), content_of(prompt)
        with _told():
            if (reply := await command_reply(session, content)) is None:
                return await session.prompt(content)
        session.link.send(acp.update_agent_message_text(reply))
        await session.link.flush()
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(session.close() for session in self._sessions.values()), return_exceptions=True)
        self._turns.call_soon_threadsafe(self._turns.stop)
        await asyncio.to_thread(self._thread.join, 5)
        self._store.close()

    async def _open(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, *, resume: str | None = None, **_: Any
    ) -> Session:
        if not os.path.isabs(cwd) or not await asyncio.to_thread(os.path.isdir, cwd):
            raise acp.RequestError.invalid_params({"cwd": cwd, "reason": "it must be the absolute path of a folder"})
        link = EditorLink(self._client, self._capabilities)
        link.uses_terminals = self._terminals and link.has_terminals
        options: Any = {"cwd": cwd, "servers": mcp_servers or (), "model": self._model, "resume": resume}
        try:
            with _told():
                session = await asyncio.to_thread(open_session, link, self._turns, self._store, **options)
        except BaseException:
            link.close()
            raise
        self._sessions[session.id] = session
        # The editor knows the session when it has the answer to its request, which is sent before these.
        asyncio.get_running_loop().call_later(0.05, link.send, available_commands(session))
        task = asyncio.ensure_future(session.list_models())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return session

    async def _reopen(self, cwd: str, session_id: str, **more: Any) -> Session:
        known = self._known(session_id)
        async with self._reopening:  # two requests at once would both open it, and nobody would close the first
            if known in self._sessions:
                await self._sessions.pop(known).close()
            return await self._open(cwd, resume=known, **more)

    def _known(self, session_id: str) -> str:
        """The id of a stored session: all of it, not only its start."""
        with _told():
            if self._store.get(session_id).id == session_id:
                return session_id
        raise acp.RequestError.resource_not_found(session_id)

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise acp.RequestError.resource_not_found(session_id)
        return self._sessions[session_id]


def content_of(prompt: Sequence[Any]) -> Prompt:
    """A prompt for a model: text if it is only that, else parts in OpenAI's shape."""
    parts: list[JsonDict] = []
    for block in prompt:
        if block.type == "image":
            parts.append({"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}})
            continue
        text = f"[{block.type} was left out: it cannot be read here]"
        if block.type == "text":
            text = block.text
        elif block.type == "resource_link":
            text = f"[{block.name}]({block.uri})"
        elif block.type == "resource" and hasattr(block.resource, "text"):
            text = f"<file path={block.resource.uri!r}>\n{block.resource.text[:_MAX_TEXT]}\n</file>"
        parts.append({"type": "text", "text": text})
    is_text = all(part["type"] == "text" for part in parts)
    return "\n\n".join(part["text"] for part in parts) if is_text else parts


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What goes wrong as an error of the protocol, with a message for the user."""
    try:
        yield
    except HandrailError as error:
        raise acp.RequestError(_CODES.get(type(error), -32603), str(error)) from None


async def serve(model: str | None, *, terminals: bool) -> None:
    """Serve the editor that started this process, until it closes the connection."""
    async with stdio_pair() as (reader, writer):
        server: Any = AgentServer(model, terminals=terminals)
        try:
            await acp.run_agent(server, writer, reader, use_unstable_protocol=True)
        finally:
            await server.close()
