"""A double of Daytona at its wire: the real `daytona` SDK talks to it, and each sandbox is a real container.

`python -m tests.services.daytona_double ENGINE NAME PORT` serves the API under `/api` and, under `/toolbox`, what runs in
every real sandbox: commands and files here, the rest in `daytona_sessions.py` and `daytona_pty.py`. What is not needed to
create, find, use and end sandboxes is not there (404).
"""

from __future__ import annotations

import datetime
import json
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from aiohttp import MultipartReader, web

from . import image
from .containers import Engine, NoSuchContainer
from .daytona_pty import Terminals
from .daytona_sessions import Sessions

_LABEL = "daytona.label."
_LIMITS = "daytona.limits"
_HOME = "/root"
_TIMED_OUT = 137
# One answer in JSON for a question about files. Errors have their name.
_FILE_TOOL = """
import grp, json, os, pwd, shutil, stat, sys, time
def info(path):
    found = os.lstat(path)
    changed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.st_mtime))
    return {"name": os.path.basename(path), "path": path, "size": found.st_size, "isDir": stat.S_ISDIR(found.st_mode),
            "mode": stat.filemode(found.st_mode), "permissions": oct(stat.S_IMODE(found.st_mode))[2:].zfill(4),
            "modTime": changed, "modifiedAt": changed, "owner": str(found.st_uid), "group": str(found.st_gid)}
actions = {
    "info": lambda path: info(path),
    "list": lambda path: [info(os.path.join(path, name)) for name in sorted(os.listdir(path))],
    "folder": lambda path, mode: os.makedirs(path, int(mode, 8), exist_ok=True),
    "delete": lambda path, recursive: shutil.rmtree(path) if recursive == "true" else os.remove(path),
    "move": lambda source, destination: shutil.move(source, destination) and None,
}
try:
    print(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
except OSError as error:
    sys.exit(str(error))
"""


