"""The table of tools: registration, collisions, queries, dispatch, threads."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel

from handrail.core.availability import Availability
from handrail.core.registry import ToolRegistry
from handrail.core.registry import registry as singleton
from handrail.errors import RegistrationError, ToolFailed
from tests.support import (
    PATIENCE_SECONDS,
    add,
    costs_less_than,
    echo,
    error_in,
    in_threads,
    parameters,
    takes_less_than,
)


class TestRegistering:
    def test_every_documented_keyword_is_kept_in_the_entry(self, registry: ToolRegistry) -> None:
        def check() -> bool:
            return True

        def overrides() -> dict[str, Any]:
            return {}

        def resources(args: dict[str, Any]) -> Any:
            return None

        assert registry.register(
            name="dice",
            toolset="games",
            schema={"description": "Roll dice.", "parameters": parameters(sides={"type": "integer"})},
            handler=echo,
            check_fn=check,
            requires_env=["DICE_KEY"],
            is_async=False,
            description="",
            emoji="🎲",
            max_result_size_chars=500,
            dynamic_schema_overrides=overrides,
            override=False,
            read_only=True,
            resources=resources,
            timeout=3.5,
            needs_agent=False,
        )
        entry = registry.get_entry("dice")
        assert entry is not None
        assert (entry.name, entry.toolset, entry.description) == ("dice", "games", "Roll dice.")
        assert (entry.handler, entry.check_fn, entry.requires_env) == (echo, check, ("DICE_KEY",))
        assert (entry.emoji, entry.max_result_size_chars, entry.timeout) == ("🎲", 500, 3.5)
        assert (entry.dynamic_schema_overrides, entry.resources, entry.read_only) == (overrides, resources, True)

    def test_a_description_of_its_own_goes_before_the_one_in_the_schema(self, registry: ToolRegistry) -> None:
        registry.register("a", "t", {"description": "in the schema", "parameters": {}}, echo, description="of its own")
        assert registry.get_schema("a")["description"] == "of its own"  # type: ignore[index]

    def test_a_schema_in_the_wrapper_that_openai_uses_is_understood(self, registry: ToolRegistry) -> None:
        wrapped = {"type": "function", "function": {"name": "a", "description": "d", "parameters": parameters(x={})}}
        registry.register("a", "t", wrapped, echo)
        assert registry.get_schema("a") == {"name": "a", "description": "d", "parameters": parameters(x={})}

    def test_a_schema_without_parameters_means_a_tool_without_arguments(self, registry: ToolRegistry) -> None:
        registry.register("now", "t", {"description": "The time."}, echo)
        assert registry.get_schema("now")["parameters"] == {"type": "object", "properties": {}}  # type: ignore[index]

    def test_changing_the_schema_after_registration_changes_nothing(self, registry: ToolRegistry) -> None:
        schema = {"description": "d", "parameters": parameters(x={"type": "string"})}
        registry.register("a", "t", schema, echo)
        schema["parameters"]["properties"]["x"]["type"] = "integer"  # type: ignore[index]
        schema["parameters"]["properties"]["y"] = {}  # type: ignore[index]
        registered = registry.get_schema("a")
        assert registered is not None
        assert registered["parameters"]["properties"] == {"x": {"type": "string"}}

    def test_the_module_has_one_registry_for_everyone_and_others_can_be_built(self) -> None:
        import handrail

        assert handrail.registry is singleton
        own = ToolRegistry()
        add(own, "only_here")
        assert singleton.get_entry("only_here") is None

    @pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a.b", "a\n", None, 5, b"a", "名"])
    def test_a_name_that_no_api_takes_is_refused(self, registry: ToolRegistry, name: Any) -> None:
        with pytest.raises(RegistrationError, match="name"):
            add(registry, name)
        assert registry.get_all_tool_names() == []

    @pytest.mark.parametrize("name", ["a", "A-1", "x" * 64, "mcp__server__tool-x", "_", "1"])
    def test_a_name_that_every_api_takes_is_accepted(self, registry: ToolRegistry, name: str) -> None:
        assert add(registry, name)
        assert registry.get_all_tool_names() == [name]

    @pytest.mark.parametrize(
        ("broken", "place"),
        [
            (parameters(when={"type": "strin"}), "properties.when.type"),
            ({"type": "object", "properties": []}, "properties"),
            ({"type": "object", "required": "x"}, "required"),
            (parameters(x={"pattern": "("}), "properties.x.pattern"),
            (parameters(x={"minimum": "1"}), "properties.x.minimum"),
            ({"type": "string"}, "type"),
            (parameters(x={"$ref": "#/$defs/nowhere"}), "nowhere"),
            (parameters(x={"$ref": "https://example.invalid/schema.json"}), "example.invalid"),
            (None, "parameters"),
            ([], "parameters"),
            (parameters(x={"default": object()}), "parameters"),
        ],
    )
    def test_a_schema_that_is_no_schema_is_refused_by_tool_and_place(
        self, registry: ToolRegistry, broken: Any, place: str
    ) -> None:
        with pytest.raises(RegistrationError) as refused:
            registry.register("broken_tool", "t", {"description": "d", "parameters": broken}, echo)
        assert "broken_tool" in str(refused.value)
        assert place in str(refused.value)
        assert registry.get_entry("broken_tool") is None

    @pytest.mark.parametrize(
        "arguments",
        [
            {"handler": "not callable"},
            {"schema": "not a dict"},
            {"schema": None},
            {"schema": {"function": "not a dict"}},
            {"schema": {"description": 5, "parameters": {}}},
            {"description": 5},
            {"toolset": ""},
            {"toolset": None},
            {"timeout": 0},
            {"timeout": -1},
            {"timeout": float("nan")},
            {"timeout": "soon"},
            {"check_fn": "not callable"},
            {"dynamic_schema_overrides": "not callable"},
            {"resources": "not callable"},
        ],
    )
    def test_what_cannot_be_a_tool_is_refused_at_registration(
        self, registry: ToolRegistry, arguments: dict[str, Any]
    ) -> None:
        whole = {"name": "odd", "toolset": "t", "schema": {"description": "d"}, "handler": echo} | arguments
        with pytest.raises(RegistrationError, match="odd"):
            registry.register(**whole)
        assert registry.get_all_tool_names() == []

    def test_a_schema_nested_beyond_reason_is_refused_or_usable(self, registry: ToolRegistry) -> None:
        for depth in (50, 120, 200, 400, 1_000, 50_000):
            nested: dict[str, Any] = {"type": "string"}
            for _ in range(depth):
                nested = {"type": "object", "properties": {"a": nested}}
            name = f"deep_{depth}"
            with contextlib.suppress(RegistrationError):
                add(registry, name, schema=nested)
            while nested.get("properties"):  # taken apart by hand: the interpreter would recurse
                nested = nested["properties"].pop("a")
        assert len(registry.get_definitions()) == len(registry.get_all_tool_names())

    def test_a_schema_that_holds_itself_is_refused(self, registry: ToolRegistry) -> None:
        looped: dict[str, Any] = parameters()
        looped["properties"]["x"] = looped
        with pytest.raises(RegistrationError, match="looped"):
            add(registry, "looped", schema=looped)

    def test_schemas_that_python_calls_equal_stay_apart(self, registry: ToolRegistry) -> None:
        add(registry, "number", schema=parameters(x={"const": 1}))
        add(registry, "truth", schema=parameters(x={"const": True}))
        add(registry, "fraction", schema=parameters(x={"default": 1.0}))
        add(registry, "whole", schema=parameters(x={"default": 1}))
        schemas = {
            name: registry.get_schema(name)["parameters"]["properties"]["x"] for name in registry.get_all_tool_names()
        }  # type: ignore[index]
        assert schemas["truth"]["const"] is True
        assert type(schemas["number"]["const"]) is int
        assert type(schemas["fraction"]["default"]) is float
        assert type(schemas["whole"]["default"]) is int

    def test_a_tool_shows_its_arguments_in_its_own_order(self, registry: ToolRegistry) -> None:
        add(registry, "first", schema=parameters(a={"type": "string"}, b={"type": "string"}))
        add(registry, "second", schema=parameters(b={"type": "string"}, a={"type": "string"}))
        assert list(registry.get_schema("second")["parameters"]["properties"]) == ["b", "a"]  # type: ignore[index]

    def test_registering_never_goes_to_the_network(self, registry: ToolRegistry) -> None:
        # In a process of its own: a library that fetches may hold the interpreter while it waits.
        server = textwrap.dedent("""
            import socket
            listener = socket.create_server(("127.0.0.1", 0))
            print(listener.getsockname()[1], flush=True)
            while True:
                with listener.accept()[0] as connection:
                    request = connection.recv(4096)
                if request == b"enough":
                    break
                print(request)
        """)
        with subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            url = f"http://127.0.0.1:{port}/schema"
            for number, place in enumerate(({"$schema": url}, {"$ref": url}, {"$id": url})):
                with contextlib.suppress(RegistrationError):
                    add(registry, f"t{number}", schema={**parameters(), **place})
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"enough")
            assert process.stdout.read() == ""


class TestCollisions:
    def test_another_toolsets_tool_is_refused_and_the_first_stays(
        self, registry: ToolRegistry, caplog: pytest.LogCaptureFixture
    ) -> None:
        add(registry, "search", lambda args, **kw: "first", toolset="web")
        before = registry.generation
        assert add(registry, "search", lambda args, **kw: "second", toolset="files") is False
        assert registry.dispatch("search", {}) == "first"
        assert registry.get_toolset_for_tool("search") == "web"
        assert registry.generation == before
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 1
        assert all(word in errors[0] for word in ("search", "web", "files"))

    def test_the_same_toolset_may_register_its_tool_again(self, registry: ToolRegistry) -> None:
        add(registry, "search", lambda args, **kw: "first", toolset="web")
        assert add(registry, "search", lambda args, **kw: "second", toolset="web") is True
        assert registry.dispatch("search", {}) == "second"

    def test_override_replaces_and_says_so_at_info(
        self, registry: ToolRegistry, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        add(registry, "search", lambda args, **kw: "first", toolset="web")
        assert add(registry, "search", lambda args, **kw: "second", toolset="mine", override=True) is True
        assert registry.dispatch("search", {}) == "second"
        assert [record.levelno for record in caplog.records if "search" in record.getMessage()] == [logging.INFO]

    def test_one_mcp_server_may_replace_anothers_tool_but_not_a_built_in_one(self, registry: ToolRegistry) -> None:
        add(registry, "query", lambda args, **kw: "one", toolset="mcp-one")
        assert add(registry, "query", lambda args, **kw: "two", toolset="mcp-two") is True
        assert registry.dispatch("query", {}) == "two"
        add(registry, "read_file", lambda args, **kw: "ours", toolset="file")
        assert add(registry, "read_file", lambda args, **kw: "theirs", toolset="mcp-one") is False
        assert registry.dispatch("read_file", {}) == "ours"

    def test_a_registry_that_lets_the_later_win_warns(self, caplog: pytest.LogCaptureFixture) -> None:
        registry = ToolRegistry(on_collision="replace")
        add(registry, "search", lambda args, **kw: "first", toolset="web")
        assert add(registry, "search", lambda args, **kw: "second", toolset="files") is True
        assert registry.dispatch("search", {}) == "second"
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert "web" in warnings[0]
        assert "files" in warnings[0]

    @pytest.mark.parametrize("toolset", ["file", "mine"])
    @pytest.mark.parametrize("on_collision", ["refuse", "replace"])
    def test_a_plugin_may_not_replace_a_built_in_tool_by_itself(self, toolset: str, on_collision: Any) -> None:
        registry = ToolRegistry(on_collision=on_collision)
        add(registry, "read_file", lambda args, **kw: "ours", toolset="file")
        assert not add(registry, "read_file", lambda a, **kw: "theirs", toolset=toolset, override=True, owner="plugin")
        assert registry.dispatch("read_file", {}) == "ours"

    def test_a_plugin_that_the_operator_lets_may_override_and_deregister(self, registry: ToolRegistry) -> None:
        registry.may_override = lambda owner: owner == "trusted"
        add(registry, "read_file", lambda args, **kw: "ours", toolset="file")
        assert add(registry, "read_file", lambda a, **kw: "theirs", toolset="mine", override=True, owner="trusted")
        assert registry.dispatch("read_file", {}) == "theirs"
        add(registry, "other")
        assert registry.deregister("other", owner="trusted")

    def test_a_plugin_may_deregister_only_its_own_tools(self, registry: ToolRegistry) -> None:
        add(registry, "ours", toolset="file")
        add(registry, "theirs", toolset="plug", owner="plugin")
        assert registry.deregister("ours", owner="plugin") is False
        assert registry.deregister("theirs", owner="other-plugin") is False
        assert registry.get_all_tool_names() == ["ours", "theirs"]
        assert registry.deregister("theirs", owner="plugin") is True
        assert registry.get_all_tool_names() == ["ours"]


class TestChanging:
    def test_a_deregistered_tool_is_gone_from_every_answer(self, registry: ToolRegistry) -> None:
        add(registry, "a", toolset="x")
        assert registry.deregister("a") is True
        assert registry.get_all_tool_names() == []
        assert registry.get_schema("a") is None
        assert registry.get_toolsets() == {}
        assert registry.get_definitions() == []
        assert error_in(registry.dispatch("a", {}))["error_type"] == "unknown_tool"
        assert registry.deregister("a") is False

    def test_every_change_gives_a_new_generation_and_a_question_does_not(self, registry: ToolRegistry) -> None:
        seen = [registry.generation]

        def changed() -> bool:
            seen.append(registry.generation)
            return len(set(seen)) == len(seen)

        add(registry, "a")
        assert changed()
        add(registry, "a", lambda args, **kw: "new")
        assert changed()
        registry.register_toolset_alias("short", "test")
        assert changed()
        registry.get_definitions()
        registry.get_schema("a")
        registry.dispatch("a", {})
        registry.deregister("unknown")
        assert registry.generation == seen[-1]
        registry.deregister("a")
        assert changed()

    def test_an_alias_names_a_toolset_and_goes_with_its_last_tool(self, registry: ToolRegistry) -> None:
        add(registry, "a", toolset="mcp-github")
        add(registry, "b", toolset="mcp-github")
        registry.register_toolset_alias("github", "mcp-github")
        assert registry.get_toolset_alias_target("github") == "mcp-github"
        assert registry.is_toolset_available("github")
        registry.deregister("a")
        assert registry.get_registered_toolset_aliases() == {"github": "mcp-github"}
        registry.deregister("b")
        assert registry.get_registered_toolset_aliases() == {}

    def test_an_alias_that_changes_its_meaning_is_said(
        self, registry: ToolRegistry, caplog: pytest.LogCaptureFixture
    ) -> None:
        registry.register_toolset_alias("x", "mcp-one")
        registry.register_toolset_alias("x", "mcp-two")
        assert registry.get_toolset_alias_target("x") == "mcp-two"
        assert "mcp-one" in caplog.text
        assert "mcp-two" in caplog.text


class TestAsking:
    @pytest.fixture
    def filled(self, registry: ToolRegistry) -> ToolRegistry:
        add(registry, "b_tool", toolset="letters", emoji="🅱", requires_env=("B_KEY", "A_KEY"))
        add(registry, "a_tool", toolset="letters", requires_env=("A_KEY",))
        add(registry, "one", toolset="numbers", check_fn=lambda: False, max_result_size_chars=7)
        return registry

    def test_the_queries_tell_what_is_registered(self, filled: ToolRegistry) -> None:
        assert filled.get_all_tool_names() == ["a_tool", "b_tool", "one"]
        assert filled.get_tool_names_for_toolset("letters") == ["a_tool", "b_tool"]
        assert filled.get_tool_names_for_toolset("nothing") == []
        assert filled.get_toolset_for_tool("one") == "numbers"
        assert filled.get_toolset_for_tool("nothing") is None
        assert filled.get_toolsets() == {"letters": ["a_tool", "b_tool"], "numbers": ["one"]}
        assert filled.get_registered_toolset_names() == ["letters", "numbers"]
        assert filled.get_tool_to_toolset_map() == {"a_tool": "letters", "b_tool": "letters", "one": "numbers"}
        assert filled.get_schema("nothing") is None
        assert filled.get_emoji("b_tool") == "🅱"
        assert filled.get_emoji("a_tool") == filled.get_emoji("nothing") == "⚡"
        assert filled.get_emoji("nothing", default="?") == "?"
        assert filled.get_max_result_size("one") == 7
        assert filled.get_max_result_size("nothing", default=9) == 9

    def test_requirements_and_availability_are_told_by_toolset(self, filled: ToolRegistry) -> None:
        assert filled.get_toolset_requirements() == {"letters": ["A_KEY", "B_KEY"], "numbers": []}
        assert filled.check_toolset_requirements() == {"letters": True, "numbers": False}
        letters = {
            "available": True,
            "tools": ["a_tool", "b_tool"],
            "description": "",
            "requirements": ["A_KEY", "B_KEY"],
        }
        numbers = {"available": False, "tools": ["one"], "description": "", "requirements": []}
        assert filled.get_available_toolsets() == {"letters": letters, "numbers": numbers}
        assert filled.check_tool_availability() == (
            ["letters"],
            [{"name": "numbers", "env_vars": [], "tools": ["one"]}],
        )

    def test_what_a_caller_gets_is_its_own(self, filled: ToolRegistry) -> None:
        def spoil(value: Any) -> None:
            if isinstance(value, dict):
                for item in value.values():
                    spoil(item)
                value.clear()
            elif isinstance(value, list):
                for item in value:
                    spoil(item)
                value.clear()

        questions = [
            filled.get_all_tool_names,
            filled.get_toolsets,
            filled.get_definitions,
            filled.get_tool_to_toolset_map,
            filled.get_toolset_requirements,
            filled.get_registered_toolset_names,
            filled.get_registered_toolset_aliases,
            filled.entries,
            filled.check_toolset_requirements,
            lambda: filled.get_schema("a_tool"),
            lambda: filled.get_entry("a_tool").schema,  # type: ignore[union-attr]
            lambda: filled.get_tool_names_for_toolset("letters"),
        ]
        before = [repr(question()) for question in questions]
        for question in questions:
            spoil(question())
        assert [repr(question()) for question in questions] == before

    def test_definitions_have_the_shape_that_openai_takes_and_leave_out_what_cannot_work(
        self, filled: ToolRegistry
    ) -> None:
        listed = filled.get_definitions()
        assert [d["function"]["name"] for d in listed] == ["a_tool", "b_tool"]
        assert all(d["type"] == "function" for d in listed)
        assert set(listed[0]["function"]) == {"name", "description", "parameters"}
        assert [d["function"]["name"] for d in filled.get_definitions(["b_tool", "one", "nothing"])] == ["b_tool"]

    def test_a_quiet_listing_says_nothing(self, filled: ToolRegistry, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger="handrail")
        filled.get_definitions(quiet=True)
        assert not caplog.records
        filled.get_definitions(quiet=False)
        assert "one" in caplog.text

    def test_fields_given_at_listing_time_are_in_the_registrys_own_listing(self, registry: ToolRegistry) -> None:
        add(registry, "a", dynamic_schema_overrides=lambda: {"description": "as of now"})
        assert registry.get_definitions()[0]["function"]["description"] == "as of now"


class Point(BaseModel):
    x: int
    label: str = "ß"


class TestDispatching:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("text", "text"),
            ('{"a": 1}', '{"a": 1}'),
            ("", ""),
            ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
            ([1, "ü"], '[1, "ü"]'),
            ({}, "{}"),
            (Point(x=3), '{"x": 3, "label": "ß"}'),
            ({"points": [Point(x=1)]}, '{"points": [{"x": 1, "label": "ß"}]}'),
        ],
    )
    def test_what_a_handler_may_return_becomes_text(self, registry: ToolRegistry, value: Any, expected: str) -> None:
        add(registry, "tool", lambda args, **kw: value)
        assert registry.dispatch("tool", {}) == expected

    def test_a_multimodal_result_passes_through(self, registry: ToolRegistry) -> None:
        picture = {"_multimodal": True, "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
        add(registry, "look", lambda args, **kw: picture)
        assert registry.dispatch("look", {}) == picture

    def test_anything_else_is_a_contract_error_that_names_tool_and_type(self, registry: ToolRegistry) -> None:
        def numbers() -> Any:
            yield 1

        async def stream() -> Any:
            yield 1

        odd = {
            "bytes": b"x",
            "NoneType": None,
            "int": 5,
            "generator": numbers(),
            "set": {1},
            "async_generator": stream(),
        }
        for kind, value in odd.items():
            add(registry, "odd_tool", lambda args, value=value, **kw: value)
            error = error_in(registry.dispatch("odd_tool", {}))
            assert error["error_type"] == "tool_result_contract"
            assert "odd_tool" in error["error"]
            assert kind in error["error"]

    @pytest.mark.parametrize(
        "value",
        [{"raw": b"x"}, {"x": float("nan")}, [float("inf")], {("a", "b"): 1}, {"x": object()}, [{1, 2}], [10**5000]],
        ids=["bytes", "nan", "infinity", "tuple key", "object", "set", "endless digits"],
    )
    def test_a_result_that_no_json_can_carry_is_a_contract_error(self, registry: ToolRegistry, value: Any) -> None:
        add(registry, "odd_tool", lambda args, **kw: value)
        error = error_in(registry.dispatch("odd_tool", {}))
        assert error["error_type"] == "tool_result_contract"
        assert "odd_tool" in error["error"]

    def test_a_result_that_holds_itself_is_a_contract_error(self, registry: ToolRegistry) -> None:
        looped: list[Any] = []
        looped.append(looped)
        add(registry, "looped", lambda args, **kw: looped)
        assert error_in(registry.dispatch("looped", {}))["error_type"] == "tool_result_contract"

    def test_lone_surrogates_in_a_result_do_not_reach_the_model(self, registry: ToolRegistry) -> None:
        add(registry, "text", lambda args, **kw: "a\ud800b")
        add(registry, "data", lambda args, **kw: {"k\udfff": "a\ud800b"})
        for name in ("text", "data"):
            registry.dispatch(name, {}).encode()  # type: ignore[union-attr]

    def test_text_of_a_subclass_is_text(self, registry: ToolRegistry) -> None:
        class Text(str):
            __slots__ = ()

        add(registry, "a", lambda args, **kw: Text("hällo"))
        assert registry.dispatch("a", {}) == "hällo"

    def test_an_async_handler_and_a_plain_one_that_gives_back_a_coroutine_are_both_awaited(
        self, registry: ToolRegistry
    ) -> None:
        async def work(args: Any, **kw: Any) -> dict[str, Any]:
            return {"x": kw["x"]}

        add(registry, "declared", work, is_async=True)
        add(registry, "undeclared", lambda args, **kw: work(args, **kw))
        assert registry.dispatch("declared", {}, x=1) == '{"x": 1}'
        assert registry.dispatch("undeclared", {}, x=2) == '{"x": 2}'

    def test_arguments_that_do_not_fit_never_reach_the_handler(self, registry: ToolRegistry) -> None:
        add(registry, "strict", lambda args, **kw: "ran")
        assert error_in(registry.dispatch("strict", {"x": 1}))["error_type"] == "invalid_arguments"

    def test_context_reaches_the_handler(self, registry: ToolRegistry) -> None:
        add(registry, "who", lambda args, **kw: kw["task_id"])
        assert registry.dispatch("who", {}, task_id="t-1") == "t-1"

    def test_an_exception_becomes_an_error_that_names_its_type(self, registry: ToolRegistry) -> None:
        def fail(args: Any, **kw: Any) -> str:
            raise KeyError("the key")

        add(registry, "fail", fail)
        assert error_in(registry.dispatch("fail", {}))["error"] == "Tool execution failed: KeyError: 'the key'"

    def test_an_unknown_tool_is_told_with_the_nearest_name(self, registry: ToolRegistry) -> None:
        add(registry, "read_file")
        error = error_in(registry.dispatch("raed_file", {}))
        assert error["error_type"] == "unknown_tool"
        assert "raed_file" in error["error"]
        assert "did you mean read_file?" in error["error"]

    def test_an_agent_tool_without_an_agent_says_so(self, default_registry: ToolRegistry) -> None:
        error = error_in(default_registry.dispatch("todo", {}))
        assert error["error_type"] == "needs_agent"
        assert "agent" in error["error"]

    @pytest.mark.parametrize("leaving", [KeyboardInterrupt, SystemExit])
    def test_leaving_the_program_passes(self, registry: ToolRegistry, leaving: type[BaseException]) -> None:
        def leave(args: Any, **kw: Any) -> str:
            raise leaving

        add(registry, "leave", leave)
        with pytest.raises(leaving):
            registry.dispatch("leave", {})

    def test_details_of_an_error_that_no_json_can_carry_do_not_raise(self, registry: ToolRegistry) -> None:
        for details in (
            {"where": object()},
            {"raw": b"x"},
            {"x": float("nan")},
            {"error_type": "mine"},
            {"t": "\ud800"},
        ):

            def fail(args: Any, details: Any = details, **kw: Any) -> str:
                raise ToolFailed("it broke", **details)

            add(registry, "fail", fail)
            error = error_in(registry.dispatch("fail", {}))
            assert "it broke" in error["error"]
            assert error["error_type"] == "tool_failed"

    def test_an_error_without_a_readable_text_does_not_raise(self, registry: ToolRegistry) -> None:
        class Unreadable(Exception):
            def __str__(self) -> str:
                raise RuntimeError("not even this")

        def fail(args: Any, **kw: Any) -> str:
            raise Unreadable

        add(registry, "fail", fail)
        assert "Unreadable" in error_in(registry.dispatch("fail", {}))["error"]


class TestThreads:
    def test_thirty_two_threads_lose_no_registration(self, registry: ToolRegistry) -> None:
        each = 20

        def work(number: int) -> None:
            for index in range(each):
                name = f"t{number}_{index}"
                assert add(registry, name, lambda args, name=name, **kw: name, toolset=f"set{number}")
                assert registry.dispatch(name, {}) == name
                assert name in registry.get_tool_names_for_toolset(f"set{number}")
                registry.get_definitions()
                if index % 2:
                    assert registry.deregister(name)
                    assert error_in(registry.dispatch(name, {}))["error_type"] == "unknown_tool"

        in_threads(32, work)
        expected = sorted(f"t{number}_{index}" for number in range(32) for index in range(0, each, 2))
        assert registry.get_all_tool_names() == expected

    def test_of_many_that_want_one_name_exactly_one_gets_it(self, registry: ToolRegistry) -> None:
        won = in_threads(32, lambda number: add(registry, "wanted", lambda a, **k: str(number), toolset=f"s{number}"))
        assert won.count(True) == 1
        assert registry.dispatch("wanted", {}) == str(won.index(True))
        assert registry.get_toolset_for_tool("wanted") == f"s{won.index(True)}"

    @pytest.mark.usefixtures("restless_threads")
    def test_questions_never_fail_while_tools_come_and_go(self, registry: ToolRegistry) -> None:
        for index in range(300):
            add(registry, f"steady_{index}", toolset=f"set{index % 7}")
        stop = threading.Event()

        def churn() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                for index in range(20):
                    add(registry, f"coming_{index}", toolset="coming", requires_env=("X",))
                for index in range(20):
                    registry.deregister(f"coming_{index}")

        def ask(_: int) -> None:
            for _ in range(20):
                error = error_in(registry.dispatch("steady_x", {}))
                assert error["error_type"] == "unknown_tool", error
                registry.get_toolset_requirements()
                registry.check_tool_availability()
                registry.get_toolsets()

        with ThreadPoolExecutor(2) as background:
            churning = [background.submit(churn) for _ in range(2)]
            try:
                in_threads(8, ask)
            finally:
                stop.set()
            for future in churning:
                future.result(PATIENCE_SECONDS)

    def test_a_handler_may_change_the_registry_that_calls_it(self, registry: ToolRegistry) -> None:
        def replace_itself(args: Any, **kw: Any) -> str:
            registry.deregister("chameleon")
            add(registry, "chameleon", lambda args, **kw: "after")
            return json.dumps(registry.get_all_tool_names())

        add(registry, "chameleon", replace_itself)
        assert registry.dispatch("chameleon", {}) == '["chameleon"]'
        assert registry.dispatch("chameleon", {}) == "after"

    def test_a_check_may_ask_the_registry(self) -> None:
        registry = ToolRegistry(availability=Availability(deadline=PATIENCE_SECONDS))
        add(registry, "plain", toolset="other")
        add(registry, "asks", check_fn=lambda: bool(registry.get_definitions(["plain"])))
        assert [d["function"]["name"] for d in registry.get_definitions()] == ["asks", "plain"]

    def test_a_check_that_asks_about_itself_is_bounded(self) -> None:
        registry = ToolRegistry(availability=Availability(deadline=1))
        add(registry, "plain")
        add(registry, "asks", check_fn=lambda: bool(registry.get_definitions()))
        with takes_less_than(30):
            assert "plain" in [d["function"]["name"] for d in registry.get_definitions()]


class TestScale:
    def test_a_hundred_thousand_tools_are_registered_listed_called_and_removed(self, registry: ToolRegistry) -> None:
        schema = {"description": "One of many.", "parameters": parameters(x={"type": "integer"})}
        count = 100_000
        with costs_less_than(20):
            for index in range(count):
                registry.register(f"tool_{index}", f"set_{index // 100}", schema, echo)
            assert len(registry.get_all_tool_names()) == count
            assert len(registry.get_definitions()) == count
            assert registry.dispatch("tool_99999", {"x": 1}) == '{"got": {"x": 1}}'
            assert registry.get_tool_names_for_toolset("set_500")[0] == "tool_50000"

    def test_taking_out_a_tool_costs_no_look_at_all_the_others(self, registry: ToolRegistry) -> None:
        def fill(prefix: str, count: int) -> None:
            for index in range(count):
                add(registry, f"{prefix}_{index}", toolset=f"{prefix}-{index // 10}")

        fill("steady", 50_000)
        fill("leaving", 500)
        with costs_less_than(1):
            for index in range(500):
                registry.deregister(f"leaving_{index}")
        assert len(registry.get_all_tool_names()) == 50_000

    def test_a_wrong_name_among_many_thousand_is_answered_soon(self, registry: ToolRegistry) -> None:
        for index in range(30_000):
            add(registry, f"tool_{index}")
        with costs_less_than(2):
            assert error_in(registry.dispatch("tol_5", {}))["error_type"] == "unknown_tool"
        with costs_less_than(2):
            assert error_in(registry.dispatch("x" * 1_000_000, {}))["error_type"] == "unknown_tool"
