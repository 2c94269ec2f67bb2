"""The names of the original are where its public documentation has them, and answer in its shapes."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import typing
from importlib import import_module
from pathlib import Path

import pytest

import handrail
import handrail.model_tools
from handrail import toolsets
from handrail.errors import CallTimeout

NAMES = {
    "handrail.tools.registry": "registry ToolRegistry ToolEntry tool_error tool_result discover_builtin_tools",
    "handrail.tools.approval": "DANGEROUS_PATTERNS detect_dangerous_command",
    "handrail.tools.environments": "TaskEnvironments",
    "handrail.tools.terminal_tool": "register_task_env_overrides clear_task_env_overrides",
    "handrail.tools.mcp_tool": "discover_mcp_tools",
    "handrail.model_tools": (
        "get_tool_definitions handle_function_call _run_async get_all_tool_names get_toolset_for_tool get_available_toolsets "
        "check_toolset_requirements check_tool_availability"
    ),
    "handrail.toolsets": (
        "resolve_toolset resolve_multiple_toolsets validate_toolset get_toolset get_all_toolsets get_toolset_names "
        "get_toolset_info create_custom_toolset"
    ),
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


@pytest.mark.parametrize(
    ("preset", "tools"),
    [
        ("acp", "terminal patch vision_analyze skill_manage browser_navigate browser_cdp todo memory delegate_task"),
        ("api-server", "image_generate cronjob ha_call_service execute_code browser_dialog"),
        ("cli", "text_to_speech clarify session_search ha_get_state cronjob image_generate"),
        ("cron", "text_to_speech session_search delegate_task"),
        ("gateway", "text_to_speech clarify cronjob"),
    ],
)
def test_a_preset_has_the_tools_that_it_has_there(preset: str, tools: str) -> None:
    assert set(tools.split()) <= set(handrail.model_tools.default().toolsets.resolve(f"hermes-{preset}"))


def test_the_preset_for_untrusted_input_has_nothing_else() -> None:
    tools = handrail.model_tools.default().toolsets.resolve("hermes-webhook")
    assert sorted(tools) == ["clarify", "vision_analyze", "web_extract", "web_search"]


def test_a_coroutine_run_inside_a_loop_is_given_up_after_the_originals_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handrail.model_tools, "ASYNC_SECONDS", 0.05)

    async def inside() -> None:
        with pytest.raises(CallTimeout):
            handrail.model_tools._run_async(asyncio.sleep(60))

    asyncio.run(inside())
    assert handrail.model_tools._run_async(asyncio.sleep(0.1, "done")) == "done"


@pytest.mark.parametrize("when", ["before", "between", "after"])
@pytest.mark.parametrize("override", [False, True])
def test_a_tool_with_a_built_in_name_has_one_outcome_whatever_the_import_order(
    when: str, override: bool, tmp_path: Path
) -> None:
    code = f"""
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
from handrail import registry

def register():
    schema = {{"description": "Mine.", "parameters": {{"type": "object", "properties": {{}}}}}}
    registry.register("read_file", "mine", schema, lambda args, **_: "mine", override={override})

if {when!r} == "before": register()
import handrail.model_tools
if {when!r} == "between": register()
handrail.model_tools.default()
if {when!r} == "after": register()
print(registry.get_toolset_for_tool("read_file"))
"""
    env = {**os.environ, "HANDRAIL_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mine" if override else "file"]
    said = "overridden on request" if override else "that of 'file' stays (override=True replaces it)"
    assert said in done.stderr


def test_a_bare_decorator_registers_a_typed_function() -> None:
    own = handrail.ToolRegistry()

    @own.tool
    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    assert shout("a") == "A"
    assert own.get_toolset_for_tool("shout") == "custom"
    assert own.dispatch("shout", {"text": "a"}) == "A"


def test_the_options_of_the_decorator_are_those_of_register() -> None:
    """An editor shows what the overloads name."""
    shown = set(inspect.signature(typing.get_overloads(handrail.ToolRegistry.tool)[1]).parameters) - {"self"}
    taken = set(inspect.signature(handrail.ToolRegistry.register).parameters) - {"self"}
    from_the_function = {"schema", "handler", "is_async"}
    of_built_in_tools = {"owner", "toolset_description", "example"}
    assert shown == taken - from_the_function - of_built_in_tools


def test_the_shapes_of_the_originals_answers() -> None:
    toolsets = handrail.registry.get_available_toolsets()
    assert toolsets["file"].keys() == {"available", "tools", "description", "requirements"}
    available, others = handrail.registry.check_tool_availability(quiet=True)
    assert "file" in available
    assert all(each.keys() == {"name", "env_vars", "tools"} for each in others)


def test_toolsets_answer_in_the_originals_shapes() -> None:
    info = toolsets.get_toolset_info("hermes-acp")
    assert info is not None
    assert info.keys() == {
        "name", "description", "direct_tools", "includes", "resolved_tools", "tool_count", "is_composite"
    }  # fmt: skip
    assert info["is_composite"]
    assert info["direct_tools"] == []
    assert info["tool_count"] == len(info["resolved_tools"]) == len(toolsets.resolve_toolset("handrail-acp"))
    file = toolsets.get_toolset("file")
    assert file is not None
    assert file["tools"] == toolsets.resolve_toolset("file")
    assert toolsets.get_all_toolsets().keys() == set(toolsets.get_toolset_names())
    assert toolsets.get_toolset("nonsense") is toolsets.get_toolset_info("nonsense") is None
    assert [toolsets.validate_toolset(name) for name in ("all", "hermes-cli", "file_tools", "nonsense")] == [
        True, True, True, False
    ]  # fmt: skip
    both = toolsets.resolve_multiple_toolsets(["file", "web"])
    assert both == sorted({*toolsets.resolve_toolset("file"), *toolsets.resolve_toolset("web")})


def test_a_program_adds_a_toolset_of_its_own() -> None:
    try:
        toolsets.create_custom_toolset("gossip", "talk", tools=["clarify"], includes=["todo"])
        assert toolsets.resolve_toolset("gossip") == ["clarify", "todo"]
        defined = handrail.model_tools.get_tool_definitions(["gossip"], quiet_mode=True)
        assert sorted(tool["function"]["name"] for tool in defined) == ["clarify", "todo"]
    finally:
        handrail.model_tools.reset()
    assert not toolsets.validate_toolset("gossip")
