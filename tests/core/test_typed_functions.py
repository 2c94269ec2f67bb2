"""A typed function is a tool: its signature and docstring are the schema."""

from __future__ import annotations

import asyncio
import json
import warnings
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from handrail.core.registry import ToolEntry, ToolRegistry
from handrail.errors import RegistrationError
from handrail.runtime.dispatch import Runtime
from handrail.types import ToolContext
from tests.support import error_in


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    amount: int = 1


class Page(BaseModel):
    title: str


def properties(registry: ToolRegistry, name: str) -> dict[str, Any]:
    schema = registry.get_schema(name)
    assert schema is not None
    return schema["parameters"]["properties"]  # type: ignore[no-any-return]


class TestSchema:
    def test_it_comes_from_the_signature_and_the_docstring(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="games", emoji="🎲", read_only=True, timeout=5)
        def roll(sides: int, times: int = 1, colour: Literal["red", "blue"] = "red") -> dict[str, Any]:
            """Roll dice.

            They are fair.

            Args:
                sides: How many sides a die has.
                times: How often.
            """
            return {"sides": sides, "times": times, "colour": colour}

        entry = registry.get_entry("roll")
        assert isinstance(entry, ToolEntry)
        assert (entry.toolset, entry.emoji, entry.read_only, entry.timeout) == ("games", "🎲", True, 5)
        assert entry.description == "Roll dice.\n\nThey are fair."
        assert entry.schema["parameters"] == {
            "type": "object",
            "properties": {
                "sides": {"type": "integer", "description": "How many sides a die has."},
                "times": {"type": "integer", "default": 1, "description": "How often."},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            },
            "required": ["sides"],
            "additionalProperties": False,
        }
        assert roll(6) == {"sides": 6, "times": 1, "colour": "red"}, "the function itself stays a function"

    def test_name_and_description_can_be_given(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="t", name="other_name", description="Other words.")
        def function() -> str:
            """Own words."""
            return ""

        assert registry.get_schema("other_name")["description"] == "Other words."  # type: ignore[index]
        assert registry.get_entry("function") is None

    def test_a_description_in_the_annotation_is_kept(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="t")
        def function(count: Annotated[int, Field(ge=1, le=9, description="From one to nine.")]) -> str:
            """Count."""
            return str(count)

        assert properties(registry, "function")["count"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": 9,
            "description": "From one to nine.",
        }

    def test_an_argument_called_title_is_kept_and_pydantics_titles_are_not(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="t")
        def function(title: str, page: Page | None = None, start: dict[str, str] = {"title": "x"}) -> str:  # noqa: B006  this is what is tested
            """Write."""
            return title

        found = properties(registry, "function")
        assert found["title"] == {"type": "string"}
        assert found["start"]["default"] == {"title": "x"}
        schema = registry.get_schema("function")
        assert schema is not None
        assert schema["parameters"]["$defs"]["Page"]["properties"] == {"title": {"type": "string"}}

    @pytest.mark.parametrize("style", ["google", "numpy", "rest"])
    def test_the_usual_docstring_styles_are_read(self, registry: ToolRegistry, style: str) -> None:
        def function(path: str) -> str:
            return path

        function.__doc__ = {
            "google": "Read.\n\nArgs:\n    path: Where it is.\n",
            "numpy": "Read.\n\nParameters\n----------\npath : str\n    Where it is.\n",
            "rest": "Read.\n\n:param path: Where it is.\n",
        }[style]
        registry.tool(toolset="t")(function)
        assert properties(registry, "function")["path"]["description"] == "Where it is."
        assert registry.get_schema("function")["description"] == "Read."  # type: ignore[index]

    def test_names_that_pydantic_uses_itself_are_ordinary_arguments(self, registry: ToolRegistry) -> None:
        def function(
            schema: str, json: str, copy: str, model_name: str, model_dump: str, validate: str, construct: str
        ) -> list[str]:
            """Odd names."""
            return [schema, json, copy, model_name, model_dump, validate, construct]

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            registry.tool(toolset="t")(function)
        names = ["schema", "json", "copy", "model_name", "model_dump", "validate", "construct"]
        assert list(properties(registry, "function")) == names
        assert json.loads(registry.dispatch("function", {name: name for name in names})) == names  # type: ignore[arg-type]

    @pytest.mark.parametrize("odd", ["model_config", "_private"])
    def test_a_name_that_cannot_be_an_argument_is_refused_by_name_or_works(
        self, registry: ToolRegistry, odd: str
    ) -> None:
        namespace: dict[str, Any] = {}
        exec(f"def function({odd}: str) -> str:\n    'd'\n    return {odd}\n", namespace)
        try:
            registry.tool(toolset="t")(namespace["function"])
        except RegistrationError:
            return
        assert registry.dispatch("function", {odd: "x"}) == "x"

    def test_arguments_without_a_name_are_refused(self, registry: ToolRegistry) -> None:
        def star(*args: str) -> str:
            return ""

        def double_star(**kwargs: str) -> str:
            return ""

        def positional(x: str, /) -> str:
            return x

        for function in (star, double_star, positional):
            with pytest.raises(RegistrationError, match=function.__name__):
                registry.tool(toolset="t")(function)

    def test_types_that_no_schema_can_say_are_refused_by_tool(self, registry: ToolRegistry) -> None:
        class Opaque:
            pass

        def function(x: Opaque) -> str:  # type: ignore[valid-type]
            return ""

        function.__annotations__["x"] = Opaque
        with pytest.raises(RegistrationError, match="function"):
            registry.tool(toolset="t")(function)

    def test_annotations_that_cannot_be_resolved_are_refused_by_tool(self, registry: ToolRegistry) -> None:
        def function(x: NotDefinedAnywhere) -> str:  # type: ignore[name-defined]  # noqa: F821  this is what is tested
            return ""

        with pytest.raises(RegistrationError, match="NotDefinedAnywhere"):
            registry.tool(toolset="t")(function)

    def test_the_schema_is_the_same_as_one_written_by_hand(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="t")
        def typed(x: int) -> str:
            """Double."""
            return str(x * 2)

        registry.register(
            name="by_hand",
            toolset="t",
            schema={
                "description": "Double.",
                "parameters": {
                    "type": "object",
                    "properties": {"x": {"type": "integer"}},
                    "required": ["x"],
                    "additionalProperties": False,
                },
            },
            handler=lambda args, **kw: str(args["x"] * 2),
        )
        first, second = registry.get_schema("typed"), registry.get_schema("by_hand")
        assert first is not None
        assert second is not None
        assert first["parameters"] == second["parameters"]
        assert registry.dispatch("typed", {"x": 2}) == registry.dispatch("by_hand", {"x": 2}) == "4"


