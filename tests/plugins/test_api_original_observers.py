"""Hooks of Hermes Agent around answers that stream, turns that end and commands that users type."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Config, Handrail
from handrail.agent import Agent, SessionStore, ToolEnded
from handrail.agent.agent_factory import sampler_of
from handrail.errors import ModelError
from handrail.plugins.hook_manager import _MAX_WAITING, OBSERVERS, HookManager
from handrail.plugins.hook_specs import HOOK_NAMES
from handrail.plugins.original_hooks import original_hooks
from handrail.runtime.dispatch import Runtime
from handrail.testing import ModelReply, OpenGate, ScriptedModel, call

from ..support import PATIENCE_SECONDS, error_in
from .conftest import Bench

NOTING = """
seen = []

def note(name):
    def callback(**kwargs):
        seen.append((name, kwargs))
    return callback

def register(ctx):
    for name in NAMES:
        ctx.register_hook(name, note(name))
"""


def load(bench: Bench, source: str) -> Any:
    bench.write("theirs", source, plugin_yaml="name: theirs")
    bench.load()
    import handrail_plugins.theirs as plugin  # type: ignore[import-not-found]

    return plugin


@contextlib.contextmanager
def agent_of(bench: Bench, folder: Path, *replies: ModelReply) -> Iterator[tuple[Agent, ScriptedModel]]:
    model = ScriptedModel(list(replies))
    with (
        Handrail(Config(), home=folder / "own", hooks=bench.hooks) as app,
        contextlib.closing(SessionStore()) as store,
        Agent(app, [model], store=store, cwd=str(folder), platform="telegram") as agent,
    ):
        yield agent, model


def test_a_streamed_answer_is_observed_in_order_with_the_documented_arguments(bench: Bench, tmp_path: Path) -> None:
    names = ("on_stream_start", "on_stream_delta", "on_stream_end", "on_interim_message")
    plugin = load(bench, f"NAMES = {names!r}\n{NOTING}")
    replies = ModelReply("I look first.", [call("todo", todos=[])]), ModelReply("nothing to do")
    with agent_of(bench, tmp_path, *replies) as (agent, _):
        agent.run("go")
    for name, kwargs in plugin.seen:
        assert {*original_hooks()["arguments"][name].split()} <= {*kwargs}
        assert (kwargs["surface"], kwargs["session_id"], kwargs["model"]) == (
            "telegram",
            agent.session_id,
            "ScriptedModel",
        )
        assert kwargs["telemetry_schema_version"] == "hermes.observer.v1"
    for number, text in ((1, "I look first."), (2, "nothing to do")):
        events = [(name, kwargs) for name, kwargs in plugin.seen if kwargs["iteration"] == number]
        order = [name for name, _ in events]
        assert order[0] == "on_stream_start"
        assert "".join(kwargs["delta"] for name, kwargs in events if name == "on_stream_delta") == text
        end = order.index("on_stream_end")
        assert (events[end][1]["final_text"], events[end][1]["finished"], events[end][1]["error"]) == (text, True, None)
        assert order[end + 1 :] == (["on_interim_message"] if number == 1 else [])
    assert [kwargs["text"] for name, kwargs in plugin.seen if name == "on_interim_message"] == ["I look first."]


def test_an_answer_that_fails_is_observed_too(bench: Bench, tmp_path: Path) -> None:
    plugin = load(bench, f"NAMES = ('on_stream_end',)\n{NOTING}")
    with agent_of(bench, tmp_path) as (agent, _):
        agent.run("nothing answers")
    ((_, kwargs),) = plugin.seen
    assert kwargs["finished"] is False
    assert kwargs["error"]


def test_a_slow_observer_holds_nothing_up_and_misses_the_oldest_events(hook_manager: HookManager) -> None:
    hook_manager.timeout = PATIENCE_SECONDS
    going, begun = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(api_call_count: int) -> None:
        begun.set()
        going.wait(PATIENCE_SECONDS)
        seen.append(api_call_count)

    hook_manager.register_hook("on_stream_start", slow, plugin="slow")
    told: list[int] = []
    hook_manager.register_hook("on_stream_start", lambda api_call_count: told.append(api_call_count), plugin="quick")
    about = {"session_id": "s", "model": "m", "provider": "p", "platform": "cli"}
    last = 2 * _MAX_WAITING
    hook_manager.invoke("on_stream_start", **about, api_call_count=0)
    assert begun.wait(PATIENCE_SECONDS)
    for number in range(1, last + 1):
        assert hook_manager.invoke("on_stream_start", **about, api_call_count=number) == []
    going.set()
    hook_manager.wait_for_observers()
    assert len(seen) <= _MAX_WAITING + 1
    assert seen == sorted(seen)
    assert seen[-1] == last
    assert told == sorted(told)


def test_a_turn_that_is_interrupted_is_announced(bench: Bench, tmp_path: Path) -> None:
    plugin = load(bench, f"NAMES = ('agent_loop_stopped',)\n{NOTING}")
    with agent_of(bench, tmp_path, ModelReply("", [call("todo", todos=[])]), ModelReply("done")) as (agent, _):
        agent.run("go", lambda event: agent.interrupt("enough") if isinstance(event, ToolEnded) else None)
        bench.hooks.wait_for_observers()
        assert [kwargs["reason"] for _, kwargs in plugin.seen] == ["enough"]
        assert (plugin.seen[0][1]["session_key"], plugin.seen[0][1]["platform"]) == (agent.session_id, "telegram")
        agent.interrupt("nothing runs")
    assert len(plugin.seen) == 1


def test_arguments_that_several_hooks_have_mean_what_they_mean_there(bench: Bench, tmp_path: Path) -> None:
    names = ("pre_llm_call", "post_llm_call", "on_session_start", "on_session_end", "subagent_start", "pre_api_request",
             "post_api_request")  # fmt: skip
    plugin = load(bench, f"NAMES = {names!r}\n{NOTING}")
    replies = ModelReply("", [call("delegate_task", goal="count")]), ModelReply("three"), ModelReply("done")
    with agent_of(bench, tmp_path, *replies) as (agent, _):
        agent.run("go")
    assert {name for name, _ in plugin.seen} == {*names}
    seen = {name: kwargs for name, kwargs in plugin.seen if kwargs["session_id"] == agent.session_id}
    assert seen["pre_llm_call"]["parent_session_id"] is None
    assert seen["subagent_start"]["parent_session_id"] == agent.session_id
    assert (seen["pre_llm_call"]["platform"], seen["on_session_start"]["model"]) == ("telegram", "ScriptedModel")
    end = seen["on_session_end"]
    assert (end["completed"], end["failed"], end["interrupted"]) == (True, False, False)
    assert seen["post_llm_call"]["assistant_response"] == "done"
    assert seen["post_llm_call"]["conversation_history"][-1]["content"] == "done"
    assert seen["pre_api_request"]["request_messages"][0]["role"] == "system"
    assert seen["post_api_request"]["assistant_message"]["content"] == "done"


VERIFYING = """
seen = []
def check(coding, attempt, changed_paths, final_response, session_id, platform, model, **kwargs):
    seen.append((coding, attempt, changed_paths, final_response))
    return ANSWER
