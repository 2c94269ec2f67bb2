"""The application object: two of them in one process share nothing."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handrail import Config, Handrail, model_tools, registry
from handrail.environments.backend_table import backends as default_backends
from handrail.errors import UnknownToolset
from handrail.plugins.hook_manager import hooks as default_hooks
from handrail.plugins.hook_specs import Block
from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.settings.sections import ApprovalsConfig, ToolsConfig
from handrail.settings.services import MessagesConfig
from tests.support import add, configure


class Says:
    def __init__(self, decision: Decision) -> None:
        self.decision, self.asked = decision, 0

    def decide(self, request: ApprovalRequest) -> Answer:
        self.asked += 1
        return Answer(self.decision)


def answer(app: Handrail, name: str, arguments: dict[str, Any], **who: Any) -> Any:
    return json.loads(app.handle_function_call(name, arguments, **who))


def test_each_has_the_built_in_tools_and_what_is_added_to_one_is_not_in_the_other() -> None:
    with Handrail(Config()) as one, Handrail(Config()) as other:
        add(one.registry, "mine", lambda args, **kw: "ok")
        assert one.handle_function_call("mine", {}) == "ok"
        assert answer(other, "mine", {})["error_type"] == "unknown_tool"
        assert registry.get_entry("mine") is None
        assert {"read_file", "terminal"} <= set(other.registry.get_all_tool_names())


def test_a_hook_of_one_is_not_asked_by_the_other() -> None:
    with Handrail(Config()) as one, Handrail(Config()) as other:
        one.hooks.register_hook("pre_tool_call", lambda tool_name: Block("not here"))
        assert answer(one, "read_file", {"path": "/"})["error"] == "not here"
        assert answer(other, "read_file", {"path": "/"})["error"] != "not here"
        assert not default_hooks.active


def test_what_can_be_used_is_what_the_objects_own_configuration_says(tmp_path: Path) -> None:
    target = {"kind": "webhook", "url": "http://127.0.0.1:1/"}
    with Handrail(Config(messages=MessagesConfig(targets={"ops": target}))) as one, Handrail(Config()) as other:
        assert one.registry.unavailable_tools().get("send_message") is None
        assert "send_message" in other.registry.unavailable_tools()
        assert "ops" in json.dumps(one.get_tool_definitions(["messaging"]))
        assert "ops" not in json.dumps(other.get_tool_definitions(["messaging"]))


def test_the_policy_of_one_is_not_the_policy_of_the_other(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    call = {"command": f"rm -rf {tmp_path}/build"}
    with Handrail(Config(approvals=ApprovalsConfig(mode="off"))) as free, Handrail(Config()) as careful:
        assert answer(careful, "terminal", call)["error_type"] == "denied"
        assert (tmp_path / "build").exists()
        assert answer(free, "terminal", call)["exit_code"] == 0
        assert not (tmp_path / "build").exists()


def test_a_yes_for_the_session_in_one_is_not_a_yes_in_the_other(tmp_path: Path) -> None:
    call = {"command": f"rm -rf {tmp_path}/build"}
    yes, no = Says(Decision.SESSION), Says(Decision.DENY)
    with Handrail(Config(), approver=yes) as one, Handrail(Config(), approver=no) as other:
        assert answer(one, "terminal", call, session_id="s")["exit_code"] == 0
        assert answer(other, "terminal", call, session_id="s")["error_type"] == "denied"
        assert answer(one, "terminal", call, session_id="s")["exit_code"] == 0
        assert (yes.asked, no.asked) == (1, 1)


def test_a_configuration_of_its_own_keeps_its_state_in_a_folder_that_goes_with_it(home: Path) -> None:
    with Handrail(Config()) as app:
        folder = Path(app.config.home)
        assert folder.is_dir()
        answer(app, "terminal", {"command": "echo hi"})
    assert not folder.exists()
    assert not (home / "state").exists()


def test_a_home_is_read_and_kept(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("tools: {enabled_toolsets: [results]}\n")
    with Handrail(home=tmp_path) as app:
        assert [each["function"]["name"] for each in app.get_tool_definitions()] == ["read_result"]
        assert app.config.home == str(tmp_path)
    assert tmp_path.exists()


def test_backends_are_its_own() -> None:
    class Nowhere:
        name = "nowhere"

    with Handrail(Config()) as one, Handrail(Config()) as other:
        one.backends.add(Nowhere)  # type: ignore[arg-type]
        assert "nowhere" in one.backends.names()
        assert "nowhere" not in other.backends.names()
        assert "nowhere" not in default_backends.names()


def test_it_works_in_async_programs() -> None:
    async def use() -> Any:
        async with Handrail(Config(tools=ToolsConfig(enabled_toolsets=("file",)))) as app:
            return json.loads(await app.ahandle_function_call("read_file", {"path": __file__, "limit": 1}))

    assert "application object" in asyncio.run(use())["content"]


def test_the_modules_registry_and_hooks_belong_to_the_default_one() -> None:
    app = model_tools.default()
    assert app.registry is registry
    assert app.hooks is default_hooks
    assert app.backends is default_backends


@pytest.mark.parametrize("first", ["user", "built-in"])
@pytest.mark.parametrize(("options", "wins"), [({}, False), ({"override": True}, True)])
def test_a_tool_with_a_built_in_name_has_the_same_outcome_whatever_comes_first(
    first: str, options: dict[str, Any], wins: bool, caplog: pytest.LogCaptureFixture
) -> None:
    from handrail import ToolRegistry
    from handrail.core.builtin import builtin_tools

    table = ToolRegistry()
    if first == "built-in":
        table.adopt(builtin_tools())
    schema = {"description": "Mine.", "parameters": {"type": "object", "properties": {}}}
    table.register(name="read_file", toolset="mine", schema=schema, handler=lambda args, **kw: "mine", **options)
    if first == "user":
        table.adopt(builtin_tools())
    entry = table.get_entry("read_file")
    assert entry is not None
    assert (entry.toolset == "mine") is wins
    assert wins or "override=True replaces it" in caplog.text


def test_a_session_yes_without_a_session_id_holds_for_its_task_only(tmp_path: Path) -> None:
    call = {"command": f"rm -rf {tmp_path}/build"}
    yes = Says(Decision.SESSION)
    with Handrail(Config(), approver=yes) as app:
        for task in ("one", "one", "two", "one", "two"):
            assert answer(app, "terminal", call, task_id=task)["exit_code"] == 0
        assert yes.asked == 2
        assert answer(app, "terminal", call, task_id="three", session_id="one")["exit_code"] == 0
        assert yes.asked == 3  # a session that has a task's name is another scope


def test_two_policies_hold_when_both_objects_are_used_in_turn_from_threads_and_loops(tmp_path: Path) -> None:
    def config(word: str) -> Config:
        return Config(approvals=ApprovalsConfig(deny=(f"touch {word}",)))

    def verdicts(app: Handrail, task: str) -> list[str]:
        found = [
            answer(app, "terminal", {"command": f"touch {word}", "workdir": str(tmp_path)}, task_id=task)
            for word in "ab"
        ]
        return [each.get("error_type", "ran") for each in found]

    with Handrail(config("a")) as one, Handrail(config("b")) as other:
        for turn in range(3):
            assert verdicts(one, f"t{turn}") == ["denied", "ran"]
            assert verdicts(other, f"t{turn}") == ["ran", "denied"]
        with ThreadPoolExecutor(4) as threads:
            both = [threads.submit(verdicts, app, f"p{n}") for n in range(4) for app in (one, other)]
            assert [each.result() for each in both] == [["denied", "ran"], ["ran", "denied"]] * 4

        async def asynchronously(app: Handrail, word: str) -> str:
            call = {"command": f"touch {word}", "workdir": str(tmp_path)}
            found = json.loads(await app.ahandle_function_call("terminal", call, task_id=f"a{word}"))
            return str(found.get("error_type", "ran"))

        async def all_of_them() -> list[str]:
            return await asyncio.gather(*(asynchronously(app, word) for app in (one, other) for word in "ab"))

        assert asyncio.run(all_of_them()) == ["denied", "ran", "ran", "denied"]
        assert {each.decision for each in one.gate.store.decisions.latest(50)} == {"deny"}
        assert one.gate.store.database.path != other.gate.store.database.path


def test_a_toolset_of_a_server_that_waits_to_be_confirmed_is_empty_and_not_unknown(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(home, "approvals: {mode: manual}\n")
    server = "mcp_servers: {fs: {command: no-such-program}}\n"
    (home / "config.yaml").write_text(f"tools: {{enabled_toolsets: [todo, fs], disabled_toolsets: [mcp-fs]}}\n{server}")
    with Handrail() as app:
        assert app.mcp is None
        names = [each["function"]["name"] for each in app.get_tool_definitions()]
        assert app.get_tool_definitions(["fs"]) == []
        with pytest.raises(UnknownToolset):
            app.get_tool_definitions(["fsx"])
    assert names == ["todo"]
    assert "waits for `handrail config confirm`" in caplog.text
