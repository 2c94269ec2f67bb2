"""A double of Modal at its wire: the real `modal` SDK talks to it, and each sandbox is a real container.

`python -m tests.services.modal_double ENGINE NAME PORT` serves both of Modal's services on one port: the control plane and
the command router of every sandbox. What is not needed to create, find, use and end sandboxes is answered "unimplemented".
"""

# ruff: noqa: N802  the methods have Modal's names

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from grpclib.server import Server, Stream
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as router
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from . import image
from .containers import Engine, NoSuchContainer, Process

_TAG = "modal.tag."
_APP = "modal.app"
_NAME = "modal.name"
_MAX_POLL_SECONDS = 50.0
_IDLE_LOOK_SECONDS = 0.1
_FILE_TOOL = "/__modal/.bin/modal-sandbox-fs-tools"
# Modal puts a program of its own into every sandbox for `Sandbox.filesystem`; this one knows the half of it.
_FILE_TOOL_DOUBLE = """
import json, os, shutil, sys
(action, options), = json.loads(sys.argv[1]).items()
path = options["path"]
kinds = {FileNotFoundError: "NotFound", IsADirectoryError: "IsDirectory", NotADirectoryError: "NotDirectory",
         PermissionError: "PermissionDenied", FileExistsError: "AlreadyExists"}
try:
    if action == "ReadFile":
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    elif action == "WriteFile":
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    elif action == "MakeDirectory":
        os.makedirs(path, exist_ok=True) if options["parents"] else os.mkdir(path)
    elif action == "Remove":
        shutil.rmtree(path) if options["recursive"] and os.path.isdir(path) else os.remove(path)
    else:
        raise SystemExit(f"the double knows no {action}")
except OSError as error:
    print(json.dumps({"error_kind": kinds.get(type(error), "Other"), "message": str(error)}), file=sys.stderr)
    raise SystemExit(1)
"""


class Sandboxes:
    """The containers that are sandboxes, and the processes in them. A sandbox's id, task id and container name are one."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self.url = url
        self.processes: dict[str, Process] = {}
        self.sandbox_of: dict[str, str] = {}  # by exec
        self._ends: set[asyncio.Task[None]] = set()

    def access(self) -> api.CommandRouterAccess:
        return api.CommandRouterAccess(url=self.url, jwt=_token())

    def end_after(self, name: str, seconds: int) -> None:
        """A sandbox's time is limited from its start; the SDK asks for 300 s if the caller says nothing."""

        async def end() -> None:
            await asyncio.sleep(seconds)
            await self.engine.remove(name)

        self._do(end())

    def end_when_idle(self, name: str, seconds: int) -> None:
        """It is idle when no exec runs in it."""

        async def end() -> None:
            busy_at = time.monotonic()
            while time.monotonic() < busy_at + seconds:
                await asyncio.sleep(_IDLE_LOOK_SECONDS)
                if any(
                    self.processes[one].exit_code is None for one, inside in self.sandbox_of.items() if inside == name
                ):
                    busy_at = time.monotonic()
            await self.engine.remove(name)

        self._do(end())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    def process(self, exec_id: str) -> Process:
        try:
            return self.processes[exec_id]
        except KeyError:
            raise GRPCError(Status.NOT_FOUND, f"no exec {exec_id}") from None


def _unary(answer: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Stream[Any, Any]], Awaitable[None]]:
    async def serve(self: Any, stream: Stream[Any, Any]) -> None:
        try:
            await stream.send_message(await answer(self, await stream.recv_message()))
        except NoSuchContainer as error:
            raise GRPCError(Status.NOT_FOUND, str(error)) from None

    return serve


