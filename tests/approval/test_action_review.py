"""Each kind of action is judged in its own way: typed input, code, files; and the gate itself costs little."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from handrail.approval import task_disk
from handrail.approval.allowlist import GrantKey, grant_key, parse_grant_key
from handrail.approval.gate import ApprovalGate
from handrail.approval.settings import Settings
from handrail.judge import assessor
from handrail.judge.values.assessment import Assessment, Reach
from handrail.protocols import Action, ActionKind, Decision
from handrail.testing import RecordingApprover
from handrail.types import ToolContext
from tests.support import costs_less_than

from .gate_support import CWD, HARMLESS, command, gate, review


def typed(text: str, **details: Any) -> Action:
    return Action(ActionKind.INPUT, text, CWD, details={"command": "bash", **details})


class TestTypedIntoAShell:
    @pytest.mark.parametrize("text", ["rm -rf ~/pictures\n", "rm -rf ~/pictures\r", "cd /tmp\nrm -rf ~/pictures\n"])
    def test_a_line_is_a_command(self, text: str) -> None:
        assert review(gate(), typed(text)).startswith("Not run:")

    def test_the_floor_holds_there_too(self) -> None:
        assert "no setting allows it" in review(gate(yolo=True), typed("rm -rf /\n"))

    def test_what_is_not_yet_run_is_not_yet_judged(self) -> None:
        assert review(gate(), typed("rm -rf ~/pictures")) == "allowed"
        assert review(gate(), typed("ls -la\n")) == "allowed"

    def test_a_line_that_was_given_up_does_not_count(self) -> None:
        assert review(gate(), typed("rm -rf ~/pictures\x03ls\n")) == "allowed"
        assert review(gate(), typed("ls\x15rm -rf ~/pictures\n")).startswith("Not run:")

    @pytest.mark.parametrize("text", ["\x1b[A\r", "\x12rm\r", "rm -rf b\t\n", "rm\x7f\x7fls\n", "x\x16\x03\n"])
    def test_keys_that_recall_or_edit_are_asked_about(self, text: str) -> None:
        assert review(gate(), typed(text)).startswith("Not run:")

    def test_a_line_that_goes_on_is_asked_about(self) -> None:
        assert review(gate(), typed("rm -rf \\\n")).startswith("Not run:")

    @pytest.mark.parametrize("name", ["ssh host", "/bin/zsh -l", "sudo -i", "docker exec -it x sh", "FOO=1 bash", ""])
    def test_what_leads_to_a_shell_is_one(self, name: str) -> None:
        assert review(gate(), typed("\x1b[A\r", command=name)).startswith("Not run:")

    def test_what_is_marked_is_what_was_typed(self) -> None:
        approver = RecordingApprover()
        review(gate(), typed("echo hi\x03rm -rf ~/pictures\n"), approver=approver)
        (request,) = approver.requests
        (concern,) = request.concerns
        assert request.text[concern.start : concern.end].strip() == "rm -rf ~/pictures"


class TestTypedIntoSomethingElse:
    @pytest.mark.parametrize("text", ["It's late\n", "what $next\n", "\x1b[A\r", "42\n", "yes | no\n", "(((\n"])
    def test_words_are_no_commands(self, text: str) -> None:
        assert review(gate(), typed(text, command="python3 quiz.py")) == "allowed"

    def test_what_is_clearly_a_command_is_judged(self) -> None:
        assert review(gate(), typed("rm -rf ~/pictures\n", command="./menu")).startswith("Not run:")

    def test_the_program_in_the_foreground_counts(self) -> None:
        assert review(gate(), typed("\x1b[A\r", foreground="vim")) == "allowed"
        assert review(gate(), typed("\x1b[A\r", command="make shell", foreground="bash")).startswith("Not run:")

    def test_a_password_is_neither_judged_nor_kept(self, tmp_path: Path) -> None:
        here = gate(tmp_path)
        assert review(here, typed("rm -rf ~/pictures\n", echo=False, foreground="sudo")) == "allowed"
        here.close()
        assert "pictures" not in (tmp_path / "actions.jsonl").read_text()

    @pytest.mark.parametrize("foreground", ["bash", "sh", "python3.11", ""])
    def test_a_shell_without_an_echo_is_still_a_shell(self, foreground: str) -> None:
        said = review(gate(), typed("rm -rf ~/pictures\n", echo=False, foreground=foreground))
        assert said.startswith("Not run:")


class TestTypedIntoAProgramWithAPrompt:
    @pytest.mark.parametrize(
        ("program", "text"),
        [
            ("python3", "import os; os.system('rm -rf ~/pictures')\n"),
            ("python3.11", "os.system('rm -rf ~/pictures')\n"),
            ("python3", "    os.system('rm -rf ~/pictures')\n"),
            ("python3", "import shutil; shutil.rmtree('/home/me')\n"),
            ("python3", "f = os.system\n"),
            ("python3", "from os import system\n"),
            ("python3", "exec(open('x').read())\n"),
            ("python3", "f('rm -rf ~/pictures')\n"),
            ("ipython", "!rm -rf ~/pictures\n"),
            ("ipython3", "%sx rm -rf ~/pictures\n"),
            ("jupyter-console", "!rm -rf ~/pictures\n"),
            ("raku", "run <rm -rf /home/me>\n"),
            ("stata", "shell rm -rf ~/pictures\n"),
            ("sas", "x 'rm -rf ~/pictures';\n"),
            ("node", "require('child_process').execSync('rm -rf ~/pictures')\n"),
            ("node", "const e = require('child_process').execSync\n"),
            ("perl", "system('rm -rf ~/pictures')\n"),
            ("perl", "!!rm -rf ~/pictures\n"),
            ("irb", "system('rm -rf ~/pictures')\n"),
            ("irb", "`rm -rf ~/pictures`\n"),
            ("lua", "os.execute('rm -rf ~/pictures')\n"),
            ("php", "system('rm -rf ~/pictures');\n"),
            ("tclsh", "exec rm -rf /home/me\n"),
            ("vim", ":!rm -rf ~/pictures\n"),
            ("vim", "\x1b:w !sh -c 'rm -rf ~/pictures'\r"),
            ("vim", ":call system('rm -rf ~/pictures')\n"),
            ("nvim", ":terminal rm -rf ~/pictures\n"),
            ("vi", "\x1b!!rm -rf ~/pictures\n"),
            ("less", "!rm -rf ~/pictures\n"),
            ("less", "|$rm -rf ~/pictures\n"),
            ("less", "!\n"),
            ("man", "!rm -rf ~/pictures\n"),
            ("psql", "\\! rm -rf ~/pictures\n"),
            ("psql", "copy t from program 'rm -rf ~/pictures';\n"),
            ("psql", "drop table users;\n"),
            ("redis-cli", "FLUSHALL\n"),
            ("cqlsh", "DROP KEYSPACE shop;\n"),
            ("pdb", "!import os; os.system('rm -rf ~/pictures')\n"),
            ("some-console", "os.system('rm -rf ~/pictures')\n"),
            ("julia", ";rm -rf ~/pictures\n"),
            ("mysql", "system rm -rf ~/pictures\n"),
            ("mysql", "\\! rm -rf ~/pictures\n"),
            ("mariadb", "drop database x;\n"),
            ("sqlite3", ".shell rm -rf ~/pictures\n"),
            ("sqlite3", ".once |sh\n"),
            ("gdb", "shell rm -rf ~/pictures\n"),
            ("gdb", "!rm -rf ~/pictures\n"),
            ("gdb", "python import os; os.system('rm -rf ~/pictures')\n"),
            ("gdb", 'call (int)system("rm -rf ~/pictures")\n'),
            ("ftp", "!rm -rf ~/pictures\n"),
            ("sftp", "!rm -rf ~/pictures\n"),
            ("ed", "!rm -rf ~/pictures\n"),
            ("mail", "~!rm -rf ~/pictures\n"),
            ("emacs", "\x1b!rm -rf ~/pictures\r"),
            ("nano", "\x14rm -rf ~/pictures\r"),
            ("fish", "rm -rf ~/pictures\n"),
        ],
    )
    def test_it_is_judged_in_that_programs_language(self, program: str, text: str) -> None:
        assert review(gate(), typed(text, foreground=program)).startswith("Not run:")

    @pytest.mark.parametrize(
        ("program", "text"),
        [
            ("python3", "import os, subprocess\n"),
            ("python3", "print(sum(range(10)))\n"),
            ("python3", "x = {'a': 'hello there'}\n"),
            ("python3", "for i in range(3):\n"),
            ("python3", "    print('remove me')\n"),
            ("python3", "os.system('ls -l')\n"),
            ("python3", "please remove the system file\n"),
            ("node", "console.log('it is done')\n"),
            ("perl", "print 'hello there'\n"),
            ("irb", "puts [1, 2].sum\n"),
            ("vim", ":wq\n"),
            ("vim", ":%s/a/b/g\n"),
            ("vim", "iremove the file with rm -rf x, she said!\x1b"),
            ("less", "/pattern\n"),
            ("less", "G"),
            ("psql", "select count(*) from users;\n"),
            ("psql", "\\dt\n"),
            ("redis-cli", "GET x\n"),
            ("some-console", "yes, system(1)\n"),
            ("mysql", "show tables;\n"),
            ("sqlite3", ".tables\n"),
            ("gdb", "bt\n"),
            ("gdb", "print x\n"),
            ("ftp", "get file.txt\n"),
            ("nano", "hello there\n"),
        ],
    )
    def test_ordinary_input_is_not_asked_about(self, program: str, text: str) -> None:
        assert review(gate(), typed(text, foreground=program)) == "allowed"


class TestCode:
    def code(self, text: str, language: str = "python") -> Action:
        return Action(ActionKind.CODE, text, CWD, details={"language": language})

    @pytest.mark.parametrize(
        "text",
        [
            "import shutil\nshutil.rmtree('/home/me/pictures')",
            "import os\nos.system('rm -rf ~/pictures')",
            "import subprocess as s; s.run(['rm', '-rf', \"it's\"])",
        ],
    )
    def test_dangerous_code_is_asked_about_and_marked_within_its_text(self, text: str) -> None:
        approver = RecordingApprover([Decision.ONCE])
        assert review(gate(), self.code(text), approver=approver) == "allowed"
        (request,) = approver.requests
        assert request.text == text
        assert all(0 <= concern.start < concern.end <= len(text) for concern in request.concerns)

    def test_harmless_code_passes(self) -> None:
        assert review(gate(), self.code("print(sum(range(10)))\nx = {'a': [1, 2]}")) == "allowed"

    def test_the_shell_is_a_language_too(self) -> None:
        assert "no setting allows it" in review(gate(), self.code("rm -rf /", "bash"))

    def test_what_cannot_be_judged_is_asked_about(self) -> None:
        assert "cannot be judged" in review(gate(), self.code("DELETE EVERYTHING", "intercal"))


def test_a_judge_that_fails_makes_it_a_question() -> None:
    def fails(*_: Any) -> Assessment:
        raise RecursionError

    here = ApprovalGate(assess=fails)
    assert "it could not be judged" in review(here, HARMLESS)
    assert review(here, HARMLESS, approver=RecordingApprover([Decision.ALWAYS])) == "allowed"
    assert here.store.grants.all() == []


class TestACommandThatWasJudgedBefore:
    def test_is_judged_again_when_the_script_that_it_runs_is_another(self, tmp_path: Path) -> None:
        here, script = gate(), tmp_path / "build.sh"
        action = command("bash build.sh", cwd=str(tmp_path), details={"files": "host"})
        script.write_text("echo hi\n")
        assert review(here, action) == "allowed"
        script.write_text("rm -rf ~/pictures\n")
        assert review(here, action).startswith("Not run:")

    def test_is_judged_again_when_a_program_of_its_name_was_put_into_the_project(self, tmp_path: Path) -> None:
        here, program = gate(), tmp_path / ".venv/bin/grep"
        action = command("grep -rn foo src", cwd=str(tmp_path), details={"files": "host"})
        assert review(here, action) == "allowed"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\nrm -rf ~/pictures\n")
        assert review(here, action).startswith("Not run:")
        program.unlink()
        assert review(here, action) == "allowed"

    def test_is_not_judged_again_while_what_it_depends_on_is_the_same(self, tmp_path: Path, judged: list[str]) -> None:
        here = gate()
        action = command("grep -rn foo src", cwd=str(tmp_path), details={"files": "host"})
        for task in ("a", "b", "a"):
            assert review(here, action, task_id=task) == "allowed"
        assert judged == ["grep -rn foo src"]

    def test_is_judged_again_when_the_entries_of_its_folder_have_changed(
        self, tmp_path: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(task_disk, "_UNSETTLED_NANOSECONDS", 0)
        here, times = gate(), os.stat(tmp_path)
        action = command("mypy src", cwd=str(tmp_path), details={"files": "host"})
        for _ in range(2):
            assert review(here, action) == "allowed"
        assert len(judged) == 1
        (tmp_path / "mypy.ini").write_text("[mypy]\n")
        os.utime(tmp_path, ns=(times.st_atime_ns, times.st_mtime_ns))
        review(here, action)
        assert len(judged) == 2

    def test_is_judged_again_when_its_folder_has_just_changed(self, tmp_path: Path, judged: list[str]) -> None:
        here, action = gate(), command("mypy src", cwd=str(tmp_path), details={"files": "host"})
        for name in ("a", "b"):
            (tmp_path / name).touch()
            review(here, action)
        assert len(judged) == 2

    @pytest.fixture
    def judged(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The commands that were judged, and not known."""
        found, judge = list[str](), assessor.assess

        def assess(text: str, **more: Any) -> Assessment:
            found.append(text)
            return judge(text, **more)

        monkeypatch.setattr(assessor, "assess", assess)
        return found

    def test_is_judged_again_in_another_folder(self) -> None:
        here = gate(mode="off")
        assert review(here, command("rm -rf ./*")) == "allowed"
        assert "no setting allows it" in review(here, command("rm -rf ./*", cwd="/"))

    def test_is_judged_again_after_an_alias_of_its_task_changed_what_it_means(self) -> None:
        here = gate()
        assert review(here, "tidy", task_id="a") == "allowed"
        assert review(here, "alias tidy='rm -rf ~/pictures'", task_id="a").startswith("Not run:")
        assert review(here, "tidy", task_id="a").startswith("Not run:")
        assert review(here, "tidy", task_id="b") == "allowed"