class Api:
    """Create, find and end sandboxes. A sandbox's id is its container's name."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine, self._url = engine, url

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/sandbox", self._create),
            web.get("/api/sandbox", self._list),
            web.get("/api/sandbox/{id}", self._get),
            web.delete("/api/sandbox/{id}", self._delete),
            web.post("/api/sandbox/{id}/start", self._start),
            web.post("/api/sandbox/{id}/stop", self._stop),
            web.post("/api/sandbox/{id}/last-activity", self._note_activity),
            web.get("/api/sandbox/{id}/toolbox-proxy-url", self._toolbox_url),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        """Whatever image or snapshot is asked for, it is the one image that there is."""
        wanted = await request.json()
        identifier = str(uuid.uuid4())
        labels = {_LABEL + key: value for key, value in (wanted.get("labels") or {}).items()}
        labels[_LIMITS] = json.dumps({name: wanted.get(name) for name in ("autoStopInterval", "autoDeleteInterval")})
        if wanted.get("ttlMinutes"):
            end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=wanted["ttlMinutes"])
            labels[_LIMITS] = json.dumps({**json.loads(labels[_LIMITS]), "autoDestroyAt": end.isoformat()})
        env = wanted.get("env") or {}
        options = ["--workdir", _HOME, *(["--memory", f"{wanted['memory']}g"] if wanted.get("memory") else [])]
        await self._engine.create(identifier, image.NAME, labels=labels, env=env, options=options)
        return web.json_response(await self._described(identifier))

    async def _list(self, request: web.Request) -> web.Response:
        labels = json.loads(request.query.get("labels") or "{}")
        found = await self._engine.find({_LABEL + key: value for key, value in labels.items()}, stopped=True)
        return web.json_response({"items": [self._describe(one) for one in found], "nextCursor": None})

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(await self._described(request.match_info["id"]))

    async def _delete(self, request: web.Request) -> web.Response:
        description = await self._described(request.match_info["id"])
        await self._engine.remove(request.match_info["id"])
        return web.json_response({**description, "state": "destroyed"})

    async def _start(self, request: web.Request) -> web.Response:
        await self._engine.call("start", request.match_info["id"])
        return web.json_response(await self._described(request.match_info["id"]))

    async def _stop(self, request: web.Request) -> web.Response:
        await self._engine.call("stop", "--time", "1", request.match_info["id"])
        description = await self._described(request.match_info["id"])
        if description["autoDeleteInterval"] == 0:  # what Daytona calls ephemeral
            await self._engine.remove(request.match_info["id"])
        return web.json_response(description)

    async def _note_activity(self, request: web.Request) -> web.Response:
        await self._engine.inspect(request.match_info["id"])
        return web.Response(status=201)

    async def _toolbox_url(self, request: web.Request) -> web.Response:
        return web.json_response({"url": self._toolbox})

    @property
    def _toolbox(self) -> str:
        return f"{self._url}/toolbox"

    async def _described(self, identifier: str) -> dict[str, Any]:
        return self._describe(await self._engine.inspect(identifier))

    def _describe(self, inspected: dict[str, Any]) -> dict[str, Any]:
        identifier = inspected["Name"].lstrip("/")
        labels = inspected["Config"]["Labels"].items()
        return {
            "id": identifier,
            "name": identifier,
            "organizationId": "test",
            "user": "root",
            "env": {},
            "labels": {key[len(_LABEL) :]: value for key, value in labels if key.startswith(_LABEL)},
            "public": False,
            "networkBlockAll": True,
            "kvm": False,
            "target": "test",
            "cpu": 1,
            "gpu": 0,
            "memory": 1,
            "disk": 3,
            "state": "started" if inspected["State"]["Running"] else "stopped",
            "createdAt": inspected["Created"],
            "toolboxProxyUrl": self._toolbox,
            **json.loads(inspected["Config"]["Labels"][_LIMITS]),
        }


class Toolbox:
    """Commands and files in a sandbox."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/toolbox/{id}/process/execute", self._execute),
            web.get("/toolbox/{id}/user-home-dir", self._folder),
            web.get("/toolbox/{id}/work-dir", self._folder),
            web.get("/toolbox/{id}/files", self._ask_files("list", "path")),
            web.delete("/toolbox/{id}/files", self._ask_files("delete", "path", "recursive")),
            web.get("/toolbox/{id}/files/info", self._ask_files("info", "path")),
            web.post("/toolbox/{id}/files/folder", self._ask_files("folder", "path", "mode")),
            web.post("/toolbox/{id}/files/move", self._ask_files("move", "source", "destination")),
            web.post("/toolbox/{id}/files/bulk-upload", self._upload),
            web.post("/toolbox/{id}/files/bulk-download", self._download),
        ]

    async def _execute(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        limit = ["timeout", "--signal", "KILL", str(wanted["timeout"])] if wanted.get("timeout") else []
        command = [*limit, "bash", "-c", f"exec 2>&1\n{wanted['command']}"]
        process = await self._engine.execute(
            request.match_info["id"], command, env=wanted.get("envs"), workdir=wanted.get("cwd") or _HOME
        )
        await process.write(b"", eof=True)
        output = await process.stdout.all()
        code = await process.wait()
        if limit and code == _TIMED_OUT:
            raise web.HTTPRequestTimeout(text=json.dumps({"message": "command execution timeout"}))
        return web.json_response({"exitCode": code, "result": output.decode(errors="replace")})

    async def _folder(self, request: web.Request) -> web.Response:
        return web.json_response({"dir": _HOME})

    def _ask_files(self, action: str, *parameters: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def ask(request: web.Request) -> web.Response:
            values = [request.query.get(name, "") for name in parameters]
            tool = ["python3", "-c", _FILE_TOOL, action, *values]
            code, out, complaint = await self._engine.run(request.match_info["id"], *tool)
            if code != 0:
                raise web.HTTPNotFound(text=json.dumps({"message": complaint.decode().strip()}))
            answer = json.loads(out)
            return web.Response() if answer is None else web.json_response(answer)

        return ask

    async def _upload(self, request: web.Request) -> web.Response:
        """Fields in pairs: `files[0].path`, `files[0].file`."""
        paths: dict[str, str] = {}
        async for part in await request.multipart():
            assert not isinstance(part, MultipartReader)
            key, _, kind = (part.name or "").partition("].")
            if kind == "path":
                paths[key] = await part.text()
                continue
            script = 'mkdir -p "$(dirname "$1")" && exec cat >"$1"'
            upload = ["bash", "-c", script, "upload", paths[key]]
            code, _, complaint = await self._engine.run(
                request.match_info["id"], *upload, stdin=bytes(await part.read(decode=False))
            )
            if code != 0:
                return web.json_response({"errors": [complaint.decode().strip()]}, status=400)
        return web.Response()

    async def _download(self, request: web.Request) -> web.Response:
        """One part for each file: its content, or an error."""
        boundary = uuid.uuid4().hex
        body = bytearray()
        for path in (await request.json())["paths"]:
            code, content, complaint = await self._engine.run(request.match_info["id"], "cat", "--", path)
            kind, media = ("file", "application/octet-stream") if code == 0 else ("error", "application/json")
            if code != 0:
                content = json.dumps({"message": complaint.decode().strip(), "statusCode": 404}).encode()
            name = f"form-data; name=\"{kind}\"; filename*=UTF-8''{quote(path)}"
            head = f"--{boundary}\r\nContent-Disposition: {name}\r\nContent-Type: {media}\r\n\r\n"
            body += head.encode() + content + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        return web.Response(body=bytes(body), headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})


@web.middleware
async def _errors(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
    try:
        return await handler(request)
    except NoSuchContainer as error:
        return web.json_response({"message": str(error), "statusCode": 404}, status=404)


def main() -> None:
    engine, port = Engine(sys.argv[1], sys.argv[2]), int(sys.argv[3])
    application = web.Application(middlewares=[_errors], client_max_size=1 << 30)
    parts = (Api(engine, f"http://127.0.0.1:{port}"), Toolbox(engine), Sessions(engine), Terminals(engine))
    for part in parts:
        application.add_routes(part.routes())
    web.run_app(application, host="127.0.0.1", port=port, print=None, handle_signals=False)


if __name__ == "__main__":
    main()
