"""The recipes of CONTRIBUTING.md, performed as they are written there, in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .support import configure

ROOT = Path(__file__).parent.parent
COPIED = ("src", "tests", "scripts", "docs", "pyproject.toml", "README.md", "ARCHITECTURE.md")
# What a contract test is called when it is about the recipe's thing: the checks of a kind are chosen by these words.
CONTRACTS = {
    "tests/contract/test_every_tool.py": "roll_dice",
    "tests/contract/test_environments.py": "nice and codes or test_every_backend",
    "tests/judge/rules/test_rules.py": "deploy.frobctl",
    "tests/contract/test_every_platform.py": "notebook",
    "tests/contract/test_every_provider.py": "parrot",
    "tests/cli/test_cli_streams.py": "hello",
    "tests/plugins/test_hook_manager.py": "called_by_somebody",
}
HOOKS = "src/handrail/plugins/hook_specs.py"
CHAT = """
import asyncio, sys
from pathlib import Path
from handrail.model_tools import default, reset
from handrail.serve.gateway.gateway import Gateway
from handrail.serve.shared_state import Served

async def chat(folder: Path) -> None:
    served = Served(default())
    gateway = Gateway(served)
    code = gateway._store.new_code()

    async def say(text: str, until: str) -> None:
        with (folder / "in.txt").open("a") as file:
            file.write(text + "\\n")
        while not (folder / "out.txt").exists() or until not in (folder / "out.txt").read_text():
            await asyncio.sleep(0.02)

    async with served.running(), gateway.running():
        while not gateway._store.cursor("notes"):
            await asyncio.sleep(0.02)
        await say(code, "Welcome")
        await say("good morning", "You said: good morning")
    served.keys.close()
    reset()

asyncio.run(asyncio.wait_for(chat(Path(sys.argv[1])), 60))
"""


class Recipe(NamedTuple):
    """The file that a section of CONTRIBUTING.md names first, and the code blocks of that section."""

    path: str
    blocks: list[str]


def _recipes() -> dict[str, Recipe]:
    found = {}
    for section in (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        blocks = re.findall(r"```(?:python|ini)\n(.*?)```", body, re.DOTALL)
        if title.startswith("Add "):
            text = body.partition("```")[0]
            paths: list[str] = re.findall(r"`((?:src/handrail|plugins)/[\w/]+\.(?:py|rules))`", text)
            found[title.split(" ", 2)[2]] = Recipe(paths[-1], blocks)
    return found


RECIPES = _recipes()


class Copy:
    """A copy of the repository, with every recipe performed, and a home for the `handrail` in it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "repository", folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        for name in COPIED:
            source, target = ROOT / name, self.root / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("console", "reference", "*.png")
                shutil.copytree(source, target, ignore=ignored, symlinks=True)
            else:
                shutil.copy(source, target)
        for recipe in RECIPES.values():
            top = self.home if recipe.path.startswith("plugins/") else self.root
            path = top / recipe.path
            assert not path.exists(), f"{recipe.path} is a file already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(recipe.blocks[0])
        hooks, end = self.root / HOOKS, "\n\nHOOK_NAMES ="
        hooks.write_text(hooks.read_text().replace(end, f"\n{RECIPES['hook'].blocks[1]}{end}"))
        self.audit = folder / "audit.txt"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL", "PYTEST"))},
            "PYTHONPATH": str(self.root / "src"),
            "HANDRAIL_HOME": str(self.home),
            "AUDIT_FILE": str(self.audit),
        }

    def python(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def handrail(self, *arguments: str, **env: str) -> str:
        ran = self.python("-m", "handrail", *arguments, **env)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("recipes"))


