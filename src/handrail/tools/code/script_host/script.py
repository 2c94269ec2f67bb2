"""Run the script in this process, with its tools as functions of the module `handrail_tools`. It is sent to where the script
runs as text, and needs Python 3.8 and nothing else."""

from __future__ import annotations

import _socket as socket  # see supervisor.py; what else takes long to load is imported where it is needed
import os
import struct
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Packet = dict[str, Any]

LENGTH = struct.Struct(">I")
INT = struct.Struct("i")
_FILE = "<execute_code>"
_OURS = "handrail_inside/"


def become_script(hello: Packet, control: socket.socket, output: int) -> None:
    """Run it in this process, which ends as a script's process ends."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    # By lines, also where PYTHONUNBUFFERED says otherwise: half a line is no news.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(  # type: ignore[union-attr]
            encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=False
        )
    sys.modules["handrail_tools"] = tools_module(hello["tools"], Caller(control, hello["max_call_bytes"]))
    script = sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = [_FILE]
    try:
        exec(compile(hello["code"], _FILE, "exec"), script.__dict__)  # noqa: S102  what it is for
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  whatever the script raised is shown as Python shows it
        _show(error, hello["code"])
        sys.exit(1)


def _show(error: BaseException, text: str) -> None:
    import linecache
    import traceback

    linecache.cache[_FILE] = (len(text), None, text.splitlines(keepends=True), _FILE)
    shown = traceback.TracebackException(type(error), error, error.__traceback__)
    frames = [frame for frame in shown.stack if not frame.filename.startswith(_OURS)]
    while frames and frames[0].filename != _FILE:
        del frames[0]
    shown.stack[:] = frames
    sys.stderr.write("".join(shown.format()))


class Caller:
    """Sends calls and waits for their answers, each thread of each process on a line of its own."""

    def __init__(self, control: socket.socket, most_bytes: int) -> None:
        self._control, self._most = control, most_bytes
        self._own: Any = None

    def __call__(self, tool: str, arguments: Packet) -> str:
        import json

        try:
            call = json.dumps({"tool": tool, "arguments": arguments}).encode()
        except (TypeError, ValueError) as error:
            raise TypeError(f"{tool}: arguments must be JSON values: {error}") from None
        if len(call) > self._most:
            raise ValueError(f"{tool}: the arguments have {len(call):,} bytes, and {self._most:,} is the most")
        line = self._line()
        line.sendall(LENGTH.pack(len(call)) + call)
        (length,) = LENGTH.unpack(_receive(line, LENGTH.size))
        return _receive(line, length).decode("utf-8", "replace")

    def _line(self) -> socket.socket:
        if self._own is None:
            import threading

            self._own = threading.local()
        known = getattr(self._own, "line", None)
        if known is not None and known[0] == os.getpid():
            return known[1]  # type: ignore[no-any-return]
        mine, theirs = socket.socketpair()
        self._control.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, INT.pack(theirs.fileno()))])
        theirs.close()
        self._own.line = (os.getpid(), mine)
        return mine


def _receive(line: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        if not (piece := line.recv(min(size, 1 << 20))):
            raise ConnectionError("the runtime takes no more calls")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


class ToolError(Exception):
    """A call did not work. `error_type` says in one word why, `result` is all that the tool said."""

    __module__ = "handrail_tools"

    def __init__(self, message: str, error_type: str, result: Packet) -> None:
        super().__init__(message)
        self.error_type, self.result = error_type, result


def tools_module(tools: Packet, call: Callable[[str, Packet], str]) -> ModuleType:
    """`handrail_tools`: a function a tool. `tools` has the names of their arguments."""
    module = ModuleType("handrail_tools", "The tools that you were given, as functions.")
    names = {tool.replace("-", "_"): tool for tool in tools}
    for name, tool in names.items():
        setattr(module, name, _function(name, tool, tools[tool], call))
    module.ToolError = ToolError  # type: ignore[attr-defined]
    module.__all__ = [*names, "ToolError"]  # type: ignore[attr-defined]

    def missing(name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"{name} is not a tool that you were given; these are: {', '.join(sorted(names))}")

    module.__getattr__ = missing  # type: ignore[method-assign]
    return module


def _function(name: str, tool: str, parameters: list[str], call: Callable[[str, Packet], str]) -> Callable[..., Any]:
    def function(*positional: Any, **named: Any) -> Any:
        if len(positional) > len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} arguments: {', '.join(parameters)}")
        arguments = dict(zip(parameters, positional))  # noqa: B905  Python 3.8 has no `strict`
        for twice in arguments.keys() & named.keys():
            raise TypeError(f"{name} got {twice} twice")
        return _result(call(tool, {**arguments, **named}))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "handrail_tools"
    function.__doc__ = f"{name}({', '.join(parameters)})"
    return function


def _result(text: str) -> Any:
    """What a tool said, read where it is JSON. A command that failed has an exit code: that is a result too."""
    if not text.startswith(("{", "[")):
        return text
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and "error" in value and "exit_code" not in value:
        raise ToolError(str(value["error"]), str(value.get("error_type", "tool_failed")), value)
    return value
