"""`handrail plugins`, as a person types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import trust_plugins


def test_a_new_plugin_works_and_its_test_passes(cli: Any) -> None:
    ran = cli("plugins", "new", "parrot")
    assert ran.code == 0, ran.err
    assert cli("call", "parrot_hello", "who=you").out.strip() == "Hello, you!"
    (plugin,) = cli("plugins", "list", "--json").json
    assert (plugin["name"], plugin["state"], plugin["from"]) == ("parrot", "loaded", "user")
    folder = cli.home / "plugins" / "parrot"
    pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        pytest_run,
        capture_output=True,
        text=True,
        # Its author has none of the plugins of our own tests.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout


def test_a_name_that_cannot_be_one_is_refused(cli: Any) -> None:
    ran = cli("plugins", "new", "no-dash")
    assert ran.code != 0
    assert "letters, digits and _" in ran.err


def test_one_can_be_switched_off_and_on(cli: Any) -> None:
    cli("plugins", "new", "parrot")
    assert cli("plugins", "disable", "parrot").code == 0
    assert cli("call", "parrot_hello").code != 0
    assert cli("plugins", "enable", "parrot").code == 0
    assert cli("call", "parrot_hello").code == 0


def test_a_projects_plugin_has_to_be_trusted(cli: Any) -> None:
    folder = cli.cwd / ".handrail" / "plugins"
    cli("plugins", "new", "parrot", "--in", str(folder))
    with (Path(folder) / "parrot" / "plugin.yaml").open("a") as manifest:
        manifest.write("provides: [a greeting]\n")
    (found,) = cli("plugins", "list", "--json").json
    assert (found["state"], found["promises"]) == ("untrusted", ["a greeting"])
    assert cli("call", "parrot_hello").code != 0
    assert cli("plugins", "trust", "parrot").code == 0
    assert cli("call", "parrot_hello").code == 0
    (Path(folder) / "parrot" / "__init__.py").write_text("raise RuntimeError\n")
    (found,) = cli("plugins", "list", "--json").json
    assert found["state"] == "untrusted"
    assert "it has changed since it was trusted" in found["reason"]
    assert cli("plugins", "trust", "--revoke", "parrot").code == 0


def test_a_plugin_can_bring_a_command(cli: Any) -> None:
    folder = cli.home / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "greeter.py").write_text(
        "print('what is printed while it is loaded is no result')\n"
        "def register(api):\n    api.command('greet', add)\n"
        "def add(app):\n    @app.command('greet')\n    def greet(name: str):\n        print('hi', name)\n"
    )
    (folder / "original.py").write_text(  # as the documentation of Hermes Agent has it
        "def register(ctx):\n    ctx.register_cli_command('hail', 'Hails.', setup, handle)\n"
        "def setup(subparser):\n    subparser.add_argument('whom')\n    subparser.add_argument('--loud', action='store_true')\n"
        "def handle(args):\n    print('HAIL' if args.loud else 'hail', args.whom)\n"
    )
    trust_plugins(cli.home)
    assert cli("greet", "Ada").out.strip() == "hi Ada"
    assert cli("hail", "--loud", "Ada").out.strip() == "HAIL Ada"
    assert cli("hail").code == 2
    assert "greet" in cli("--help").out


def test_an_unknown_plugin_is_named_with_the_nearest(cli: Any) -> None:
    cli("plugins", "new", "parrot")
    ran = cli("plugins", "info", "parot")
    assert ran.code == 2
    assert "did you mean 'parrot'" in ran.err


def test_the_doctor_shows_a_plugin_that_fails(cli: Any) -> None:
    folder = cli.home / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    trust_plugins(cli.home)
    ran = cli("doctor")
    assert ran.code == 1
    assert "plugin broken" in ran.out
    assert "nothing_of_that_name" in ran.out


def test_hooks_in_the_configuration_are_run(cli: Any) -> None:
    (cli.home / "config.yaml").write_text(
        "hooks:\n  PreToolUse:\n    - matcher: read_file\n      command: echo 'not today' >&2; exit 2\n"
    )
    ran = cli("call", "read_file", "path=x")
    assert ran.code == 3
    assert "not today" in ran.out + ran.err


def test_a_mistake_in_a_configured_hook_names_file_and_line(cli: Any) -> None:
    (cli.home / "config.yaml").write_text("hooks:\n  PreToolUse:\n    - matcer: read_file\n      command: 'true'\n")
    ran = cli("tools")
    assert ran.code != 0
    assert "config.yaml:3" in ran.err
    assert "did you mean matcher" in ran.err
