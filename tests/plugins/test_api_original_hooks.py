"""Plugins written for Hermes Agent, from its public documentation: each loads as it is."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from handrail import Config, Handrail
from handrail.agent import Agent, SessionStore
from handrail.config.paths import Source, find_plugins
from handrail.errors import ToolFailed
from handrail.plugins.loader import State
from handrail.runtime.dispatch import Runtime
from handrail.testing import ModelReply, OpenGate, ScriptedModel, call

from ..support import error_in
from .conftest import Bench

MANIFEST = """
name: weather-report
version: 1.0.0
description: Says what the weather is like
author: Somebody
kind: standalone
hooks: [post_tool_call]
provides_tools: [weather]
provides_hooks: [post_tool_call]
requires_env:
  - PLAIN_KEY
  - name: WEATHER_KEY
    description: The key of the weather service
    secret: true
"""
TOOL = """
from . import schemas

def weather(args, **kwargs):
    return '{"place": "%s"}' % args["place"]

def register(ctx):
    ctx.register_tool("weather", "weather", schemas.WEATHER, weather, emoji="W")
"""
SCHEMAS = """
WEATHER = {"name": "weather", "description": "Says what the weather is like.",
           "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}
"""


def test_a_folder_with_a_hyphen_and_every_documented_key_is_loaded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("weather-report", TOOL, plugin_yaml=MANIFEST, schemas_py=SCHEMAS)
    assert bench.load()["weather-report"].state is State.UNAVAILABLE
    assert "PLAIN_KEY, WEATHER_KEY" in bench.load()["weather-report"].reason
    monkeypatch.setenv("PLAIN_KEY", "x")
    monkeypatch.setenv("WEATHER_KEY", "y")
    plugin = bench.load()["weather-report"]
    assert (plugin.state, plugin.reason) == (State.LOADED, "")
    assert plugin.provides == {"tools": ["weather"]}
    assert bench.registry.get_toolset_for_tool("weather") == "weather"


def test_one_of_a_project_needs_trust_like_any_other(bench: Bench) -> None:
    bench.write("from-project", TOOL, project=True, plugin_yaml="name: from-project", schemas_py=SCHEMAS)
    assert bench.load()["from-project"].state is State.UNTRUSTED


def test_its_entry_points_are_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[hermes_agent.plugins]\ntheirs = theirs_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ("theirs", Source.PIP, "theirs_package") in list(find_plugins())


HOOKS = """
import json
seen = []

def note(name):
    def callback(**kwargs):
        seen.append((name, kwargs))
    return callback

def remember(session_id, assistant_response, platform, **kwargs):
    seen.append(("answer", assistant_response))

def finished(session_id, completed, interrupted, model, platform):
    seen.append(("finished", completed, interrupted))

def stopped(parent_session_id, child_summary, child_status, child_role, duration_ms, **kwargs):
    seen.append(("child", child_status, child_summary, child_role))

def context(session_id, user_message, conversation_history, is_first_turn, model, platform, **kwargs):
    return {"context": "the moon is full"}

def register(ctx):
    for name in ("pre_api_request", "post_api_request", "api_request_error", "on_session_finalize", "on_session_reset",
                 "on_session_start", "pre_tool_call", "post_tool_call"):
        ctx.register_hook(name, note(name))
    ctx.register_hook("post_llm_call", remember)
    ctx.register_hook("on_session_end", finished)
    ctx.register_hook("subagent_stop", stopped)
    ctx.register_hook("pre_llm_call", context)
    ctx.register_hook("transform_llm_output", lambda response_text, **kwargs: response_text.upper())
    ctx.register_hook("kanban_task_claimed", note("never"))
    ctx.register_platform("nowhere", object())
"""


def test_its_hooks_are_called_at_the_right_moment_with_their_arguments(bench: Bench, tmp_path: Path) -> None:
    bench.write("with-hooks", HOOKS, plugin_yaml="name: with-hooks")
    assert bench.load()["with-hooks"].state is State.LOADED
    import handrail_plugins.with_hooks as plugin  # type: ignore[import-not-found]

    model = ScriptedModel(
        [
            ModelReply("", [call("delegate_task", goal="count")]),
            ModelReply("three"),  # the child's
            ModelReply("done"),
        ]
    )
    with (
        Handrail(Config(), home=tmp_path / "own", hooks=bench.hooks) as app,
        contextlib.closing(SessionStore()) as store,
    ):
        agent = Agent(app, [model], store=store, cwd=str(tmp_path))
        ended = agent.run("go")
        other = Agent(app, [ScriptedModel([])], store=store, cwd=str(tmp_path))
        other.started_after(agent.session_id)
        failed = other.run("nothing answers")
        agent.close()
        other.close()
    assert ended.answer == "DONE"
    assert failed.answer == ""
    names = [each[0] for each in plugin.seen]
    main = [
        each[1] for each in plugin.seen if each[0] == "post_api_request" and each[1]["session_id"] == agent.session_id
    ]
    assert [each["api_call_count"] for each in main] == [1, 2]
    assert all(each["api_duration"] >= 0 and "output_tokens" in each["usage"] for each in main)
    assert names.index("pre_api_request") < names.index("post_api_request") < names.index("pre_tool_call") + len(names)
    assert ("child", "completed", "THREE", None) in plugin.seen
    assert ("answer", "DONE") in plugin.seen
    assert ("finished", True, False) in plugin.seen
    assert {
        "api_request_error",
        "on_session_finalize",
        "on_session_reset",
        "on_session_start",
        "post_tool_call",
    } <= set(names)
    assert "never" not in names
    assert any("the moon is full" in str(message) for message in model.sent[0].messages)


def test_a_hook_that_is_named_like_one_and_registered_runs_once(bench: Bench) -> None:
    source = "seen = []\ndef post_tool_call(tool_name, **kwargs):\n    seen.append(tool_name)\n"
    for name, call_ in (("theirs", "ctx.register_hook"), ("ours", "ctx.hook")):
        bench.write(
            name,
            f"{source}def register(ctx):\n    {call_}('post_tool_call', post_tool_call)\n",
            plugin_yaml=f"name: {name}",
        )
    bench.load()
    bench.hooks.invoke("post_tool_call", tool_name="x", args={}, result="", status="ok", error_type=None, duration_ms=1.0,
                       task_id=None, session_id=None, tool_call_id="")  # fmt: skip
    import handrail_plugins.ours as ours  # type: ignore[import-not-found]
    import handrail_plugins.theirs as theirs  # type: ignore[import-not-found]

    assert (ours.seen, theirs.seen) == (["x"], ["x"])


def test_its_slash_commands_answer(bench: Bench) -> None:
    source = """
async def later(args):
    return f"later {args}"
def broken(args):
    raise ValueError("no")
def register(ctx):
    ctx.register_command("/now", lambda args: f"now {args}", description="Says it", args_hint="<what>")
    ctx.register_command("later", later)
    ctx.register_command("broken", broken)
"""
    bench.write("with-commands", source, plugin_yaml="name: with-commands")
    bench.load()
    assert bench.plugins is not None
    found = bench.plugins.contributions.chat_commands
    assert (found["now"].about, found["now"].hint) == ("Says it", "<what>")
    assert found["now"].reply("x") == "now x"
    assert found["later"].reply("y") == "later y"
    with pytest.raises(ToolFailed, match="ValueError: no"):
        found["broken"].reply("")


def test_a_required_argument_that_is_not_declared_does_not_make_a_tool_uncallable(bench: Bench) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "ghost"]}
    schema = {"description": "Echoes.", "parameters": parameters}
    bench.registry.register("echoes", "t", schema, lambda args, **_: json.dumps(args))
    assert bench.registry.get_schema("echoes")["parameters"]["required"] == ["a"]
    open_ = {**parameters, "additionalProperties": True}
    bench.registry.register(
        "open", "t", {"description": "Echoes.", "parameters": open_}, lambda args, **_: json.dumps(args)
    )
    assert bench.registry.get_schema("open")["parameters"]["required"] == ["a", "ghost"]


GREETING = """
import json
def register(ctx):
    schema = {"name": "hello_world", "description": "Greets.", "parameters": {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
    def handle(params, **kwargs):
        return json.dumps({"success": True, "greeting": f"Hello, {params['name']}!"})
    ctx.register_tool(name="hello_world", toolset="hello_world", schema=schema, handler=handle)
    def on_tool_call(tool_name, params, result):
        seen.append((tool_name, params, result))
    ctx.register_hook("post_tool_call", on_tool_call)
seen = []
"""


def called(bench: Bench, tool: str, args: dict[str, Any]) -> Any:
    return Runtime(bench.registry, hooks=bench.hooks, gate=OpenGate()).handle(tool, args)


def test_the_first_example_of_its_documentation_works_unchanged(bench: Bench) -> None:
    manifest = 'name: hello-world\nversion: "1.0"\ndescription: A minimal example plugin\n'
    bench.write("hello-world", GREETING, plugin_yaml=manifest)
    assert bench.load()["hello-world"].state is State.LOADED
    assert json.loads(called(bench, "hello_world", {"name": "Zoë"}))["greeting"] == "Hello, Zoë!"
    import handrail_plugins.hello_world as plugin  # type: ignore[import-not-found]

    assert [(each[0], each[1]) for each in plugin.seen] == [("hello_world", {"name": "Zoë"})]
    assert "Hello, Zo" in plugin.seen[0][2]


def test_keys_of_newer_manifests_and_hooks_that_nobody_calls_keep_no_plugin_from_loading(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    source = """
def register(ctx):
    assert not ctx.has_capability("tools.override")
    assert not ctx.has_capability("llm.model_override")
    assert ctx.inject_message("hello", role="user") is False
    ctx.register_hook("on_stream_delta", lambda delta, kind, **kwargs: None)
    ctx.register_hook("pre_tool_cal", lambda **kwargs: None)
    ctx.register_cli_command("greet", "Greets", lambda parser: None, lambda args: None)
    ctx.register_skill("summary", "skills/summary")
    ctx.register_system_prompt_section("a.b", "Be kind.", position="after_memory", max_chars=400)
    ctx.register_approval_transport("my-ui", lambda request: None)
    ctx.register_approval_transport("other-ui", lambda request: None)
"""
    manifest = (
        "name: newer\ncapabilities: [tools.override]\nmin_version: 1\nrequires_env: [{name: HOME, secret: true}]\n"
    )
    bench.write("newer", source, plugin_yaml=manifest)
    assert bench.load()["newer"].state is State.LOADED
    assert "the hook pre_tool_cal is not known; did you mean 'pre_tool_call'" in caplog.text
    assert caplog.text.count("plugin newer: register_approval_transport does nothing here") == 1
    assert "register_skill('summary') is ignored" in caplog.text


def test_its_hook_names_only_the_arguments_that_it_changes(bench: Bench) -> None:
    source = """
def rewrite(tool_name, args, task_id, **kwargs):
    assert task_id == ""
    return {"action": "modify", "args": {"b": "new"}}
def also(**kwargs):
    return {"action": "modify", "args": {"c": "added"}}
def register(ctx):
    ctx.register_hook("pre_tool_call", rewrite)
    ctx.register_hook("pre_tool_call", also)
"""
    bench.write("rewriter", source, plugin_yaml="name: rewriter")
    bench.load()
    names = {name: {"type": "string"} for name in "abc"}
    schema = {"description": "Echoes.", "parameters": {"type": "object", "properties": names, "required": ["a"]}}
    bench.registry.register("echoes", "t", schema, lambda args, **_: json.dumps(args))
    assert json.loads(called(bench, "echoes", {"a": "1", "b": "2"})) == {"a": "1", "b": "new", "c": "added"}


@pytest.mark.parametrize(
    "body", ["return {'action': 'block', 'message': 'not today'}", "raise ValueError('not today')"]
)
def test_its_hook_blocks_also_by_failing(bench: Bench, body: str) -> None:
    source = f"def judge(**_):\n    {body}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', judge)\n"
    bench.write("judge", source, plugin_yaml="name: judge")
    bench.load()
    schema = {"description": "Says hi.", "parameters": {"type": "object", "properties": {}}}
    bench.registry.register("hi", "t", schema, lambda args, **_: ran.append(1) or "hi")
    ran: list[int] = []
    assert error_in(called(bench, "hi", {}))["error_type"] == "denied"
    assert not ran


def test_a_plugin_in_a_category_is_found(bench: Bench) -> None:
    folder = bench.user / "backends"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "__init__.py").write_text("def register(ctx): pass\n")
    (folder / "inner" / "plugin.yaml").write_text("name: inner\nkind: backend\n")
    assert bench.load()["inner"].state is State.LOADED


def test_a_plugin_calls_a_tool_of_an_mcp_server(bench: Bench) -> None:
    source = "def register(ctx):\n    ctx.register_command('ask', lambda text: ctx.call_mcp('far', 'echo', {'text': text}))\n"
    bench.write("caller", source, plugin_yaml="name: caller")
    bench.load()
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    schema = {"description": "Echoes.", "parameters": parameters}
    bench.registry.register("mcp__far__echo", "mcp-far", schema, lambda args, **_: args["text"])
    assert bench.plugins is not None
    assert bench.plugins.contributions.chat_commands["ask"].reply("hello") == "{'ok': True, 'result': 'hello'}"
    bench.registry.deregister("mcp__far__echo")
    assert "'ok': False" in bench.plugins.contributions.chat_commands["ask"].reply("hello")
