"""The names of the original are where its public documentation has them, and answer in its shapes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import handrail.model_tools
from handrail.errors import CallTimeout

NAMES = {
    "handrail.tools.registry": "registry ToolRegistry ToolEntry tool_error tool_result discover_builtin_tools",
    "handrail.tools.approval": "DANGEROUS_PATTERNS detect_dangerous_command",
    "handrail.tools.environments": "TaskEnvironments",
    "handrail.tools.terminal_tool": "register_task_env_overrides clear_task_env_overrides",
    "handrail.tools.mcp_tool": "discover_mcp_tools",
    "handrail.model_tools": "get_tool_definitions handle_function_call _run_async",
    "handrail.toolsets": "resolve_toolset",
    "handrail.plugins": "discover_plugins invoke_hook",
}
PRESETS = (
    "acp api-server cli cron telegram discord whatsapp slack signal bluebubbles homeassistant email mattermost matrix dingtalk "
    "feishu weixin qqbot wecom wecom-callback yuanbao sms webhook gateway"
).split()


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NAMES.items() for name in names.split()]
)
def test_a_documented_name_is_where_it_is_documented(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None


@pytest.mark.parametrize("module", [module for module in NAMES if module.startswith("handrail.tools.")])
def test_the_module_that_keeps_a_name_is_thin(module: str) -> None:
    path = Path(import_module(module).__file__ or "")
    assert len(path.read_text().splitlines()) <= 15


def test_the_registry_answers_as_if_discovery_had_run_and_importing_does_nothing(tmp_path: Path) -> None:
    code = """
import sys
import handrail.model_tools
from handrail.tools.registry import registry
assert not any(name.startswith("handrail.tools.files") for name in sys.modules)
assert "read_file" in registry.get_all_tool_names()
assert registry.get_definitions(["read_file"], quiet=True)[0]["function"]["name"] == "read_file"
print(registry.dispatch("read_file", {"path": sys.argv[1]}))
"""
    (tmp_path / "a.txt").write_text("hello")
    env = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", code, str(tmp_path / "a.txt")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["content"] == "hello"


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_of_the_original_is_known(preset: str) -> None:
    tools = handrail.model_tools.default().toolsets.resolve(f"hermes-{preset}")
    assert tools == handrail.resolve_toolset(f"handrail-{preset}")
    assert "web_search" in tools


def test_a_coroutine_run_inside_a_loop_is_given_up_after_the_originals_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handrail.model_tools, "ASYNC_SECONDS", 0.05)

    async def inside() -> None:
        with pytest.raises(CallTimeout):
            handrail.model_tools._run_async(asyncio.sleep(60))

    asyncio.run(inside())
    assert handrail.model_tools._run_async(asyncio.sleep(0.1, "done")) == "done"