def register(ctx):
    ctx.register_hook("pre_verify", check)
"""


@pytest.mark.parametrize(
    "answer", [{"action": "continue", "message": "Run the tests."}, {"decision": "block", "reason": "Run the tests."}]
)
def test_a_hook_keeps_an_agent_going_that_has_changed_files_three_times_at_most(
    bench: Bench, tmp_path: Path, answer: dict[str, str]
) -> None:
    plugin = load(bench, f"ANSWER = {answer!r}\n{VERIFYING}")
    file = str(tmp_path / "made.py")
    writes = ModelReply("", [call("write_file", path=file, content="x = 1\n")])
    with agent_of(bench, tmp_path, writes, *[ModelReply(f"done {each}") for each in range(4)]) as (agent, model):
        assert agent.run("go").answer == "done 3"
    assert plugin.seen == [(True, each, [file], f"done {each}") for each in range(3)]
    assert sum("Run the tests." in str(each) for each in model.sent[-1].messages) == 3


def test_it_is_not_asked_where_nothing_was_changed(bench: Bench, tmp_path: Path) -> None:
    plugin = load(bench, f"ANSWER = {{'action': 'continue', 'message': 'more'}}\n{VERIFYING}")
    with agent_of(bench, tmp_path, ModelReply("hello")) as (agent, _):
        assert agent.run("hi").answer == "hello"
    assert plugin.seen == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "Bonjour"),
        ({"text": "Hello"}, "Hello"),
        ({"action": "block", "message": "not aloud"}, None),
    ],
)
def test_its_hook_judges_what_is_spoken(bench: Bench, answer: Any, said: str | None) -> None:
    source = f"def judge(text, provider, **kwargs):\n    return {answer!r}\n"
    load(bench, f"{source}def register(ctx):\n    ctx.register_hook('pre_tts_synthesis', judge)\n")
    spoken: list[str] = []
    schema = {"description": "Says it.", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
    for name in ("text_to_speech", "other"):
        bench.registry.register(name, "t", schema, lambda args, **_: spoken.append(args["text"]) or "ok")
    run = Runtime(bench.registry, hooks=bench.hooks, gate=OpenGate()).handle
    result = run("text_to_speech", {"text": "Bonjour"})
    assert spoken == ([said] if said else [])
    if said is None:
        assert error_in(result)["error"].endswith("not aloud")
    run("other", {"text": "Bonjour"})
    assert spoken[-1] == "Bonjour"


def test_questions_to_a_model_beside_the_conversation_are_observed(bench: Bench, tmp_path: Path) -> None:
    names = ("pre_auxiliary_call", "post_auxiliary_call", "pre_api_request")
    plugin = load(bench, f"NAMES = {names!r}\n{NOTING}")
    replies = ModelReply("one"), ModelReply("two"), ModelReply("what was said")
    with agent_of(bench, tmp_path, *replies) as (agent, _):
        agent.run("first")
        agent.run("second")
        plugin.seen.clear()
        assert asyncio.run(agent.compact())
    (before, told), (after, answered) = plugin.seen
    assert (before, after) == names[:2]
    for name, kwargs in plugin.seen:
        assert {*original_hooks()["arguments"][name].split()} <= {*kwargs}
        assert (kwargs["aux_task"], kwargs["session_id"], kwargs["platform"]) == (
            "compression",
            agent.session_id,
            "telegram",
        )
    assert "first" in told["request_messages"][-1]["content"]
    assert (answered["assistant_message"]["content"], answered["error"]) == ("what was said", None)


def test_a_question_beside_the_conversation_that_fails_is_observed_too(bench: Bench) -> None:
    plugin = load(bench, f"NAMES = ('post_auxiliary_call',)\n{NOTING}")
    ask = sampler_of([ScriptedModel([])], bench.hooks.invoke)
    with pytest.raises(ModelError):
        asyncio.run(ask([{"role": "user", "content": "hi"}]))
    bench.hooks.wait_for_observers()
    ((_, kwargs),) = plugin.seen
    assert (kwargs["aux_task"], kwargs["assistant_message"]) == ("mcp", None)
    assert "script is over" in kwargs["error"]


@pytest.mark.parametrize(
    ("tool", "args", "action"),
    [
        ("skill_view", {}, "loaded"),
        ("skill_view", {"file_path": "references/a.md"}, None),
        ("skill_manage", {"action": "create"}, "created"),
        ("skill_manage", {"action": "patch"}, "patched"),
        ("skill_manage", {"action": "delete"}, "archived"),
        ("skill_manage", {"action": "patch", "fail": True}, None),
        ("other", {"action": "create"}, None),
    ],
)
def test_skills_that_are_read_and_changed_are_observed(
    bench: Bench, tool: str, args: dict[str, Any], action: str | None
) -> None:
    plugin = load(bench, f"NAMES = ('on_skill_lifecycle',)\n{NOTING}")
    properties = {**{name: {"type": "string"} for name in ("name", "file_path", "action")}, "fail": {"type": "boolean"}}
    schema = {"description": "A skill.", "parameters": {"type": "object", "properties": properties}}
    bench.registry.register(tool, "t", schema, lambda args, **_: "x" if not args.get("fail") else 1 / 0)
    Runtime(bench.registry, hooks=bench.hooks, gate=OpenGate()).handle(tool, {"name": "release", **args})
    assert [(kwargs["action"], kwargs["skill_name"]) for _, kwargs in plugin.seen] == (
        [(action, "release")] if action else []
    )
    for _, kwargs in plugin.seen:
        assert {*original_hooks()["arguments"]["on_skill_lifecycle"].split()} <= {*kwargs}


TAMPERING = """
def tamper(request_messages=(), conversation_history=(), assistant_message=None, result=None, **kwargs):
    for message in (*(request_messages or ()), *(conversation_history or ()), assistant_message or {}):
        message["content"] = "TAMPERED"
    if isinstance(result, dict):
        result["content"].clear()

