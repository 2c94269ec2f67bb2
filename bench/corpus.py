"""Figures of a corpus of ordinary commands: they end in `contained` as they do in `open`, with few questions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.app import Handrail
from handrail.approval.policy import Mode
from handrail.environments.protection import caches
from handrail.protocols import ApprovalRequest, Decision
from handrail.settings.schema import Config

from .harness import Figure

_COMMANDS = Path(__file__).with_name("commands.txt")
_ROUNDS = 8
_FILES = {
    "README.md": "# Shop\n\nSells things.\n",
    "CHANGES.md": "- first\n",
    "Makefile": "all: build/app\nbuild/app: src/main.c\n\tmkdir -p build && gcc -o $@ $<\ntest: all\n\t./build/app\nclean:\n"
    "\trm -rf build && mkdir build\ninstall: all\n\tmkdir -p $(PREFIX)/bin && cp build/app $(PREFIX)/bin\n",
    "scripts/build.sh": "#!/bin/sh\nset -e\nmkdir -p build\ngcc -c src/main.c -o build/main.o\n",
    "src/main.c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n',
    "src/broken.c": "int main(void) { return nothing; }\n",
    "src/shop/__init__.py": "",
    "src/shop/__main__.py": "print('shop')\n",
    "src/shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": "import sys, unittest\nsys.path.insert(0, 'src')\nfrom shop.cart import total\n\n\n"
    "class Test(unittest.TestCase):\n    def test(self):\n        self.assertEqual(total([1, 2]), 3)\n",
}


def figures() -> Iterator[Figure]:
    home = tempfile.mkdtemp(prefix="handrail-corpus-", dir=_outside())
    try:
        contained, held, told, unasked = _run(home, "contained", Mode.AUTO)
        plain, texts, *_ = _run(home, "open", Mode.ASK)
    finally:
        shutil.rmtree(home)
    count = len(plain)
    different = [command for command, code in contained.items() if plain[command] != code]
    for command in different:
        print(f"  another exit code: {contained[command]}, {plain[command]} in open: {command[-100:]!r}")
    share = len(different) / count
    yield Figure(f"other exit codes, of {count} commands", str(len(different)), str(count), share, 0.02)
    yield Figure("questions, to asking by text alone", str(held), str(texts), held / max(texts, 1), 0.2)
    yield Figure("  caused by a printed 'Permission denied'", str(told), "1", told, 0)
    yield Figure("  changes outside that nobody was asked about", str(unasked), "1", unasked, 0)


def _run(home: str, profile: str, mode: Mode) -> tuple[dict[str, int | None], int, int, int]:
    """Exit codes by command, the number of questions, how many of those were about a command that only prints, and how many
    commands changed or removed a file outside of the project without a question."""
    work, asked = Path(home, profile), []  # type: Path, list[str]
    _make_project(work)
    for name in "abcd":
        for number in range(_ROUNDS):
            (Path(home) / f"notes-{number}-{name}").write_text("kept\n")
    environment = {"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}

    class Person:
        name = "person"

        def decide(self, request: ApprovalRequest) -> Decision:
            asked.append(request.text)
            return Decision.ONCE

    codes: dict[str, int | None] = {}
    unasked = 0
    os.environ["HOME"], before = home, os.environ.get("HOME", "/")
    try:
        with Handrail(Config(), approver=Person()) as app:
            app.gate.modes.default = mode
            app.register_task_env_overrides("t", cwd=str(work), profile=profile, env=environment)

            def run(command: str) -> int | None:
                answer: Any = app.handle_function_call("terminal", {"command": command, "timeout": 60}, "t")
                found: dict[str, Any] = json.loads(answer)
                return found.get("exit_code")

            outside = _outside_files(work)
            for number, command in enumerate(_commands()):
                known = len(asked)
                codes[f"{number:04} {command}"] = run(command)
                now = _outside_files(work)
                if any(now.get(path) != stamp for path, stamp in outside.items()) and len(asked) == known:
                    unasked += 1
                    print(f"  changed outside without a question: {command[-100:]!r}")
                outside = now
            questions = len(asked)
            run("echo 'bash: /etc/shadow: Permission denied' >&2; false")
            told = len(asked) - questions if profile == "contained" else 0
    finally:
        os.environ["HOME"] = before
    return codes, questions, told, unasked


def _outside_files(work: Path) -> dict[str, tuple[int, int]]:
    """What is in the home beside the project, without caches."""
    inner = (f"{work}/", *(f"{work.parent}{cache[1:]}" for cache in caches()))
    found = (path for path in work.parent.rglob("*") if path.is_file() and not str(path).startswith(inner))
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def _commands() -> Iterator[str]:
    lines = [line for line in _COMMANDS.read_text().splitlines() if not line.startswith("#")]
    for number in range(_ROUNDS):
        for line in lines:
            command = line.replace("{{", "\0").replace("}}", "\1").replace("{n}", str(number))
            command = command.replace("\0", "{").replace("\1", "}")
            yield f"{command}\nimport unittest\nEND" if command.endswith("<<'END'") else command


def _make_project(work: Path) -> None:
    for name, content in _FILES.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@shop.example"],
        ["add", "-A"],
        ["commit", "-q", "-m", "Begin"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)


def _outside() -> str:
    """A folder that is none for temporary files: what commands write to a home in it is outside."""
    return next(place for place in ("/opt", "/srv", os.path.expanduser("~")) if os.access(place, os.W_OK))