class TestCalling:
    def test_the_function_gets_real_values(self, registry: ToolRegistry, runtime: Runtime) -> None:
        seen: list[Any] = []

        @registry.tool(toolset="t")
        def function(when: date, path: Path, colour: Colour, items: list[Item], note: str | None = None) -> str:
            """Take."""
            seen.extend([when, path, colour, items, note])
            return "ok"

        arguments = {"when": "2024-02-29", "path": "/x", "colour": "blue", "items": [{"name": "a"}]}
        assert runtime.handle("function", arguments) == "ok"
        assert seen == [date(2024, 2, 29), Path("/x"), Colour.BLUE, [Item(name="a", amount=1)], None]

    def test_an_async_function_is_awaited(self, registry: ToolRegistry, runtime: Runtime) -> None:
        @registry.tool(toolset="t")
        async def wait(x: int) -> dict[str, int]:
            """Wait."""
            await asyncio.sleep(0)
            return {"x": x}

        entry = registry.get_entry("wait")
        assert entry is not None
        assert entry.is_async
        assert runtime.handle("wait", {"x": 1}) == '{"x": 1}'
        assert asyncio.run(runtime.ahandle("wait", {"x": 2})) == '{"x": 2}'

    @pytest.mark.parametrize("optional", [False, True])
    def test_the_context_comes_in_by_its_type_and_is_not_in_the_schema(
        self, registry: ToolRegistry, runtime: Runtime, optional: bool
    ) -> None:
        def required(x: int, here: ToolContext) -> str:
            """Where."""
            return f"{here.tool} {here.task_id}"

        def defaulted(x: int, here: ToolContext | None = None) -> str:
            """Where."""
            assert here is not None
            return f"{here.tool} {here.task_id}"

        registry.tool(toolset="t", name="where")(defaulted if optional else required)
        assert list(properties(registry, "where")) == ["x"]
        assert runtime.handle("where", {"x": 1}, task_id="t-9") == "where t-9"

    def test_an_argument_of_ones_own_may_be_called_context(self, registry: ToolRegistry, runtime: Runtime) -> None:
        @registry.tool(toolset="t")
        def grep(pattern: str, context: int = 0, args: str = "") -> str:
            """Find."""
            return f"{pattern} {context} {args}"

        assert runtime.handle("grep", {"pattern": "x", "context": 3, "args": "y"}) == "x 3 y"

    def test_a_default_is_not_shared_between_calls(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="t")
        def collect(x: int, into: list[int] = []) -> list[int]:  # noqa: B006  this is what is tested
            """Collect."""
            into.append(x)
            return into

        assert registry.dispatch("collect", {"x": 1}) == "[1]"
        assert registry.dispatch("collect", {"x": 2}) == "[2]"

    def test_what_only_the_types_know_to_be_wrong_names_the_argument(
        self, registry: ToolRegistry, runtime: Runtime
    ) -> None:
        @registry.tool(toolset="t")
        def plan(when: date) -> str:
            """Plan."""
            return when.isoformat()

        error = error_in(runtime.handle("plan", {"when": "the day after tomorrow"}))
        assert error["error_type"] == "invalid_arguments"
        assert "when" in error["error"]

    def test_a_model_is_coerced_like_anything_else(self, registry: ToolRegistry, runtime: Runtime) -> None:
        @registry.tool(toolset="t")
        def order(item: Item, tags: list[str]) -> str:
            """Order."""
            return f"{item.amount} {tags}"

        assert (
            runtime.handle("order", '{"item": "{\\"name\\": \\"a\\", \\"amount\\": \\"3\\"}", "tags": "x"}')
            == "3 ['x']"
        )

    def test_registering_takes_part_in_collisions(self, registry: ToolRegistry) -> None:
        @registry.tool(toolset="one")
        def same() -> str:
            """First."""
            return "first"

        @registry.tool(toolset="two", name="same")
        def other() -> str:
            """Second."""
            return "second"

        assert registry.dispatch("same", {}) == "first"


def test_a_tool_that_says_nothing_about_itself_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()

    @registry.tool
    def silent(x: int) -> int:
        return x

    @registry.tool(description="Doubles a number.")
    def described(x: int) -> int:
        return x * 2

    assert [record.getMessage() for record in caplog.records] == [
        "tool 'silent' has no docstring: a model cannot know what it is for"
    ]
