"""`handrail config`."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, run_here

BROKEN = "files:\n  roots: 7\n"
FIXED = "files:\n  roots: [/tmp]  # mine\n"


def editor(cli: Cli, *texts: str, code: int = 0) -> str:
    """A command that writes one text after the other into the file that it is given."""
    for number, text in enumerate(texts):
        cli.file(f"edit{number}", text)
    script = cli.file(
        "editor.sh",
        f'n=$(cat count 2>/dev/null || echo 0)\ncat "$1" > seen\ncp "edit$n" "$1"\necho $((n + 1)) > count\nexit {code}\n',
    )
    return f"sh {script}"


def test_a_value_can_be_set_read_and_taken_back(cli: Cli) -> None:
    path = cli.configure("# mine\nfiles:\n  roots: [/a]  # why\n")
    ran = cli("config", "set", "results.max_chars", "5000")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"handrail: results.max_chars is set in {path}\n"
    assert run_here("config", "get", "results.max_chars").out == "5000\n"
    assert cli("config", "unset", "results.max_chars").code == 0
    assert run_here("config", "get", "results.max_chars").out == "100000\n"
    assert path.read_text().startswith("# mine\nfiles:\n  roots: [/a]  # why\n")


@pytest.mark.parametrize(
    ("key", "printed"),
    [("tools.on_collision", "refuse\n"), ("tools.enabled_toolsets", "null\n"), ("files.roots", "[]\n")],
)
def test_a_value_is_printed_as_a_shell_wants_it(key: str, printed: str) -> None:
    assert run_here("config", "get", key).out == printed


def test_a_section_is_printed_as_json() -> None:
    assert run_here("config", "get", "files").json["roots"] == []
    assert run_here("config", "get", "tools.on_collision", "--json").json == "refuse"


def test_the_environment_goes_before_the_file_and_a_change_says_so(cli: Cli) -> None:
    env = {"HANDRAIL_FILES_ROOTS": "/from/environment"}
    ran = cli("config", "set", "files.roots", "/from/file", **env)
    assert "HANDRAIL_FILES_ROOTS is set in this environment, and overrides it" in ran.err
    assert cli("config", "get", "files.roots", **env).out == '["/from/environment"]\n'
    assert run_here("config", "get", "files.roots").out == '["/from/file"]\n'


def test_every_setting_is_shown_with_its_source(cli: Cli) -> None:
    cli.configure("results:\n  max_chars: 7000\n")
    ran = cli("config", "show", HANDRAIL_FILES_ROOTS="/x")
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert rows["results.max_chars"] == ["7000", "file"]
    assert rows["files.roots"] == ['["/x"]', "HANDRAIL_FILES_ROOTS"]
    assert rows["calls.batch_timeout"] == ["600.0", "default"]
    assert run_here("config", "show", "--json").json["results"]["max_chars"] == 7000


def test_the_path_is_printed_also_when_the_file_is_broken_or_missing(cli: Cli) -> None:
    assert run_here("config", "path").out == f"{cli.home / 'config.yaml'}\n"
    cli.configure("files: [")
    assert run_here("config", "path").code == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("get", "fils.roots"), "did you mean files?"),
        (("set", "files.rots", "/x"), "did you mean"),
        (("set", "results.max_chars", "many"), "results.max_chars"),
        (("unset", "nonsense"), "nonsense: unknown key"),
    ],
)
def test_a_wrong_key_or_value_is_told_in_one_line(cli: Cli, command: tuple[str, ...], message: str) -> None:
    ran = cli("config", *command)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("handrail: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not (cli.home / "config.yaml").exists()


def test_edit_replaces_the_file_with_a_valid_copy(cli: Cli) -> None:
    path = cli.configure("files:\n  roots: []\n")
    path.chmod(0o640)
    ran = cli("config", "edit", EDITOR=editor(cli, FIXED))
    assert ran.code == 0
    assert path.read_text() == FIXED
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(cli.temp.iterdir()) == []


def test_edit_of_a_new_file_begins_with_every_setting_commented_out(cli: Cli) -> None:
    ran = cli("config", "edit", VISUAL=editor(cli, FIXED), EDITOR="false")
    assert ran.code == 0
    seen = (cli.cwd / "seen").read_text()
    assert "#files:\n  # Folders that the file tools are kept inside." in seen
    uncommented = "\n".join(
        line[1:] for line in seen.splitlines() if line.startswith("#") and not line.startswith("# ")
    )
    cli.configure(uncommented)
    assert run_here("config", "get", "files.max_read_bytes").out == "10485760\n"


def test_edit_without_a_terminal_refuses_what_is_not_valid_and_keeps_the_text(cli: Cli) -> None:
    path = cli.configure(FIXED)
    ran = cli("config", "edit", EDITOR=editor(cli, BROKEN))
    assert ran.code == 1
    assert f"{path}:2: files.roots" in ran.err
    assert path.read_text() == FIXED
    [kept] = cli.temp.iterdir()
    assert kept.read_text() == BROKEN
    assert str(kept) in ran.err


def test_edit_at_a_terminal_offers_to_go_on(cli: Cli) -> None:
    path = cli.configure("files:\n  roots: []\n")
    with cli.terminal("config", "edit", EDITOR=editor(cli, BROKEN, FIXED)) as terminal:
        terminal.wait_for("Edit it again? [Y/n] ")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (cli.cwd / "seen").read_text() == BROKEN
    assert path.read_text() == FIXED


def test_edit_can_be_used_to_repair_a_broken_file(cli: Cli) -> None:
    path = cli.configure("files: [")
    assert cli("config", "edit", EDITOR=editor(cli, FIXED)).code == 0
    assert path.read_text() == FIXED


def test_edit_changes_nothing_when_the_editor_fails_or_is_missing(cli: Cli) -> None:
    path = cli.configure(FIXED)
    assert "ended with exit code 3" in cli("config", "edit", EDITOR=editor(cli, "", code=3)).err
    ran = cli("config", "edit", EDITOR="no-such-editor")
    assert ran.code == 1
    assert "set $VISUAL or $EDITOR" in ran.err
    assert path.read_text() == FIXED


def test_edit_does_not_overwrite_what_someone_else_wrote_meanwhile(cli: Cli) -> None:
    path = cli.configure("files:\n  roots: []\n")
    other = cli.file("other.sh", f'echo "# other" >> {path}\necho "# me" >> "$1"\n')
    ran = cli("config", "edit", EDITOR=f"sh {other}")
    assert ran.code == 1
    assert "was changed by someone else" in ran.err
    assert path.read_text().endswith("# other\n")
    assert Path(ran.err.rsplit(" ", 1)[1].strip()).read_text().endswith("# me\n")