@pytest.fixture(scope="module")
def contracts(copy: Copy) -> dict[str, list[tuple[str, str]]]:
    """How each chosen test of the copy ended, by its file."""
    words = " or ".join(f"({words})" for words in CONTRACTS.values())
    options = ("-q", "-rA", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers -p no:schemathesis")
    ran = copy.python("-m", "pytest", *options, *CONTRACTS, "-k", words)
    ended: dict[str, list[tuple[str, str]]] = {}
    for outcome, path, name in re.findall(r"^(\w+) (tests/[\w/]+\.py)::(\S+)", ran.stdout, re.MULTILINE):
        ended.setdefault(path, []).append((name, outcome))
    assert ended, ran.stdout + ran.stderr
    return ended


def test_there_is_a_recipe_for_each_thing_that_can_be_added() -> None:
    things = ["tool", "backend", "rule about commands", "hook", "CLI command", "chat platform", "model provider"]
    assert list(RECIPES) == things


def test_a_tool_is_listed_and_can_be_called(copy: Copy) -> None:
    assert "roll_dice" in copy.handrail("tools", "--toolset", "games")
    rolls = json.loads(copy.handrail("call", "roll_dice", "count=3", "sides=2", "--json"))["rolls"]
    assert len(rolls) == 3
    assert set(rolls) <= {1, 2}


def test_a_backend_is_listed_and_runs_commands(copy: Copy) -> None:
    assert "✓ It starts" in copy.handrail("env", "check", "nice")
    printed = copy.handrail("call", "terminal", "command=nice", "--json", HANDRAIL_TERMINAL_BACKEND="nice")
    assert json.loads(printed)["output"].strip() == "19"


def test_a_rule_is_found_however_the_command_is_written(copy: Copy) -> None:
    ran = copy.python("-m", "handrail", "check", 'bash -c "frobctl push -qf"')
    assert ran.returncode == 3
    assert "deploy.frobctl" in ran.stdout


def test_a_hook_is_called(copy: Copy) -> None:
    copy.audit.unlink(missing_ok=True)
    (trust,) = re.findall(r"`handrail (plugins trust \w+)`", (ROOT / "CONTRIBUTING.md").read_text())
    copy.handrail(*trust.split())
    copy.handrail("call", "roll_dice", "count=1")
    assert copy.audit.read_text() == "roll_dice ok\n"


def test_a_hook_that_is_declared_can_be_implemented_and_invoked(copy: Copy) -> None:
    (call,) = re.findall(r"`(hooks\.invoke\(.*?\))`", (ROOT / "CONTRIBUTING.md").read_text())
    code = f"""
from handrail.plugins import hookimpl, hooks
class Counter:
    @hookimpl
    def on_tools_listed(self, names):
        return len(names)
hooks.register(Counter())
names, platform = ["a", "b"], "cli"
print({call})
"""
    ran = copy.python("-c", code)
    assert (ran.stdout, ran.stderr) == ("[2]\n", "")


def test_a_hook_that_nobody_calls_is_noticed(contracts: dict[str, list[tuple[str, str]]]) -> None:
    assert contracts["tests/plugins/test_hook_manager.py"] == [("test_every_hook_is_called_by_somebody", "FAILED")]


def test_a_command_answers_and_has_help(copy: Copy) -> None:
    assert copy.handrail("hello", "Ada") == "Hello Ada\n"
    assert re.search(r"^  hello +Greet somebody", copy.handrail("--help"), re.MULTILINE)
    assert "Who is greeted." in copy.handrail("hello", "--help")


def test_only_the_module_of_the_called_command_is_imported(copy: Copy) -> None:
    code = """
import sys
from handrail.cli import main
sys.argv = ["handrail", "hello", "Ada"]
try:
    main()
except SystemExit:
    print(*(name for name in sys.modules if name.startswith("handrail.cli.commands.")))
"""
    assert copy.python("-c", code).stdout.split() == ["Hello", "Ada", "handrail.cli.commands.hello"]


def test_a_platform_sends(copy: Copy, tmp_path: Path) -> None:
    target = {"kind": "notebook", "file": str(tmp_path / "notes.txt")}
    configure(copy.home, json.dumps({"messages": {"targets": {"notes": target}}}))
    try:
        copy.handrail("call", "send_message", "target=notes", "message=The build is green.")
    finally:
        (copy.home / "config.yaml").unlink()
    assert (tmp_path / "notes.txt").read_text() == "The build is green.\n"


def test_a_platform_chats_with_an_agent_whose_model_is_of_the_new_provider(copy: Copy, tmp_path: Path) -> None:
    account = {"kind": "notebook", "folder": str(tmp_path)}
    configure(copy.home, json.dumps({"gateway": {"accounts": {"notes": account}}}))
    try:
        ran = copy.python("-c", CHAT, str(tmp_path), HANDRAIL_MODEL="parrot:polly")
    finally:
        (copy.home / "config.yaml").unlink()
    assert ran.returncode == 0, ran.stderr


def test_a_provider_answers_and_lists_its_models(copy: Copy) -> None:
    assert copy.handrail("ask", "--model", "parrot:polly", "hello") == "You said: hello\n"
    assert "polly" in copy.handrail("model", "list", HANDRAIL_MODEL="parrot:polly")


@pytest.mark.parametrize("path", [path for path in CONTRACTS if "plugins" not in path])
def test_the_contract_of_its_kind_accepts_it(contracts: dict[str, list[tuple[str, str]]], path: str) -> None:
    ended = contracts.get(path)
    assert ended, f"no test of {path} is about it"
    assert [name for name, outcome in ended if outcome != "PASSED"] == []


def test_what_the_recipes_add_is_clean_code_in_its_layer(copy: Copy) -> None:
    paths = (recipe.path for recipe in RECIPES.values())
    added = [HOOKS, *(path for path in paths if path.startswith("src/") and path.endswith(".py"))]
    for tool in (["ruff", "check", "--no-cache", *added], ["ruff", "format", "--check", "--no-cache", *added]):
        ran = copy.python("-m", *tool)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = copy.python(
        "-c", "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
