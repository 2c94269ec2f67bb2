"""Tool modules are found by being there, and one that is broken hurts nobody."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from handrail import tools
from handrail.core import builtin
from handrail.core.builtin import discover, discover_builtin_tools
from handrail.core.registry import ToolRegistry
from handrail.model_tools import get_tool_definitions, handle_function_call
from tests.support import error_in, in_threads

HEADER = "from handrail.core.registry import registry\n"


def registration(name: str, result: str = "fine") -> str:
    return (
        f"registry.register(name={name!r}, toolset='dropped', schema={{'description': 'd', 'parameters': {{}}}},\n"
        f"                  handler=lambda args, **kw: {result!r})\n"
    )


@pytest.fixture
def folder(tmp_path: Path, default_registry: ToolRegistry) -> Path:
    """A folder of tool modules; what they register is taken back after the test."""
    made = tmp_path / "tools"
    made.mkdir()
    return made


def write(folder: Path, **files: str) -> None:
    for stem, source in files.items():
        (folder / f"{stem}.py").write_text(HEADER + source)


class TestFinding:
    def test_a_module_written_from_the_originals_documentation_works(self, folder: Path) -> None:
        (folder / "weather_tool.py").write_text(
            textwrap.dedent('''
            """Tell the weather."""
            import json
            import os

            from handrail.core.registry import registry


            def check_weather_requirements() -> bool:
                return bool(os.getenv("WEATHER_API_KEY"))


            def weather_tool(location: str, units: str = "metric") -> str:
                return json.dumps({"location": location, "units": units, "temp": 21})


            async def forecast(args, **kw):
                return json.dumps({"days": args.get("days", 1), "task": kw.get("task_id")})


            WEATHER_SCHEMA = {
                "name": "weather",
                "description": "Get current weather for a location.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "location": {"type": "string", "description": "City name"},
                        "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
                    },
                    "required": ["location"],
                },
            }

            registry.register(
                name="weather",
                toolset="weather",
                schema=WEATHER_SCHEMA,
                handler=lambda args, **kw: weather_tool(
                    location=args.get("location", ""), units=args.get("units", "metric")),
                check_fn=check_weather_requirements,
                requires_env=["WEATHER_API_KEY"],
                is_async=False,
                description="Get current weather for a location.",
                emoji="☀️",
            )
            registry.register(
                name="forecast",
                toolset="weather",
                schema={"name": "forecast", "description": "Look ahead.", "parameters": {
                    "type": "object", "properties": {"days": {"type": "integer"}}}},
                handler=forecast,
                is_async=True,
            )
            ''')
        )
        assert len(discover_builtin_tools(folder)) == 1
        refused = error_in(handle_function_call("weather", {"location": "Kyiv"}))
        assert refused["error_type"] == "unavailable"
        assert "WEATHER_API_KEY" in refused["error"]
        assert [d["function"]["name"] for d in get_tool_definitions(["weather"])] == ["forecast"]
        answer = handle_function_call("forecast", '{"days": "3"}', task_id="t-1")
        assert json.loads(answer) == {"days": 3, "task": "t-1"}

    def test_the_same_module_answers_once_its_key_is_there(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DROPPED_KEY", "x")
        source = registration("keyed").replace("handler=", "check_fn=lambda: bool(os.getenv('DROPPED_KEY')), handler=")
        write(folder, keyed_tool="import os\n" + source)
        discover_builtin_tools(folder)
        assert handle_function_call("keyed", {}) == "fine"
        assert [d["function"]["name"] for d in get_tool_definitions(["dropped"])] == ["keyed"]

    @pytest.mark.parametrize(
        "source",
        [
            registration("found"),
            "@registry.tool(toolset='dropped')\ndef found() -> str:\n    'Fine.'\n    return 'fine'\n",
            "@registry.tool(toolset='dropped')\nasync def found() -> str:\n    'Fine.'\n    return 'fine'\n",
            "registered = " + registration("found"),
            "x = 1; " + registration("found"),
            registration("found").replace("registry.register(", "registry.register (\n"),
            registration("found").replace("\n", "\r\n"),
        ],
        ids=["call", "decorator", "async decorator", "assigned", "after a semicolon", "spaced", "windows"],
    )
    def test_a_registration_at_the_top_level_is_found(
        self, folder: Path, default_registry: ToolRegistry, source: str
    ) -> None:
        write(folder, some_tool=source)
        assert len(discover_builtin_tools(folder)) == 1
        assert default_registry.dispatch("found", {}) == "fine"

    @pytest.mark.parametrize(
        "source",
        [
            "def setup():\n    " + registration("hidden").replace("\n", " "),
            "class Setup:\n    def __init__(self):\n        " + registration("hidden").replace("\n", " "),
            "TEXT = '''\n" + registration("hidden").replace("'", '"') + "'''\n",
            "# " + registration("hidden").replace("\n", " ") + "\n",
            "other = registry\n",
        ],
        ids=["function", "method", "string", "comment", "nothing"],
    )
    def test_a_module_without_one_is_not_even_imported(self, folder: Path, source: str) -> None:
        write(folder, helper=source + "\nraise SystemError('imported')\n")
        found = discover(folder)
        assert found.imported == []
        assert found.failed == {}

    def test_the_package_itself_is_not_a_tool(self, folder: Path) -> None:
        write(folder, __init__=registration("no"))
        assert discover_builtin_tools(folder) == []

    def test_only_python_files_of_the_folder_itself_are_looked_at(self, folder: Path) -> None:
        (folder / "notes.txt").write_text(HEADER + registration("no"))
        (folder / "below").mkdir()
        write(folder / "below", deep_tool=registration("no"))
        (folder / "folder_tool.py").mkdir()
        (folder / "gone_tool.py").symlink_to(folder / "nowhere")
        write(folder, good_tool=registration("good"))
        found = discover(folder)
        assert len(found.imported) == 1

    def test_a_folder_that_is_not_there_has_no_tools(self, tmp_path: Path) -> None:
        assert discover_builtin_tools(tmp_path / "nowhere") == []

    def test_modules_of_the_same_name_in_two_folders_are_both_loaded(
        self, folder: Path, tmp_path: Path, default_registry: ToolRegistry
    ) -> None:
        other = tmp_path / "other"
        other.mkdir()
        write(folder, my_tool=registration("here"))
        write(other, my_tool=registration("there"))
        discover_builtin_tools(folder)
        discover_builtin_tools(other)
        assert default_registry.dispatch("here", {}) == default_registry.dispatch("there", {}) == "fine"

    def test_looking_again_finds_the_new_file_and_the_changed_one(
        self, folder: Path, default_registry: ToolRegistry
    ) -> None:
        write(folder, first_tool="x = 1\n", helper="x = 1\n")
        assert discover_builtin_tools(folder) == []
        write(folder, second_tool=registration("second"), helper=registration("helper"))
        discover_builtin_tools(folder)
        assert {"second", "helper"} <= set(default_registry.get_all_tool_names())

    def test_looking_twice_registers_once(self, folder: Path, default_registry: ToolRegistry) -> None:
        write(folder, count_tool="import builtins\nbuiltins.counted.append(1)\n" + registration("counted"))
        import builtins

        builtins.counted = []  # type: ignore[attr-defined]
        try:
            assert discover_builtin_tools(folder) == discover_builtin_tools(folder)
            assert builtins.counted == [1]  # type: ignore[attr-defined]
        finally:
            del builtins.counted  # type: ignore[attr-defined]

    def test_every_built_in_tool_module_is_found_without_a_list(self, default_registry: ToolRegistry) -> None:
        folder = Path(tools.__file__).parent
        modules = {
            f"handrail.tools.{file.parent.name}.{file.stem}"
            for file in folder.glob("*/*.py")
            if "\nregistry.register(" in file.read_text()
        }
        found = builtin.scan_builtin()
        assert set(found.imported) == modules
        assert found.failed == {}

    def test_threads_that_look_at_once_see_the_same(self, default_registry: ToolRegistry) -> None:
        assert len({tuple(found.imported) for found in in_threads(8, lambda _: builtin.scan_builtin())}) == 1


class TestBroken:
    @pytest.mark.parametrize(
        ("source", "reason"),
        [
            (registration("no") + "import a_module_that_nobody_has\n", "a_module_that_nobody_has"),
            (registration("no") + "def broken(:\n", "SyntaxError"),
            (registration("no") + "1 / 0\n", "ZeroDivisionError"),
            (registration("no") + "raise SystemExit(3)\n", "SystemExit"),
            (registration("no") + "\0", "null"),
            ("registry.register(name='no', toolset='t', schema='x', handler=print)\n", "RegistrationError"),
        ],
        ids=["missing dependency", "syntax", "error", "exit", "null byte", "no tool"],
    )
    def test_it_is_reported_with_the_reason_and_the_others_load(
        self,
        folder: Path,
        default_registry: ToolRegistry,
        caplog: pytest.LogCaptureFixture,
        source: str,
        reason: str,
    ) -> None:
        write(folder, a_good_tool=registration("a_good"), broken_tool=source, z_good_tool=registration("z_good"))
        found = discover(folder)
        assert len(found.imported) == 2
        assert list(found.failed) == ["broken_tool.py"]
        assert reason in found.failed["broken_tool.py"]
        warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert any("broken_tool.py" in line and reason in line for line in warned)
        assert {"a_good", "z_good"} <= set(default_registry.get_all_tool_names())
        assert default_registry.get_entry("no") is None

    def test_a_tool_that_it_had_replaced_is_back(self, folder: Path, default_registry: ToolRegistry) -> None:
        write(folder, a_tool=registration("shared", "good"), b_tool=registration("shared", "bad") + "1 / 0\n")
        discover(folder)
        assert default_registry.dispatch("shared", {}) == "good"

    def test_it_can_be_repaired_and_loaded(self, folder: Path, default_registry: ToolRegistry) -> None:
        write(folder, my_tool=registration("mended") + "1 / 0\n")
        assert discover(folder).failed
        write(folder, my_tool=registration("mended"))
        assert discover(folder).failed == {}
        assert default_registry.dispatch("mended", {}) == "fine"

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"x": 1}', "\x00", '{"%s": [1, 2]}'])
    def test_a_broken_cache_is_no_obstacle(self, folder: Path, home: Path, content: str) -> None:
        write(folder, my_tool=registration("cached"))
        cache = home / "cache" / "discovery.json"
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(content.replace("%s", str(folder / "my_tool.py")))
        assert len(discover_builtin_tools(folder)) == 1

    def test_a_home_that_cannot_be_written_is_no_obstacle(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        blocked = tmp_path / "a file"
        blocked.write_text("")
        monkeypatch.setenv("HANDRAIL_HOME", str(blocked))
        write(folder, my_tool=registration("homeless"))
        assert len(discover_builtin_tools(folder)) == 1


IMPORT_EVERYTHING = """
import sys, threading
import socket
def refuse(*args, **kw): raise SystemError("network")
socket.socket.connect = refuse
import handrail
import handrail.model_tools
assert not list(home.iterdir()), list(home.iterdir())
handrail.model_tools.get_tool_definitions(quiet_mode=True)
heavy = {"pydantic", "typer", "rich", "ruamel.yaml", "requests", "httpx", "openai", "mcp", "playwright", "PIL"}
print(sorted(heavy & set(sys.modules)))
print([thread.name for thread in threading.enumerate()])
"""


class TestCheap:
    def test_importing_touches_no_disk_no_network_and_nothing_heavy(self, tmp_path: Path) -> None:
        code = f"from pathlib import Path\nhome = Path({str(tmp_path)!r})\n{IMPORT_EVERYTHING}"
        environment = {**os.environ, "HANDRAIL_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ["[]", "['MainThread']"]
