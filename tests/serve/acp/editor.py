"""An editor made of the SDK's own client, and a real `handrail acp` with a scripted model behind it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import acp
from acp import schema

from handrail.testing.model_server import ModelServer

from ... import fork_server
from ...support import PATIENCE_SECONDS

Step = Callable[["Editor"], Awaitable[None]]


class Editor:
    """What the agent sent, and what its user answers. `buffers` is unsaved text by path; `answer` decides about permissions,
    a list about one each."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[schema.ToolCallUpdate] = []
        self.options: list[list[schema.PermissionOption]] = []
        self.answer: str | list[str] | asyncio.Event = "once"
        self.forms: list[str] = []
        self.filled_in: dict[str, Any] = {}
        self.buffers: dict[str, str] = {}
        self.terminals: dict[str, subprocess.Popen[bytes]] = {}
        self.agent: Any = None
        self.session = ""

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append(tool_call)
        self.options.append(options)
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = self.answer.pop(0) if isinstance(self.answer, list) else self.answer
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append(message)
        return schema.AcceptElicitationResponse(action="accept", content=self.filled_in)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        text = self.buffers.get(path)
        content = await asyncio.to_thread(Path(path).read_text) if text is None else text
        return schema.ReadTextFileResponse(content=content)

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        self.buffers[path] = content
        return schema.WriteTextFileResponse()

    async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
        env = {**os.environ, **{each.name: each.value for each in more.get("env") or ()}}
        words = [command, *(more.get("args") or ())]
        name = f"terminal-{len(self.terminals)}"
        self.terminals[name] = subprocess.Popen(  # noqa: ASYNC220  a test's own loop
            words,
            cwd=more.get("cwd"),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return schema.CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        return schema.WaitForTerminalExitResponse(exit_code=await asyncio.to_thread(self.terminals[terminal_id].wait))

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        output = self.terminals[terminal_id].stdout
        assert output is not None
        return schema.TerminalOutputResponse(output=(await asyncio.to_thread(output.read)).decode(), truncated=False)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        os.killpg(self.terminals[terminal_id].pid, 9)
        return schema.KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        output = self.terminals[terminal_id].stdout
        if output is not None:
            output.close()
        return schema.ReleaseTerminalResponse()

    async def prompt(self, *blocks: Any, session: str = "") -> schema.PromptResponse:
        made = [acp.text_block(block) if isinstance(block, str) else block for block in blocks]
        answer: schema.PromptResponse = await self.agent.prompt(session_id=session or self.session, prompt=made)
        return answer

    def of(self, kind: str) -> list[Any]:
        """The updates of one sort, in their order."""
        return [update for _, update in self.updates if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of(kind))

    def ends(self) -> dict[str, Any]:
        """The last state of each card that is over."""
        cards = [*self.of("tool_call"), *self.of("tool_call_update")]
        return {card.tool_call_id: card for card in cards if card.status in ("completed", "failed")}


def run(home: Path, cwd: Path, model: ModelServer, work: Step, *args: str, **capabilities: Any) -> Editor:
    """Do something with an editor that has one session open."""

    async def inside() -> Editor:
        async with opened(home, cwd, model, *args, **capabilities) as editor:
            made = await editor.agent.new_session(cwd=str(cwd), mcp_servers=[])
            editor.session = made.session_id
            await work(editor)
        return editor

    return asyncio.run(inside())


@contextlib.asynccontextmanager
async def opened(home: Path, cwd: Path, model: ModelServer, *args: str, **capabilities: Any) -> AsyncIterator[Editor]:
    """An editor that is connected; it has no session yet."""
    env = {
        "HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(cwd), "HANDRAIL_MODEL": "scripted",
        "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k",
    }  # fmt: skip
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = fork_server.start("-m", "handrail", "acp", *args, env=env, cwd=cwd, **pipes)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    target, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
    editor = Editor()
    writer = asyncio.StreamWriter(target, protocol, None, loop)
    connection = acp.connect_to_agent(editor, writer, reader, use_unstable_protocol=True)
    editor.agent = connection
    try:
        await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=schema.ClientCapabilities(**capabilities)
        )
        yield editor
    finally:
        await connection.close()
        target.close()
        assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) == 0
        source.close()


async def until(condition: Callable[[], Any]) -> None:
    """Wait in the loop until something holds."""
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not condition():
        assert asyncio.get_running_loop().time() < end, "it did not happen"
        await asyncio.sleep(0.01)