class TestKinds:
    @pytest.mark.parametrize(
        "kind",
        [
            GrantKey("fs.rm", Reach.HOME),
            GrantKey("fs.rm", Reach.PROJECT, "/srv/my app: x@y"),
            GrantKey("git.push", Reach.NOWHERE, environment="ssh"),
            GrantKey("fs.rm", Reach.PROJECT, "/srv/a", "docker"),
        ],
    )
    def test_what_is_written_is_read_back(self, kind: GrantKey) -> None:
        assert parse_grant_key(str(kind)) == kind
        assert kind.covers(kind)

    @pytest.mark.parametrize("cwd", ["", "/", "//", "/srv/.."])
    def test_a_project_that_is_everything_is_no_bound(self, cwd: str) -> None:
        assert not grant_key("fs.rm", Reach.PROJECT, root=cwd, environment="local").can_last

    def test_every_reach_is_a_kind_of_its_own(self) -> None:
        kinds = [grant_key("fs.rm", reach, root="/srv/app", environment="local") for reach in Reach]
        for one in kinds:
            assert [other for other in kinds if one.covers(other)] == ([one] if one.can_last else [])

    @pytest.mark.parametrize(
        "rule", ["dynamic.command", "rce.download_to_shell", "parse.error", "limit", "text.hidden"]
    )
    def test_what_can_be_anything_never_lasts(self, rule: str) -> None:
        assert not grant_key(rule, Reach.NOWHERE, root="/x", environment="local").can_last
        with pytest.raises(ValueError, match="asked about each time"):
            parse_grant_key(f"{rule}@nowhere")


def test_the_gate_itself_costs_little(home: Path, tmp_path: Path) -> None:
    """All that is done for a harmless command but judging it: the settings are looked at, and it is recorded."""
    quick = ApprovalGate(Settings(path=home / "config.yaml"), folder=tmp_path, assess=lambda text, *_: Assessment(text))
    actions, context = [command(HARMLESS)], ToolContext(tool="terminal")
    assert quick.review(actions, context) is None
    with costs_less_than(1.5):
        for _ in range(2500):
            quick.review(actions, context)
    quick.close()