class ControlPlane(ModalClientBase):
    """Create, find and end sandboxes."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes
        self._engine = sandboxes.engine

    @_unary
    async def ClientHello(self, request: Empty) -> api.ClientHelloResponse:
        return api.ClientHelloResponse()

    @_unary
    async def AuthTokenGet(self, request: Any) -> api.AuthTokenGetResponse:
        return api.AuthTokenGetResponse(token=_token())

    @_unary
    async def AppGetOrCreate(self, request: Any) -> api.AppGetOrCreateResponse:
        return api.AppGetOrCreateResponse(app_id=f"ap-{request.app_name}")

    @_unary
    async def EnvironmentGetOrCreate(self, request: Any) -> api.EnvironmentGetOrCreateResponse:
        settings = api.EnvironmentSettings(image_builder_version="2025.06")
        return api.EnvironmentGetOrCreateResponse(
            environment_id="en-test", metadata=api.EnvironmentMetadata(name="main", settings=settings)
        )

    @_unary
    async def ImageGetOrCreate(self, request: Any) -> api.ImageGetOrCreateResponse:
        """Whatever is asked for, it is the one image that there is."""
        done = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_SUCCESS)
        return api.ImageGetOrCreateResponse(image_id="im-test", result=done)

    @_unary
    async def SandboxCreateV2(self, request: Any) -> api.SandboxCreateV2Response:
        definition = request.definition
        name = f"sb-{uuid.uuid4().hex}V"
        labels = {_APP: request.app_id, _NAME: definition.name, **_labels(request.tags)}
        await self._engine.create(
            name,
            image.NAME,
            labels=labels,
            env=_environment(request.secret_sources),
            options=_options(definition),
            command=definition.entrypoint_args,
        )
        if definition.timeout_secs:
            self._sandboxes.end_after(name, definition.timeout_secs)
        if definition.idle_timeout_secs:
            self._sandboxes.end_when_idle(name, definition.idle_timeout_secs)
        return api.SandboxCreateV2Response(
            sandbox_id=name, task_id=_task_of(name), command_router_access=self._sandboxes.access()
        )

    @_unary
    async def SandboxGetCommandRouterAccess(self, request: Any) -> Any:
        await self._engine.inspect(request.sandbox_id or _sandbox_of(request.task_id))
        access = self._sandboxes.access()
        return api.SandboxGetCommandRouterAccessResponse(url=access.url, jwt=access.jwt)

    @_unary
    async def SandboxGetTaskIdV2(self, request: Any) -> api.SandboxGetTaskIdResponse:
        await self._engine.inspect(request.sandbox_id)
        return api.SandboxGetTaskIdResponse(task_id=_task_of(request.sandbox_id))

    @_unary
    async def SandboxWaitV2(self, request: Any) -> api.SandboxWaitResponse:
        """A long poll: empty when the time is up and the sandbox still runs."""
        limit = min(request.timeout, _MAX_POLL_SECONDS)
        if request.timeout == 0:
            return api.SandboxWaitResponse(result=await self._result(request.sandbox_id))
        try:
            async with asyncio.timeout(limit):
                await self._engine.call("wait", request.sandbox_id)
        except TimeoutError:
            return api.SandboxWaitResponse()
        except NoSuchContainer:
            pass
        return api.SandboxWaitResponse(result=await self._result(request.sandbox_id))

    @_unary
    async def SandboxTerminateV2(self, request: Any) -> api.SandboxTerminateResponse:
        await self._engine.remove(request.sandbox_id)
        return api.SandboxTerminateResponse()

    @_unary
    async def SandboxListV2(self, request: Any) -> api.SandboxListResponse:
        """The living ones; one page has them all."""
        if request.before_timestamp:
            return api.SandboxListResponse()
        labels = {**({_APP: request.app_id} if request.app_id else {}), **_labels(request.tags)}
        found = await self._engine.find(labels)
        return api.SandboxListResponse(
            sandboxes=[
                api.SandboxInfo(id=one["Name"].lstrip("/"), created_at=time.time(), tags=_tags(one)) for one in found
            ]
        )

    @_unary
    async def SandboxGetFromNameV2(self, request: Any) -> api.SandboxGetFromNameResponse:
        found = await self._engine.find({_APP: f"ap-{request.app_name}", _NAME: request.sandbox_name})
        if not found:
            raise GRPCError(Status.NOT_FOUND, f"no sandbox {request.sandbox_name}")
        return api.SandboxGetFromNameResponse(sandbox_id=found[0]["Name"].lstrip("/"))

    @_unary
    async def SandboxGetFromName(self, request: Any) -> api.SandboxGetFromNameResponse:
        """The SDK asks for one of the older kind last; there are none."""
        raise GRPCError(Status.NOT_FOUND, f"no sandbox {request.sandbox_name}")

    @_unary
    async def SandboxTagsGetV2(self, request: Any) -> api.SandboxTagsGetResponse:
        return api.SandboxTagsGetResponse(tags=_tags(await self._engine.inspect(request.sandbox_id)))

    async def _result(self, name: str) -> api.GenericResult:
        result = api.GenericResult
        try:
            state = (await self._engine.inspect(name))["State"]
        except NoSuchContainer:
            return result(status=result.GENERIC_STATUS_TERMINATED)
        if state["Running"]:
            return result()
        status = result.GENERIC_STATUS_FAILURE if state["ExitCode"] else result.GENERIC_STATUS_SUCCESS
        return result(status=status, exitcode=state["ExitCode"])


class CommandRouter(TaskCommandRouterBase):
    """Processes in sandboxes."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes
        self._engine = sandboxes.engine

    @_unary
    async def TaskExecStart(self, request: Any) -> router.TaskExecStartResponse:
        if request.exec_id in self._sandboxes.processes:
            return router.TaskExecStartResponse()
        name = _sandbox_of(request.task_id)
        arguments = list(request.command_args)
        if arguments[0] == _FILE_TOOL:
            arguments[:1] = ["python3", "-c", _FILE_TOOL_DOUBLE]
        if request.timeout_secs:
            arguments[:0] = ["timeout", "--signal", "KILL", str(request.timeout_secs)]
        env = _environment(request.secret_sources)
        process = await self._engine.execute(name, arguments, env=env, workdir=request.workdir)
        if request.stdout_config == router.TASK_EXEC_STDOUT_CONFIG_DEVNULL:
            process.discard(process.stdout)
        if request.stderr_config == router.TASK_EXEC_STDERR_CONFIG_DEVNULL:
            process.discard(process.stderr)
        self._sandboxes.processes[request.exec_id] = process
        self._sandboxes.sandbox_of[request.exec_id] = name
        return router.TaskExecStartResponse()

    async def TaskExecStdioRead(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        process = self._sandboxes.process(request.exec_id)
        is_stdout = request.file_descriptor == router.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT
        async for chunk in (process.stdout if is_stdout else process.stderr).read_from(request.offset):
            await stream.send_message(router.TaskExecStdioReadResponse(data=chunk))

    @_unary
    async def TaskExecStdinWrite(self, request: Any) -> router.TaskExecStdinWriteResponse:
        process = self._sandboxes.process(request.exec_id)
        await _write(process, request.data, offset=request.offset, eof=request.eof)
        return router.TaskExecStdinWriteResponse()

    async def TaskExecStdinWriteStream(self, stream: Stream[Any, Any]) -> None:
        process: Process | None = None
        offset = 0
        async for request in stream:
            kind = request.WhichOneof("payload")
            if kind == "start":
                process = self._sandboxes.process(request.start.exec_id)
                offset = request.start.offset
            elif process is not None and kind == "data":
                await _write(process, request.data, offset=offset)
                offset += len(request.data)
            elif process is not None:
                await _write(process, b"", eof=True)
        await stream.send_message(router.TaskExecStdinWriteStreamResponse())

    @_unary
    async def TaskExecStdinStatus(self, request: Any) -> router.TaskExecStdinStatusResponse:
        process = self._sandboxes.process(request.exec_id)
        return router.TaskExecStdinStatusResponse(num_bytes_written=process.bytes_written, closed=process.is_closed)

    @_unary
    async def TaskExecPoll(self, request: Any) -> router.TaskExecPollResponse:
        code = self._sandboxes.process(request.exec_id).exit_code
        return router.TaskExecPollResponse() if code is None else router.TaskExecPollResponse(code=code)

    @_unary
    async def TaskExecWait(self, request: Any) -> router.TaskExecWaitResponse:
        return router.TaskExecWaitResponse(code=await self._sandboxes.process(request.exec_id).wait())


async def _write(process: Process, data: bytes, **how: Any) -> None:
    try:
        await process.write(data, **how)
    except (ConnectionError, RuntimeError):
        raise GRPCError(Status.FAILED_PRECONDITION, "the process does not read any more") from None


def _token() -> str:
    """Of the shape that the SDK looks into: it wants to know how long it is good."""
    parts = ({"alg": "none"}, {"exp": int(time.time()) + 3600, "iat": int(time.time())})
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "x"]
    )


