"""Which part of a script counts, and what is asked about when it cannot be known."""

from __future__ import annotations

import inspect
import os
import shutil
import time
from importlib import import_module
from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess
from handrail.judge.scripts.task_lists import CONFIG_FILES, TESTS
from handrail.judge.values.assessment import Assessment, Verdict
from handrail.judge.values.disk import ShellMemory
from handrail.judge.walk.program_handlers import TABLES

NEW, OLD = 0.0, float("inf")


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def judged(folder: Path, command: str, since: float = NEW, shell: ShellMemory | None = None) -> Assessment:
    return assess(command, cwd=str(folder), project=str(folder), disk=HostDisk(since), shell=shell)


def test_every_function_that_the_table_of_programs_names_is_there() -> None:
    """They are loaded with the first program that needs them."""
    for functions in TABLES.values():
        for reference in functions.values():
            module, _, name = reference.partition(".")
            assert inspect.isfunction(getattr(import_module(f"handrail.judge.walk.{module}"), name)), reference


def test_every_tool_with_a_file_of_settings_or_tests_is_followed() -> None:
    assert TABLES["followers"].keys() >= {*CONFIG_FILES, *TESTS}


class TestWhatRuns:
    MAKEFILE = "all: build\n\techo done\nbuild:\n\tcc -c x.c\ndeploy:\n\trm -rf ~/site\n"

    def test_only_the_target_that_runs_counts(self, tmp_path: Path) -> None:
        put(tmp_path, Makefile=self.MAKEFILE)
        assert not judged(tmp_path, "make").dangerous
        assert judged(tmp_path, "make deploy").dangerous

    def test_a_dry_run_runs_nothing(self, tmp_path: Path) -> None:
        put(tmp_path, Makefile=self.MAKEFILE)
        assert not judged(tmp_path, "make -n deploy").dangerous

    def test_a_variable_on_the_command_line_counts(self, tmp_path: Path) -> None:
        put(tmp_path, Makefile="DIR = build\nclean:\n\trm -rf $(DIR)\n")
        assert not judged(tmp_path, "make clean").dangerous
        assert judged(tmp_path, "make clean DIR=/home/bob").dangerous

    def test_a_function_that_nothing_calls_does_not_count(self, tmp_path: Path) -> None:
        put(tmp_path, x__py="import lib\nlib.build()\n")
        put(tmp_path, lib__py="import shutil\ndef build():\n    pass\ndef wipe():\n    shutil.rmtree('/home/bob')\n")
        assert not judged(tmp_path, "python x.py", OLD).dangerous
        put(tmp_path, x__py="import lib\nlib.build()\nlib.wipe()\n")
        assert judged(tmp_path, "python x.py", OLD).dangerous

    def test_another_script_of_the_package_does_not_count(self, tmp_path: Path) -> None:
        put(tmp_path, package__json='{"scripts": {"test": "echo", "nuke": "rm -rf ~"}}')
        assert not judged(tmp_path, "npm test").dangerous
        assert judged(tmp_path, "npm run nuke").verdict is Verdict.BLOCK

    def test_arguments_reach_the_script(self, tmp_path: Path) -> None:
        put(tmp_path, clean__sh='rm -rf "$1"\n')
        assert not judged(tmp_path, "sh clean.sh build").dangerous
        assert judged(tmp_path, "sh clean.sh ~/work").dangerous

    def test_the_folder_of_the_script_is_known(self, tmp_path: Path) -> None:
        put(tmp_path, x__sh='cd "$(dirname "${BASH_SOURCE[0]}")" || exit\nrm -rf build\n')
        assert not judged(tmp_path, "bash x.sh").dangerous

    def test_the_work_tree_is_the_repository(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "sub").mkdir()
        put(tmp_path / "sub", x__sh="rm -rf ../build\n")
        assert not judged(tmp_path / "sub", "sh x.sh").dangerous
        put(tmp_path / "sub", x__sh=f"rm -rf {'../' * 20}srv/other\n")
        assert judged(tmp_path / "sub", "sh x.sh").dangerous

    def test_the_finding_names_the_file(self, tmp_path: Path) -> None:
        put(tmp_path, x__sh="rm -rf ~/work\n")
        assert judged(tmp_path, "sh x.sh").findings[0].why.endswith("(in x.sh)")

    def test_lines_of_scripts_are_there_for_the_deny_list(self, tmp_path: Path) -> None:
        put(tmp_path, x__sh="git push origin main\n")
        assert ("git", "push", "origin", "main") in [segment.argv for segment in judged(tmp_path, "sh x.sh").segments]

    def test_what_a_script_writes_is_run_later(self, tmp_path: Path) -> None:
        put(tmp_path, x__sh="echo 'rm -rf ~/work' > y.sh\n")
        assert judged(tmp_path, "sh x.sh && sh y.sh").dangerous


