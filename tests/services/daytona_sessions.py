"""Sessions in a sandbox, as Daytona has them: commands in one shell after the other, and their logs.

As the real ones they are made of lines: every line of output gets a prefix that says which stream it is of, input gets a
line's end if it has none, and unless told otherwise what is put in is in the log, too. They are not for binary data.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, web

from .containers import Engine, Process

_PREFIXES = {"stdout": b"\x01\x01\x01", "stderr": b"\x02\x02\x02"}
_FOLDER = "/tmp/.daytona"
# Runs the file `command` in the session's shell, so that its variables and its folder stay. $1 is the command's folder.
_RUN = """
__run() {
  mkfifo "$1/in" "$1/out" "$1/err"
  __label '\\001\\001\\001' <"$1/out" >>"$1/log" & local out=$!
  __label '\\002\\002\\002' <"$1/err" >>"$1/log" & local err=$!
  if [ -e "$1/open" ]; then sleep infinity >"$1/in" & else : >"$1/in" & fi
  local in=$!
  . "$1/command" <"$1/in" >"$1/out" 2>"$1/err"
  local code=$?
  kill $in 2>/dev/null
  wait $out $err
  echo $code >"$1/exit.half" && mv "$1/exit.half" "$1/exit"
}
__label() { local line; while IFS= read -r line || [ -n "$line" ]; do printf "$1%s\\n" "$line"; done; }
"""
# Writes a log as it grows, until the command has ended. $1 is the command's folder.
_FOLLOW = """
import os, sys, time
with open(sys.argv[1] + "/log", "rb", buffering=0) as log:
    while True:
        over = os.path.exists(sys.argv[1] + "/exit")
        data = log.read(65536)
        if data:
            os.write(1, data)
        elif over:
            break
        else:
            time.sleep(0.02)
