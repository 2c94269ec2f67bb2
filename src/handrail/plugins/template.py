"""Write a new plugin to start from: it works, and its test passes."""

from __future__ import annotations

from pathlib import Path

from ..errors import RegistrationError

_MANIFEST = """\
name: {name}
version: "0.1"
description: Says hello, and keeps secrets unread.
# Without these environment variables the plugin is not loaded:
requires_env: []
"""

_PLUGIN = '''\
"""Says hello, and keeps secrets unread."""

from handrail.plugins import Block, hookimpl


def register(api):
    """Called once, when the plugin is loaded."""

    @api.tool(toolset="{name}", read_only=True)
    def {name}_hello(who: str = "world") -> str:
        """Say hello to someone."""
        return f"Hello, {{who}}!"


@hookimpl(policy=True)
def pre_tool_call(tool_name, args):
    """Before every call: return None to let it pass, or Block, Ask or Change."""
    if str(args.get("path", "")).endswith(".env"):
        return Block("secrets stay unread")
    return None
'''

_TEST = '''\
"""Run with: pytest {file}"""

import json
from pathlib import Path

from handrail import Runtime, ToolRegistry
from handrail.plugins import Found, HookManager, Plugins, Source, State


def runtime():
    registry, hooks = ToolRegistry(), HookManager()
    plugins = Plugins(registry, hooks, {{}})
    (plugin,) = plugins.load([Found("{name}", Source.USER, str(Path(__file__).parent))])
    assert plugin.state is State.LOADED, plugin.reason
    registry.register(
        name="read_file",
        toolset="file",
        schema={{"description": "", "parameters": {{"type": "object", "properties": {{"path": {{"type": "string"}}}}}}}},
        handler=lambda args, **context: "content",
    )
    return Runtime(registry, hooks=hooks)


def test_it_says_hello():
    assert runtime().handle("{name}_hello", {{"who": "you"}}) == "Hello, you!"


def test_secrets_stay_unread():
    assert json.loads(runtime().handle("read_file", {{"path": "x/.env"}}))["error_type"] == "denied"
    assert runtime().handle("read_file", {{"path": "x/README"}}) == "content"
'''


def write_template(name: str, folder: Path) -> list[Path]:
    """The files that were written. Raises RegistrationError for a name that is invalid or taken."""
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise RegistrationError(f"plugin {name!r}: use letters, digits and _, with a letter first")
    root = folder / name
    if root.exists():
        raise RegistrationError(f"{root} is there already; choose another name, or remove it")
    file = f"test_{name}.py"
    content = {
        "plugin.yaml": _MANIFEST.format(name=name),
        "__init__.py": _PLUGIN.format(name=name),
        file: _TEST.format(name=name, file=file),
    }
    root.mkdir(parents=True)
    for inner, text in content.items():
        (root / inner).write_text(text, encoding="utf-8")
    return [root / inner for inner in content]