def _task_of(sandbox: str) -> str:
    return sandbox.replace("sb-", "ta-", 1)


def _sandbox_of(task: str) -> str:
    return task.replace("ta-", "sb-", 1)


def _environment(sources: Iterable[Any]) -> dict[str, str]:
    return {key: value for source in sources for key, value in source.env.contents.items()}


def _options(definition: Any) -> list[str]:
    options = ["--workdir", definition.workdir] if definition.workdir else []
    if definition.resources.memory_mb_max or definition.resources.memory_mb:
        options += ["--memory", f"{definition.resources.memory_mb_max or definition.resources.memory_mb}m"]
    return options


def _labels(tags: Iterable[Any]) -> dict[str, str]:
    return {_TAG + tag.tag_name: tag.tag_value for tag in tags}


def _tags(inspected: dict[str, Any]) -> list[api.SandboxTag]:
    labels = inspected["Config"]["Labels"].items()
    return [api.SandboxTag(tag_name=key[len(_TAG) :], tag_value=value) for key, value in labels if key.startswith(_TAG)]


def _unimplemented(name: str) -> Callable[[Any, Stream[Any, Any]], Awaitable[None]]:
    async def refuse(self: Any, stream: Stream[Any, Any]) -> None:
        raise GRPCError(Status.UNIMPLEMENTED, f"the double of Modal has no {name}")

    return refuse


def _complete(servicer: type) -> Any:
    """The class with an answer to every call of its protocol."""
    rest = {name: _unimplemented(name) for name in servicer.__abstractmethods__}  # type: ignore[attr-defined]
    return type(servicer.__name__, (servicer,), rest)


async def _serve(engine: Engine, port: int) -> None:
    sandboxes = Sandboxes(engine, f"http://127.0.0.1:{port}")
    server = Server([_complete(ControlPlane)(sandboxes), _complete(CommandRouter)(sandboxes)])
    await server.start("127.0.0.1", port)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve(Engine(sys.argv[1], sys.argv[2]), int(sys.argv[3])))