"""


@dataclass
class Command:
    identifier: str
    text: str
    folder: str
    is_echoing: bool
    exit_code: int | None = None

    def described(self) -> dict[str, Any]:
        known = {} if self.exit_code is None else {"exitCode": self.exit_code}
        return {"id": self.identifier, "command": self.text, **known}


@dataclass
class Session:
    identifier: str
    sandbox: str
    shell: Process
    commands: dict[str, Command] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        return {"sessionId": self.identifier, "commands": [one.described() for one in self.commands.values()]}


class Sessions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[tuple[str, str], Session] = {}

    def routes(self) -> list[web.RouteDef]:
        session = "/toolbox/{id}/process/session"
        command = session + "/{session}/command/{command}"
        return [
            web.post(session, self._create),
            web.get(session, self._list),
            web.get(session + "/{session}", self._get),
            web.delete(session + "/{session}", self._delete),
            web.post(session + "/{session}/exec", self._execute),
            web.get(command, self._command),
            web.get(command + "/logs", self._logs),
            web.post(command + "/input", self._input),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        sandbox, identifier = request.match_info["id"], (await request.json())["sessionId"]
        if (sandbox, identifier) in self._sessions:
            raise _refusal(web.HTTPConflict, "session already exists")
        shell = await self._engine.execute(sandbox, ["bash"])
        shell.discard(shell.stdout, shell.stderr)
        await shell.write(_RUN.encode())
        self._sessions[sandbox, identifier] = Session(identifier, sandbox, shell)
        return web.Response(status=201)

    async def _list(self, request: web.Request) -> web.Response:
        sandbox = request.match_info["id"]
        return web.json_response([one.described() for one in self._sessions.values() if one.sandbox == sandbox])

    async def _get(self, request: web.Request) -> web.Response:
        session = self._session(request)
        for command in session.commands.values():
            await self._look_for_end(session, command)
        return web.json_response(session.described())

    async def _delete(self, request: web.Request) -> web.Response:
        session = self._session(request)
        del self._sessions[session.sandbox, session.identifier]
        await session.shell.write(b"", eof=True)
        kill = f"pkill --signal KILL --full '{_FOLDER}/{session.identifier}/' ; true"
        await self._engine.run(session.sandbox, "bash", "-c", kill)
        return web.Response(status=204)

    async def _execute(self, request: web.Request) -> web.Response:
        session = self._session(request)
        wanted = await request.json()
        is_asynchronous = bool(wanted.get("runAsync") or wanted.get("async"))
        identifier = str(uuid.uuid4())
        folder = f"{_FOLDER}/{session.identifier}/{identifier}"
        command = Command(identifier, wanted["command"], folder, not wanted.get("suppressInputEcho"))
        prepare = 'mkdir -p "$1" && cat >"$1/command" && : >"$1/log"' + (' && : >"$1/open"' if is_asynchronous else "")
        await self._engine.run(session.sandbox, "bash", "-c", prepare, "x", folder, stdin=wanted["command"].encode())
        session.commands[identifier] = command
        await session.shell.write(f"__run {folder}\n".encode())
        if is_asynchronous:
            return web.json_response({"cmdId": identifier}, status=202)
        log = await self._followed(session, command)
        await self._look_for_end(session, command)
        return web.json_response({"cmdId": identifier, "exitCode": command.exit_code, **_split(log)})

    async def _command(self, request: web.Request) -> web.Response:
        session, command = self._session_and_command(request)
        await self._look_for_end(session, command)
        return web.json_response(command.described())

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        session, command = self._session_and_command(request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            _, log, _ = await self._engine.run(session.sandbox, "cat", f"{command.folder}/log")
            return web.json_response(_split(log))
        client = web.WebSocketResponse()
        await client.prepare(request)
        following = asyncio.create_task(self._follow(session, command, client))
        async for _ in client:
            pass
        following.cancel()
        return client

    async def _input(self, request: web.Request) -> web.Response:
        session, command = self._session_and_command(request)
        await self._look_for_end(session, command)
        if command.exit_code is not None:
            raise _refusal(web.HTTPGone, f"command has already completed with exit code {command.exit_code}")
        data = (await request.json())["data"].encode()
        data += b"" if data.endswith(b"\n") else b"\n"
        feed = 'cat >"$1/in"'
        await self._engine.run(session.sandbox, "bash", "-c", feed, "x", command.folder, stdin=data)
        if command.is_echoing:
            echo = 'cat >>"$1/log"'
            echoed = _PREFIXES["stdout"] + data
            await self._engine.run(session.sandbox, "bash", "-c", echo, "x", command.folder, stdin=echoed)
        return web.Response(status=204)

    async def _follow(self, session: Session, command: Command, client: web.WebSocketResponse) -> None:
        process = await self._engine.execute(session.sandbox, ["python3", "-c", _FOLLOW, command.folder])
        async for chunk in process.stdout.read_from(0):
            await client.send_bytes(chunk)
        await client.close(code=WSCloseCode.OK)

    async def _followed(self, session: Session, command: Command) -> bytes:
        return (await self._engine.run(session.sandbox, "python3", "-c", _FOLLOW, command.folder))[1]

    async def _look_for_end(self, session: Session, command: Command) -> None:
        if command.exit_code is None:
            code, out, _ = await self._engine.run(session.sandbox, "cat", f"{command.folder}/exit")
            command.exit_code = int(out) if code == 0 else None

    def _session(self, request: web.Request) -> Session:
        session = self._sessions.get((request.match_info["id"], request.match_info["session"]))
        if session is None:
            raise _refusal(web.HTTPNotFound, "session not found")
        return session

    def _session_and_command(self, request: web.Request) -> tuple[Session, Command]:
        session = self._session(request)
        command = session.commands.get(request.match_info["command"])
        if command is None:
            raise _refusal(web.HTTPNotFound, "command not found")
        return session, command


def _refusal(kind: type[web.HTTPError], message: str) -> web.HTTPError:
    return kind(text=json.dumps({"message": message}), content_type="application/json")


def _split(log: bytes) -> dict[str, str]:
    """What is of which stream: a prefix holds until the next one."""
    parts = {"stdout": b"", "stderr": b""}
    kind = "stdout"
    position = 0
    while position < len(log):
        for name, prefix in _PREFIXES.items():
            if log.startswith(prefix, position):
                kind, position = name, position + len(prefix)
                break
        ends = [found for prefix in _PREFIXES.values() if (found := log.find(prefix, position)) >= 0]
        end = min(ends, default=len(log))
        parts[kind] += log[position:end]
        position = end
    output = log
    for prefix in _PREFIXES.values():
        output = output.replace(prefix, b"")
    return {"output": output.decode(errors="replace"), **{k: v.decode(errors="replace") for k, v in parts.items()}}
