"""The front door, as a developer of agents uses it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import model_tools
from handrail.core.registry import ToolRegistry
from handrail.errors import ConfigError, UnknownToolset
from handrail.model_tools import (
    ahandle_function_call,
    arun_tool_calls,
    get_tool_definitions,
    handle_function_call,
    run_tool_calls,
)
from handrail.plugins.hook_specs import Block
from tests.support import (
    PATIENCE_SECONDS,
    add,
    call,
    configure,
    error_in,
    in_threads,
    parameters,
    takes_less_than,
    trust_plugins,
)


def listed(**choice: Any) -> list[str]:
    return [definition["function"]["name"] for definition in get_tool_definitions(**choice)]


class TestPackage:
    def test_every_public_name_is_there(self) -> None:
        for name in handrail.__all__:
            assert getattr(handrail, name) is not None

    def test_a_name_that_is_not_there_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="nothing_like_this"):
            handrail.nothing_like_this  # noqa: B018  asking for it is the test


class TestDefinitions:
    def test_the_built_in_tools_are_listed_without_a_word_of_set_up(self) -> None:
        assert {"read_file", "write_file", "patch", "search_files", "read_result", "clarify", "todo"} <= set(listed())

    def test_the_schemas_of_agent_tools_are_listed_too(self) -> None:
        assert "todo" in listed(enabled_toolsets=["todo"])

    def test_enabled_and_disabled_sets(self) -> None:
        assert listed(enabled_toolsets=["results"]) == ["read_result"]
        assert "read_file" not in listed(disabled_toolsets=["file"])

    def test_an_unknown_set_is_left_out_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        assert listed(enabled_toolsets=["fiel", "results"]) == ["read_result"]
        assert "did you mean 'file'" in caplog.text
        with pytest.raises(UnknownToolset, match="did you mean 'file'"):
            handrail.resolve_toolset("fiel")

    def test_the_name_of_one_set_is_enough(self) -> None:
        assert listed(enabled_toolsets="results") == ["read_result"]

    def test_the_chosen_sets_are_printed_unless_it_is_quiet(self, capsys: pytest.CaptureFixture[str]) -> None:
        get_tool_definitions(["file"], ["web"], quiet_mode=True)
        assert capsys.readouterr().out == ""
        get_tool_definitions(["file"], ["web"])
        assert capsys.readouterr().out == "toolsets: file, without web\n"

    def test_the_configuration_decides_where_the_caller_does_not(self, home: Path) -> None:
        (home / "config.yaml").write_text(
            "tools:\n  enabled_toolsets: [file, results]\n  disabled_toolsets: [results]\n"
        )
        assert "read_file" in listed()
        assert "read_result" not in listed()
        assert listed(enabled_toolsets=["results"], disabled_toolsets=[]) == ["read_result"]

    def test_code_reaches_what_the_configuration_or_the_caller_gives(self, home: Path) -> None:
        (home / "config.yaml").write_text("tools:\n  enabled_toolsets: [code_execution, results]\n")
        script = {"code": "import handrail_tools; print(*handrail_tools.__all__)"}
        assert json.loads(str(handle_function_call("execute_code", script)))["output"] == "read_result ToolError\n"
        given = frozenset({"execute_code", "read_file"})
        told = handle_function_call("execute_code", script, enabled_tools=given)
        assert json.loads(str(told))["output"] == "read_file ToolError\n"

    @pytest.mark.parametrize("wanted", ["openai", "responses", "anthropic", "gemini", "mcp"])
    def test_every_format(self, wanted: Any) -> None:
        definitions = get_tool_definitions(["file"], format=wanted)
        assert definitions
        json.dumps(definitions)

    def test_callers_do_not_share_what_they_get(self) -> None:
        get_tool_definitions()[0]["function"].clear()
        assert all(definition["function"]["name"] for definition in get_tool_definitions())

    def test_collecting_garbage_is_left_as_it_was(self) -> None:
        assert gc.isenabled()
        get_tool_definitions()
        assert gc.isenabled()
        gc.disable()
        try:
            get_tool_definitions()
            assert not gc.isenabled()
        finally:
            gc.enable()
        in_threads(8, lambda _: [get_tool_definitions() for _ in range(20)])
        assert gc.isenabled()


class TestCalls:
    def test_a_call_from_sync_and_from_async_code(self, default_registry: ToolRegistry) -> None:
        add(default_registry, "probe", schema=parameters(x={"type": "integer"}))
        assert handle_function_call("probe", '{"x": "1"}') == '{"got": {"x": 1}}'
        assert asyncio.run(ahandle_function_call("probe", {"x": 1})) == '{"got": {"x": 1}}'

    def test_an_async_tool_awaited_from_async_code_needs_no_other_thread(self, default_registry: ToolRegistry) -> None:
        async def where(args: Any, **kw: Any) -> str:
            return str(threading.get_ident())

        add(default_registry, "where", where, is_async=True)
        assert asyncio.run(ahandle_function_call("where", {})) == str(threading.get_ident())

    def test_agent_tools_without_an_agent_say_so(self) -> None:
        assert error_in(handle_function_call("todo", {}))["error_type"] == "needs_agent"

    def test_hooks_of_the_default_manager_are_asked(self, default_registry: ToolRegistry, default_hooks: Any) -> None:
        add(default_registry, "probe")
        default_hooks("pre_tool_call", lambda tool_name: Block("not today") if tool_name == "probe" else None)
        assert error_in(handle_function_call("probe", {}))["error"] == "not today"

    def test_a_long_result_is_paged_by_the_tool_for_it(self, default_registry: ToolRegistry, home: Path) -> None:
        add(default_registry, "long", lambda args, **kw: "line\n" * 100_000)
        shown = json.loads(handle_function_call("long", {}))
        page = json.loads(handle_function_call("read_result", {"id": shown["id"], "offset": 99_999, "limit": 1}))
        assert page["content"] == "line"
        assert list(home.rglob("r_*.txt")), "kept in the home that was given"


class TestBatches:
    @pytest.fixture(autouse=True)
    def _tools(self, default_registry: ToolRegistry) -> None:
        barrier = threading.Barrier(3)

        def meet(args: Any, **kw: Any) -> str:
            barrier.wait(PATIENCE_SECONDS)
            return "met"

        add(default_registry, "meet", meet, read_only=True)

    def test_from_sync_code(self) -> None:
        messages = run_tool_calls({"tool_calls": [call("meet", f"c{n}") for n in range(3)]}, task_id="t")
        assert [(m["tool_call_id"], m["content"]) for m in messages] == [("c0", "met"), ("c1", "met"), ("c2", "met")]

    def test_from_async_code(self) -> None:
        assert [m["content"] for m in asyncio.run(arun_tool_calls([call("meet")] * 3))] == ["met"] * 3

    def test_from_sync_code_inside_a_running_loop(self) -> None:
        async def main() -> list[dict[str, Any]]:
            return run_tool_calls([call("meet")] * 3)

        assert [m["content"] for m in asyncio.run(main())] == ["met"] * 3

    def test_a_limit_for_the_whole(self, default_registry: ToolRegistry, held: threading.Event) -> None:
        add(default_registry, "hang", lambda args, **kw: held.wait(PATIENCE_SECONDS), read_only=True)
        with takes_less_than(30):
            (message,) = run_tool_calls([call("hang")], timeout=0.1)
        assert error_in(message["content"])["error_type"] == "timeout"

    def test_file_tools_work_in_one_message(self, tmp_path: Path) -> None:
        file = str(tmp_path / "notes.txt")
        messages = run_tool_calls([call("write_file", path=file, content="hello\n"), call("read_file", path=file)])
        assert "hello" in json.loads(messages[1]["content"])["content"]


class TestConfiguration:
    @pytest.mark.parametrize(
        "text", ["tools: [", "tools:\n  on_collision: perhaps\n", "unknown: 1\n", "\x00", "- a\n- list\n"]
    )
    def test_one_that_cannot_be_used_is_an_error_and_can_be_mended(self, home: Path, text: str) -> None:
        (home / "config.yaml").write_text(text)
        for use in (get_tool_definitions, lambda: handle_function_call("read_file", {}), lambda: run_tool_calls([])):
            with pytest.raises(ConfigError, match=r"config\.yaml"):
                use()
        (home / "config.yaml").write_text("tools:\n  on_collision: refuse\n")
        assert "read_file" in listed()

    def test_collisions_are_settled_as_it_says(self, home: Path, default_registry: ToolRegistry) -> None:
        configure(home, "tools:\n  on_collision: replace\n")
        model_tools.reset()
        get_tool_definitions()
        try:
            add(default_registry, "probe", lambda args, **kw: "first", toolset="one")
            add(default_registry, "probe", lambda args, **kw: "second", toolset="two")
            assert handle_function_call("probe", {}) == "second"
        finally:
            default_registry.on_collision = "refuse"

    def test_a_plugin_may_override_only_if_it_says_so(self, home: Path, default_registry: ToolRegistry) -> None:
        configure(home, "plugins:\n  trusted:\n    allow_override: true\n")
        model_tools.reset()
        get_tool_definitions()
        add(default_registry, "probe", lambda args, **kw: "ours", toolset="one")
        assert not add(default_registry, "probe", lambda a, **kw: "no", toolset="x", override=True, owner="stranger")
        assert handle_function_call("probe", {}) == "ours"
        assert add(default_registry, "probe", lambda a, **kw: "yes", toolset="x", override=True, owner="trusted")
        assert handle_function_call("probe", {}) == "yes"

    def test_threads_that_come_first_together_share_one_runtime(self) -> None:
        model_tools.reset()
        assert len({id(found) for found in in_threads(16, lambda _: model_tools.default())}) == 1


def test_closing_the_runtime_closes_the_gate_if_one_was_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unused = model_tools.Handrail()
    unused.close()
    assert "gate" not in vars(unused)
    here, closed = model_tools.Handrail(), []
    monkeypatch.setattr(here.gate, "close", lambda: closed.append(True))
    here.close()
    assert closed == [True]


def test_the_default_is_made_once_though_plugins_ask_the_registry_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "once.py").write_text("print('loaded')\ndef pre_tool_call(tool_name): print(tool_name)\n")
    trust_plugins(tmp_path)
    code = "from handrail.model_tools import handle_function_call as call; call('read_file', {'path': '/proc/version'})"
    env = {**os.environ, "HANDRAIL_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["loaded", "read_file"]


def test_a_registry_whose_configuration_is_wrong_says_so_each_time(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("calls: 7\n")
    code = """
import handrail.model_tools
from handrail import HandrailError, registry
for _ in range(2):
    try:
        registry.get_all_tool_names()
    except HandrailError as error:
        print(type(error).__name__)
"""
    env = {**os.environ, "HANDRAIL_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["ConfigError", "ConfigError"]
