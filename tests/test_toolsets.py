"""Named bundles of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handrail import resolve_toolset
from handrail.core.registry import ToolRegistry
from handrail.errors import UnknownToolset
from handrail.model_tools import default, get_tool_definitions
from handrail.settings.sections import ToolsetConfig
from handrail.toolsets import COMPOSITES, Toolsets
from tests.support import add, costs_less_than


def sets(registry: ToolRegistry, **custom: dict[str, tuple[str, ...]]) -> Toolsets:
    return Toolsets(registry, {name: ToolsetConfig(**fields) for name, fields in custom.items()})  # type: ignore[arg-type]


@pytest.fixture
def registry(registry: ToolRegistry) -> ToolRegistry:
    add(registry, "read_file", toolset="file", read_only=True)
    add(registry, "write_file", toolset="file")
    add(registry, "terminal", toolset="terminal")
    add(registry, "web_search", toolset="web", read_only=True)
    add(registry, "dice", toolset="games")
    return registry


class TestResolving:
    def test_a_leaf_exists_because_tools_name_it(self, registry: ToolRegistry) -> None:
        toolsets = sets(registry)
        assert toolsets.resolve("games") == ["dice"]
        add(registry, "coin", toolset="games")
        assert toolsets.resolve("games") == ["coin", "dice"]
        registry.deregister("dice")
        registry.deregister("coin")
        with pytest.raises(UnknownToolset):
            toolsets.resolve("games")

    def test_a_built_in_leaf_without_tools_is_empty_not_unknown(self) -> None:
        toolsets = Toolsets(ToolRegistry())
        for leaf in {part for bundle in COMPOSITES.values() for part in bundle.includes}:
            assert toolsets.resolve(leaf) == []

    def test_everything_has_two_names(self, registry: ToolRegistry) -> None:
        everything = ["dice", "read_file", "terminal", "web_search", "write_file"]
        assert sets(registry).resolve("all") == sets(registry).resolve("*") == everything

    def test_a_set_of_ones_own_lists_tools_and_includes_sets(self, registry: ToolRegistry) -> None:
        toolsets = sets(registry, mine={"tools": ("dice",), "includes": ("web",)})
        assert toolsets.resolve("mine") == ["dice", "web_search"]
        assert "mine" in toolsets.names()

    @pytest.mark.parametrize("everything", ["all", "*"])
    def test_a_set_may_include_everything(self, registry: ToolRegistry, everything: str) -> None:
        assert sets(registry, mine={"includes": (everything,)}).resolve("mine") == sets(registry).resolve("all")

    def test_a_cycle_ends(self, registry: ToolRegistry) -> None:
        toolsets = sets(
            registry, a={"includes": ("b",), "tools": ("dice",)}, b={"includes": ("a", "web")}, c={"includes": ("c",)}
        )
        assert toolsets.resolve("a") == toolsets.resolve("b") == ["dice", "web_search"]
        assert toolsets.resolve("c") == []

    def test_a_diamond_has_each_tool_once(self, registry: ToolRegistry) -> None:
        toolsets = sets(
            registry, top={"includes": ("l", "r")}, l={"includes": ("web",)}, r={"includes": ("web", "games")}
        )
        assert toolsets.resolve("top") == ["dice", "web_search"]

    @pytest.mark.parametrize("order", [("safe", "file"), ("file", "safe")])
    def test_what_one_way_keeps_out_another_way_still_brings(
        self, registry: ToolRegistry, order: tuple[str, ...]
    ) -> None:
        assert sets(registry, mine={"includes": order}).resolve("mine") == ["read_file", "web_search", "write_file"]

    def test_a_long_chain_and_a_dense_graph_are_resolved_soon(self, registry: ToolRegistry) -> None:
        dense = {f"s{n}": {"includes": tuple(f"s{m}" for m in range(n + 1, 60))} for n in range(59)}
        dense["s59"] = {"includes": ("games",)}
        chain: dict[str, Any] = {f"c{n}": {"includes": (f"c{n + 1}",)} for n in range(900)}
        chain["c900"] = {"includes": ("games",)}
        with costs_less_than(20):
            assert sets(registry, **dense).resolve("s0") == ["dice"]
            assert sets(registry, **chain).resolve("c0") == ["dice"]

    @pytest.mark.parametrize(
        ("wrong", "near"), [("fiel", "file"), ("terminl", "terminal"), ("handrail-telegrm", "handrail-telegram")]
    )
    def test_an_unknown_name_suggests_the_nearest(self, registry: ToolRegistry, wrong: str, near: str) -> None:
        with pytest.raises(UnknownToolset, match=f"did you mean '{near}'"):
            sets(registry).resolve(wrong)

    def test_an_unknown_name_inside_a_set_is_told_with_the_set(self, registry: ToolRegistry) -> None:
        with pytest.raises(UnknownToolset, match=r"web_serch.*web_search"):
            sets(registry, mine={"tools": ("web_serch",)}).resolve("mine")
        with pytest.raises(UnknownToolset, match="gmes"):
            sets(registry, mine={"includes": ("gmes",)}).resolve("mine")

    def test_what_is_resolved_is_the_callers_own(self, registry: ToolRegistry) -> None:
        toolsets = sets(registry)
        toolsets.resolve("file").clear()
        assert toolsets.resolve("file") == ["read_file", "write_file"]


class TestChoosing:
    def test_enabled_sets_minus_disabled_ones(self, registry: ToolRegistry) -> None:
        toolsets = sets(registry)
        assert toolsets.select(None) == toolsets.resolve("all")
        assert toolsets.select(["file", "web"], ["file"]) == ["web_search"]
        assert toolsets.select([]) == []
        with pytest.raises(UnknownToolset):
            toolsets.select(None, ["fiel"])

    def test_information_about_a_set(self, registry: ToolRegistry) -> None:
        assert sets(registry).info("safe")["tools"] == ["read_file", "web_search"]
        assert sets(registry).info("file_tools")["name"] == "file"
        assert sets(registry).info("games")["composite"] is False


class TestPresets:
    @pytest.mark.parametrize(
        "platform", "cli telegram discord slack matrix email web webhook cron acp mcp api-server".split()
    )
    def test_every_platform_has_one_under_both_names(self, registry: ToolRegistry, platform: str) -> None:
        toolsets = sets(registry)
        assert toolsets.resolve(f"handrail-{platform}") == toolsets.resolve(f"hermes-{platform}")

    def test_a_person_at_a_terminal_has_the_core(self, registry: ToolRegistry) -> None:
        assert {"read_file", "write_file", "terminal", "web_search"} <= set(sets(registry).resolve("handrail-cli"))

    def test_untrusted_input_cannot_touch_the_machine(self, registry: ToolRegistry) -> None:
        for leaf in ("file", "terminal", "code_execution", "delegation", "cronjob", "browser", "skills", "memory"):
            add(registry, f"{leaf}_probe", toolset=leaf)
        assert sets(registry).resolve("handrail-webhook") == ["web_search"]

    def test_a_scheduled_run_has_nobody_to_ask(self, registry: ToolRegistry) -> None:
        add(registry, "clarify", toolset="clarify")
        assert "clarify" in sets(registry).resolve("handrail-cli")
        assert "clarify" not in sets(registry).resolve("handrail-cron")

    def test_the_safe_set_has_nothing_that_runs_or_writes(self, registry: ToolRegistry) -> None:
        assert sets(registry).resolve("safe") == ["read_file", "web_search"]
        add(registry, "web_post", toolset="web")
        assert "web_post" not in sets(registry).resolve("safe")

    @pytest.mark.parametrize("name", ["coding", "safe", "debugging", "research"])
    def test_the_special_sets_are_there_and_say_what_they_are_for(self, registry: ToolRegistry, name: str) -> None:
        assert sets(registry).resolve(name)
        assert COMPOSITES[name].description

    def test_every_set_that_a_composite_includes_is_known(self, registry: ToolRegistry) -> None:
        for name in COMPOSITES:
            sets(registry).resolve(name)


class TestOldNames:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("web_tools", "web"),
            ("terminal_tools", "terminal"),
            ("file_tools", "file"),
            ("browser_tools", "browser"),
            ("vision_tools", "vision"),
            ("image_tools", "image_gen"),
            ("skills_tools", "skills"),
            ("cronjob_tools", "cronjob"),
            ("tts_tools", "tts"),
            ("moa_tools", "moa"),
            ("rl_tools", "rl"),
        ],
    )
    def test_they_still_work(self, registry: ToolRegistry, old: str, new: str) -> None:
        add(registry, "probe", toolset=new)
        assert "probe" in sets(registry).resolve(old)

    def test_an_mcp_server_is_found_by_its_short_name(self, registry: ToolRegistry) -> None:
        add(registry, "mcp__github__search", toolset="mcp-github")
        registry.register_toolset_alias("github", "mcp-github")
        assert sets(registry).resolve("mcp-github") == sets(registry).resolve("github") == ["mcp__github__search"]

    def test_an_alias_does_not_hide_a_set_of_the_same_name(self, registry: ToolRegistry) -> None:
        add(registry, "mcp__web__fetch", toolset="mcp-web")
        registry.register_toolset_alias("web", "mcp-web")
        assert sets(registry).resolve("web") == ["web_search"]


class TestDefault:
    def test_the_public_function_knows_the_built_in_tools(self) -> None:
        assert "read_file" in resolve_toolset("file")
        assert resolve_toolset("file") == resolve_toolset("file_tools") == sorted(resolve_toolset("file"))

    def test_sets_of_the_configuration_are_known_everywhere(self, home: Path) -> None:
        (home / "config.yaml").write_text("toolsets:\n  reading:\n    tools: [read_file]\n    includes: [results]\n")
        assert resolve_toolset("reading") == ["read_file", "read_result"]
        assert [d["function"]["name"] for d in get_tool_definitions(["reading"])] == ["read_file", "read_result"]


@pytest.mark.parametrize(("preset", "most"), [("handrail-cli", 30_000), ("coding", 16_000)])
def test_what_a_preset_tells_a_model_is_short_also_when_everything_can_be_used(
    preset: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default().runtime.registry.availability, "unavailable", lambda tools: {})
    told = get_tool_definitions([preset], quiet_mode=True)
    assert len(json.dumps(told)) <= most
