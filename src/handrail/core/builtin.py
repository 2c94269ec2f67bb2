"""The built-in tools, found and declared once per process: each file of a tool family registers here, and every runtime copies
them. What is scanned is the syntax tree: exactly the modules that register a tool are imported.

`tool_schema`, with `text`, `integer`, `number`, `flag` and `texts` for its arguments, writes what a tool registers; `family`
what the tools of one toolset register alike.
"""

import ast
import importlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from ..base.lazy_module import module_at
from ..config.paths import remember, remembered
from ..types import JsonDict
from .registry import ToolEntry, ToolRegistry
from .registry import registry as default_registry

registry = ToolRegistry()


def tool_schema(description: str, required: Sequence[str] = (), /, **properties: JsonDict) -> JsonDict:
    """The schema of a tool: what the model is told of it, and its arguments, each in JSON Schema."""
    parameters: JsonDict = {"type": "object", "properties": properties}
    return {
        "description": description,
        "parameters": {**parameters, "required": [*required]} if required else parameters,
    }


def family(toolset: str, calls: str, **shared: Any) -> Callable[..., JsonDict]:
    """A function for `registry.register(**tool("its_name", ...))`: it takes a tool's name and then what `tool_schema` takes.
    The handler is the function of that name in the module `calls`; `shared` is what else each tool of the family registers."""

    def tool(name: str, description: str, required: Sequence[str] = (), /, **properties: JsonDict) -> JsonDict:
        schema = tool_schema(description, required, **properties)
        return {"name": name, "toolset": toolset, "schema": schema, "handler": f"{calls}:{name}", **shared}

    return tool


def _argument(kind: str, description: str, **limits: Any) -> JsonDict:
    return {"type": kind, **limits, "description": description}


text, integer, number = (partial(_argument, kind) for kind in ("string", "integer", "number"))


def flag(description: str) -> JsonDict:
    """A switch that is off unless the model turns it on."""
    return {"type": "boolean", "default": False, "description": description}


def texts(description: str, *, min_chars: int = 0, **limits: Any) -> JsonDict:
    """A list of texts."""
    items = {"type": "string", "minLength": min_chars} if min_chars else {"type": "string"}
    return {"type": "array", "items": items, **limits, "description": description}


log = logging.getLogger(__name__)

_NOT_TOOLS = {"__init__.py", "registry.py", "mcp_tool.py"}
_TOOLS = Path(__file__).parent.parent / "tools"
_CACHE = "discovery.json"
# What could be a registration. It may still stand in a function or a string: only the syntax tree decides.
_CANDIDATE = re.compile(rb"\bregistry\s*\.\s*(?:register|tool)\b")


class Discovered(NamedTuple):
    """What one scan found: the modules that were imported, and those that could not be, with the reason."""

    imported: list[str]
    failed: dict[str, str]


def discover_builtin_tools(tools_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Import every module of the folder that registers a tool at its top level. Returns their names. Without a folder: the
    built-in tools, which are in the default registry then."""
    found = scan_builtin() if tools_dir is None else discover(tools_dir)
    if tools_dir is None:
        default_registry.adopt(registry.entries())
    return list(found.imported)


def discover(tools_dir: str | os.PathLike[str] | None = None) -> Discovered:
    """`discover_builtin_tools`, with the failures: one module that cannot be imported does not hurt the others."""
    # Ours are in one folder per family.
    files = _TOOLS.glob("*/*.py") if tools_dir is None else Path(tools_dir).resolve().glob("*.py")
    found = Discovered([], {})
    for file in _self_registering(sorted(files)):
        name = _module_name(file)
        table = registry if tools_dir is None else default_registry
        before = {entry.name: entry for entry in table.entries()}
        try:
            if file.parent.parent == _TOOLS or name in sys.modules:
                importlib.import_module(name)
            else:
                module_at(name, file)
            found.imported.append(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a module may fail in any way, and others must load
            # Each family may have a file of the same name.
            shown = file.name if tools_dir is not None else f"{file.parent.name}/{file.name}"
            found.failed[shown] = f"{type(error).__name__}: {error}"
            log.warning("tool module %s could not be imported: %s", shown, found.failed[shown])
            table.restore(before)
    return found


_builtin: Discovered | None = None
_scanning = threading.Lock()


def builtin_tools() -> list[ToolEntry]:
    """The tools of our own folder. It is scanned once per process."""
    scan_builtin()
    return registry.entries()


def scan_builtin() -> Discovered:
    """Import the built-in tools, if that has not been done yet."""
    global _builtin  #  importing a module twice does nothing, so neither should scanning for it
    with _scanning:
        if _builtin is None:
            _builtin = discover()
    return _builtin


def _self_registering(files: list[Path]) -> list[Path]:
    """What a file's verdict was is remembered by its size and time: parsing thirty modules takes longer than importing Python
    itself."""
    known = remembered(_CACHE)
    found: dict[str, list[object]] = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        if S_ISREG(stat.st_mode) and file.name not in _NOT_TOOLS:
            stamp, before = [stat.st_size, stat.st_mtime_ns], known.get(str(file))
            if not isinstance(before, list) or before[:2] != stamp:
                before = [*stamp, registers_a_tool(file.read_bytes())]
            found[str(file)] = before
    if any(known.get(path) != verdict for path, verdict in found.items()):
        remember(_CACHE, {path: verdict for path, verdict in {**known, **found}.items() if os.path.exists(path)})
    return [Path(path) for path, verdict in found.items() if verdict[2:] == [True]]


def registers_a_tool(source: bytes) -> bool:
    """Whether the module's body itself has a `registry.register(...)` call or an `@registry.tool` function."""
    if _CANDIDATE.search(source) is None:
        return False
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return True  # let the import say what is wrong, and the doctor show it
    return any(_is_registration(statement) for statement in body)


def _is_registration(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
        return _is_registry_attribute(statement.value.func, "register")
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        calls = (d.func if isinstance(d, ast.Call) else d for d in statement.decorator_list)
        return any(_is_registry_attribute(call, "tool") for call in calls)
    return False


def _is_registry_attribute(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", None) == "registry"


def _module_name(file: Path) -> str:
    if file.parent.parent == _TOOLS:
        return f"handrail.tools.{file.parent.name}.{file.stem}"
    import hashlib

    folder = hashlib.sha256(str(file.parent).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"handrail_tools_{folder}_{file.stem}"