def register(ctx):
    ctx.register_hook("HOOK", tamper)
"""


@pytest.mark.parametrize(
    "hook",
    ["pre_api_request", "post_api_request", "pre_llm_call", "post_llm_call"],
)
def test_a_hook_that_changes_what_it_is_given_changes_no_request(bench: Bench, tmp_path: Path, hook: str) -> None:
    load(bench, TAMPERING.replace("HOOK", hook))
    with agent_of(bench, tmp_path, ModelReply("one"), ModelReply("two")) as (agent, model):
        agent.run("first")
        agent.run("second")
    assert "TAMPERED" not in str(model.sent)
    assert "first" in str(model.sent[1].messages)


def test_a_hook_that_changes_a_picture_changes_no_result(bench: Bench) -> None:
    load(bench, TAMPERING.replace("HOOK", "post_tool_call"))
    schema = {"description": "Shows it.", "parameters": {"type": "object", "properties": {}}}
    bench.registry.register(
        "show", "t", schema, lambda _, **__: {"_multimodal": True, "content": [{"type": "text", "text": "x"}]}
    )
    assert Runtime(bench.registry, hooks=bench.hooks, gate=OpenGate()).handle("show", {})["content"]


def test_hooks_of_things_that_are_not_here_are_reported_with_the_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    never = original_hooks()["never_called"]
    load(bench, f"NAMES = {[*never]!r}\n{NOTING}")
    for name, why in never.items():
        assert f"plugin theirs: the hook {name} is never called: {why}" in caplog.text


# The catalogue of hooks in its public documentation.
DOCUMENTED = """
pre_tool_call pre_tts_synthesis post_tool_call transform_tool_result transform_terminal_output pre_transcription pre_llm_call
post_llm_call transform_llm_output pre_verify pre_api_request post_api_request api_request_error pre_auxiliary_call
post_auxiliary_call on_stream_start on_stream_delta on_stream_end on_interim_message transform_api_error_classification
on_session_start on_session_end on_session_finalize on_session_reset agent_loop_stopped on_skill_lifecycle subagent_start
subagent_stop pre_gateway_dispatch gateway_platform_event pre_command pre_approval_request post_approval_response
on_room_member_activity kanban_task_claimed kanban_task_completed kanban_task_blocked on_kanban_worker_spawned
on_kanban_worker_exited on_kanban_worker_stale_claim on_kanban_task_updated on_kanban_dispatch_tick
"""


def test_every_documented_hook_is_called_or_has_a_reason() -> None:
    known = original_hooks()
    assert {*known["arguments"], *known["never_called"], "pre_tts_synthesis"} == {*DOCUMENTED.split()}
    assert not {*known["never_called"]} & {*HOOK_NAMES}
    assert {*known["arguments"]} <= {*HOOK_NAMES, "on_skill_lifecycle"}
    assert {*HOOK_NAMES} >= OBSERVERS
