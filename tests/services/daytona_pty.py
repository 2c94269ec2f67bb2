"""Terminals in a sandbox, as Daytona has them: a login shell on a real terminal, its bytes in WebSocket messages.

As the real one it sends what was said from the moment a client connects, drops a client that does not keep up, refuses
messages over 64 kB, and does not end the shell because its client is gone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from .containers import Engine, Process

_EXIT_CONTROL = "X-Daytona-Pty-Exit-Control"
_ENVIRONMENT = "X-Daytona-Pty-Envs~"
# One more than it may have: aiohttp refuses a message of just this length.
_MAX_BYTES_IN = 64 * 1024 + 1
_MAX_WAITING = 256
# The real one does not wait at all: there it is the network's speed that decides.
_PATIENCE_SECONDS = 1.0
_KILLED = 137
# The terminal is made inside the sandbox, because `docker exec --tty` keeps some bytes for itself. It says on stderr which
# process and which device it is, ends with the shell's exit code, and takes all its descendants with it when told to end.
_HOST = """
import fcntl, os, pty, signal, struct, sys, termios, threading
rows, cols, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
shell, master = pty.fork()
if shell == 0:
    os.chdir(folder)
    os.execvp("bash", ["bash", "-i", "-l"])
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
os.write(2, ("%d %s\\n" % (os.getpid(), os.readlink("/proc/%d/fd/0" % shell))).encode())
def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(child) for child in file.read().split()]
def kill_below(pid):
    for child in children(pid):
        os.kill(child, signal.SIGSTOP)
        kill_below(child)
        os.kill(child, signal.SIGKILL)
def end(*_):
    kill_below(os.getpid())
    os._exit(137)
signal.signal(signal.SIGTERM, end)
def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]
def feed():
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        write_all(master, data)
threading.Thread(target=feed, daemon=True).start()
while True:
    try:
        data = os.read(master, 32768)
    except OSError:
        break
    write_all(1, data)