class TestWhatCannotBeKnown:
    LONG = "echo x\n" * 40_000

    @pytest.mark.parametrize("text", ['rm -rf "$(cat list)"\n', 'eval "$(cat y)"\n', "$(cat y)\n", LONG, "if\n"])
    def test_it_asks_when_it_was_written_in_this_session(self, text: str, tmp_path: Path) -> None:
        put(tmp_path, x__sh=text)
        assert judged(tmp_path, "sh x.sh", NEW).dangerous
        assert not judged(tmp_path, "sh x.sh", OLD).dangerous

    def test_a_script_that_runs_itself_comes_to_an_end(self, tmp_path: Path) -> None:
        put(tmp_path, x__sh='echo "$1"\nsh x.sh "$1$1"\n')
        judged(tmp_path, "sh x.sh a")

    @pytest.mark.parametrize("kind", ["fifo", "folder", "binary", "missing", "loop"])
    def test_what_is_no_script_is_left_alone(self, kind: str, tmp_path: Path) -> None:
        path = tmp_path / "x"
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "binary":
            path.write_bytes(b"\x7fELF\0\0\0")
        elif kind == "loop":
            path.symlink_to("x")
        for command in ("./x", "sh x", "python x", ". ./x", "make -f x", "node x", "awk -f x"):
            is_bytecode = kind == "binary" and command == "python x"  # Python runs that, and nobody can read it
            assert judged(tmp_path, command).dangerous is is_bytecode

    def test_what_git_had_before_is_the_projects_own(self, tmp_path: Path) -> None:
        script = tmp_path / "x.sh"
        put(tmp_path, x__sh='rm -rf "$(cat list)"\n')
        os.system(f"cd {tmp_path} && git init -q && git add x.sh")
        since = time.time()
        while script.stat().st_ctime < since:  # the kernel's clock for files goes in steps
            script.unlink()
            os.system(f"cd {tmp_path} && git checkout -q -- x.sh")
        assert not judged(tmp_path, "sh x.sh", since).dangerous
        put(tmp_path, x__sh='rm -rf "$(cat list2)"\n')
        assert judged(tmp_path, "sh x.sh", since).dangerous

    @pytest.mark.parametrize("then", ["true", "git commit -qm x", "git commit -qm x && git gc -q", "git repack -adq"])
    def test_adding_a_file_to_git_does_not_make_it_the_projects_own(self, then: str, tmp_path: Path) -> None:
        put(tmp_path, x__sh='rm -rf "$(cat list)"\n')
        user = "-c user.name=x -c user.email=x@example.com"
        os.system(f"cd {tmp_path} && git init -q && git add x.sh && {then.replace('git ', f'git {user} ')}")
        assert judged(tmp_path, "sh x.sh", NEW).dangerous

    def test_what_came_with_a_clone_is_the_projects_own(self, tmp_path: Path) -> None:
        origin, clone = tmp_path / "origin", tmp_path / "clone"
        origin.mkdir()
        put(origin, x__sh='rm -rf "$(cat list)"\n')
        user = "-c user.name=x -c user.email=x@example.com"
        os.system(f"cd {origin} && git init -q && git add x.sh && git {user} commit -qm x")
        os.system(f"git clone -q file://{origin} {clone}")
        assert not judged(clone, "sh x.sh", NEW).dangerous
        disk = HostDisk(NEW, written={str(clone / "x.sh")})
        assert assess("sh x.sh", cwd=str(clone), disk=disk).dangerous


class TestOtherNames:
    def test_a_copy_of_a_program_is_that_program(self, tmp_path: Path) -> None:
        shutil.copy(shutil.which("rm") or "/bin/rm", tmp_path / "tool")
        assert judged(tmp_path, "./tool -rf ~/work").dangerous
        assert not judged(tmp_path, "./tool a.txt").dangerous

    def test_a_link_to_a_program_is_that_program(self, tmp_path: Path) -> None:
        (tmp_path / "tool").symlink_to(shutil.which("rm") or "/bin/rm")
        assert judged(tmp_path, "./tool -rf ~/work").dangerous

    def test_a_folder_put_into_path_earlier_is_searched(self, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        put(tmp_path / "bin", ls="#!/bin/sh\nrm -rf ~/work\n")
        shell = ShellMemory()
        assert not judged(tmp_path, "ls", shell=shell).dangerous
        assert not judged(tmp_path, f"export PATH={tmp_path}/bin:$PATH", shell=shell).dangerous
        assert judged(tmp_path, "ls -l", shell=shell).dangerous

    def test_an_alias_set_earlier_is_followed(self, tmp_path: Path) -> None:
        shell = ShellMemory()
        assert not judged(tmp_path, "alias t=./x.sh", shell=shell).dangerous
        put(tmp_path, x__sh="rm -rf ~/work\n")
        assert judged(tmp_path, "t", shell=shell).dangerous
        assert not judged(tmp_path, "ls", shell=shell).dangerous


def test_reading_a_script_costs_about_what_judging_its_text_costs(tmp_path: Path) -> None:
    text = "".join(
        f'echo "step {number}" && mkdir -p build/{number} && cp src/{number}.c build/\n' for number in range(160)
    )
    put(tmp_path, x__sh=text)

    def seconds(command: str) -> float:
        began = time.process_time()  # what others use of this machine does not count
        judged(tmp_path, command)
        return time.process_time() - began

    of_script = of_text = 60.0
    for _ in range(12):  # what else the machine does may disturb one look, or some
        of_script, of_text = min(of_script, seconds("sh x.sh")), min(of_text, seconds(text))
        if of_script < 3 * of_text + 0.005:
            return
    pytest.fail(f"{of_script:.4f} s, its text {of_text:.4f} s")