status = os.waitpid(shell, 0)[1]
os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
"""


@dataclass
class Terminal:
    """A shell on a terminal, and those who are connected to it."""

    sandbox: str
    info: dict[str, Any]
    process: Process
    host_pid: str
    device: str
    clients: dict[web.WebSocketResponse, asyncio.Queue[bytes]] = field(default_factory=dict)
    closing: list[asyncio.Future[bool]] = field(default_factory=list)
    exit_code: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def broadcast(self) -> None:
        async for chunk in self.process.stdout.read_from(0):
            for client, waiting in list(self.clients.items()):
                try:
                    async with asyncio.timeout(_PATIENCE_SECONDS):
                        await waiting.put(chunk)
                except TimeoutError:
                    self.clients.pop(client, None)
                    # It would wait for a client that does not read to agree.
                    closing = client.close(code=WSCloseCode.POLICY_VIOLATION, message=b"slow consumer", drain=False)
                    self.closing.append(asyncio.ensure_future(closing))
        code = await self.process.wait()
        if not self.exit_code.done():
            self.exit_code.set_result(code)


class Terminals:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._terminals: dict[tuple[str, str], Terminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/toolbox/{id}/process/pty", self._list),
            web.get("/toolbox/{id}/process/pty/create-connect", self._create_and_connect),
            web.get("/toolbox/{id}/process/pty/{terminal}", self._get),
            web.delete("/toolbox/{id}/process/pty/{terminal}", self._kill),
            web.get("/toolbox/{id}/process/pty/{terminal}/connect", self._connect),
            web.post("/toolbox/{id}/process/pty/{terminal}/resize", self._resize),
        ]

    async def _create_and_connect(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if (request.match_info["id"], query["id"]) in self._terminals:
            raise web.HTTPConflict(text=json.dumps({"message": f"PTY session {query['id']!r} exists"}))
        terminal = await self._start(request.match_info["id"], query, _environment(request))
        return await self._attach(request, terminal)

    async def _start(self, sandbox: str, query: Mapping[str, str], env: Mapping[str, str]) -> Terminal:
        info = {
            "id": query["id"],
            "cwd": query.get("cwd") or "/root",
            "envs": {"TERM": "xterm-256color", **env},
            "cols": int(query.get("cols", 80)),
            "rows": int(query.get("rows", 24)),
            "createdAt": datetime.datetime.now(datetime.UTC).isoformat(),
            "active": True,
            "lazyStart": False,
        }
        host = ["python3", "-c", _HOST, str(info["rows"]), str(info["cols"]), str(info["cwd"])]
        process = await self._engine.execute(sandbox, host, env=info["envs"])
        async for said in process.stderr.read_from(0):
            host_pid, device = said.decode().split()[:2]
            break
        else:
            raise web.HTTPInternalServerError(text=json.dumps({"message": "the shell did not start"}))
        terminal = Terminal(sandbox, info, process, host_pid, device)
        self._terminals[sandbox, query["id"]] = terminal
        task = asyncio.create_task(self._run(terminal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return terminal

    async def _run(self, terminal: Terminal) -> None:
        await terminal.broadcast()
        self._terminals.pop((terminal.sandbox, terminal.info["id"]), None)

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        return await self._attach(request, self._terminals.get(_key(request)))

    async def _attach(self, request: web.Request, terminal: Terminal | None) -> web.StreamResponse:
        client = web.WebSocketResponse(max_msg_size=_MAX_BYTES_IN, protocols=[_EXIT_CONTROL], autoping=True)
        await client.prepare(request)
        if terminal is None:
            await client.send_json({"type": "control", "status": "error", "error": "no such PTY session"})
            await client.close()
            return client
        terminal.clients[client] = asyncio.Queue(_MAX_WAITING)
        await client.send_json({"type": "control", "status": "connected"})
        sending = asyncio.create_task(_send(client, terminal))
        try:
            async for message in client:
                if message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                    data = message.data
                    await terminal.process.write(data.encode() if isinstance(data, str) else data)
        except ConnectionError:
            pass
        finally:
            terminal.clients.pop(client, None)
            sending.cancel()
        return client

    async def _list(self, request: web.Request) -> web.Response:
        sandbox = request.match_info["id"]
        return web.json_response({"sessions": [one.info for one in self._terminals.values() if one.sandbox == sandbox]})

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._known(request).info)

    async def _kill(self, request: web.Request) -> web.Response:
        terminal = self._known(request)
        del self._terminals[_key(request)]
        if not terminal.exit_code.done():
            terminal.exit_code.set_result(_KILLED)
        await self._engine.run(terminal.sandbox, "kill", "-TERM", terminal.host_pid)
        return web.json_response({"message": "PTY session deleted"})

    async def _resize(self, request: web.Request) -> web.Response:
        terminal = self._known(request)
        wanted = await request.json()
        size = ["rows", str(wanted["rows"]), "cols", str(wanted["cols"])]
        await self._engine.run(terminal.sandbox, "stty", "--file", terminal.device, *size)
        terminal.info.update(rows=wanted["rows"], cols=wanted["cols"])
        return web.json_response(terminal.info)

    def _known(self, request: web.Request) -> Terminal:
        terminal = self._terminals.get(_key(request))
        if terminal is None:
            raise web.HTTPNotFound(text=json.dumps({"message": "PTY session not found"}))
        return terminal


async def _send(client: web.WebSocketResponse, terminal: Terminal) -> None:
    """All that was said, then how it ended."""
    waiting = terminal.clients[client]
    while not (terminal.exit_code.done() and waiting.empty()):
        said = asyncio.ensure_future(waiting.get())
        await asyncio.wait({said, terminal.exit_code}, return_when=asyncio.FIRST_COMPLETED)
        if said.done():
            await client.send_bytes(said.result())
        else:
            said.cancel()
    code = terminal.exit_code.result()
    how = {"exitCode": code, **({"exitReason": _reason(code)} if code else {})}
    with contextlib.suppress(ConnectionError):
        await client.send_json({"type": "control", "status": "exited", **how})
        await client.close(
            code=WSCloseCode.INTERNAL_ERROR if code else WSCloseCode.OK, message=json.dumps(how).encode()
        )


def _reason(code: int) -> str:
    named = {130: "Ctrl+C", 137: "SIGKILL", 143: "SIGTERM"}
    return named.get(code) or (f"signal {code - 128}" if code > 128 else "non-zero exit")


def _key(request: web.Request) -> tuple[str, str]:
    return request.match_info["id"], request.match_info["terminal"]


def _environment(request: web.Request) -> dict[str, str]:
    """It arrives among the subprotocols, so that it is in no log."""
    for token in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if token.strip().startswith(_ENVIRONMENT):
            encoded = token.strip()[len(_ENVIRONMENT) :]
            decoded = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
            return {str(key): str(value) for key, value in decoded.items()}
    return {}
