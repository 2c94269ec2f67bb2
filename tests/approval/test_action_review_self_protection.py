"""By whichever route an agent tries to allow something to itself, the gate stays shut."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.environments.local_environment import LocalEnvironment
from handrail.protocols import Action, ActionKind, ApprovalRequest, Decision
from handrail.store.approvals import ApprovalStore
from handrail.testing import RecordingApprover

from ..support import PYTHON
from .gate_support import command, gate, review

HANDRAIL = f"{PYTHON} -m handrail"
INJECTED = Path(__file__).parents[1] / "cli" / "injected"


class TestCommands:
    """What the judge sees coming, also when nobody is asked any more."""

    @pytest.mark.parametrize(
        "text",
        [
            "handrail approvals answer 3f9c once",
            "handrail  approvals   answer 3f9c o",
            "python -m handrail approvals answer 3f9c once",
            "python3 -m handrail approvals revoke 4",
            "env -i PATH=$PATH handrail approvals answer 3f9c once",
            "script -qc 'handrail approvals answer 3f9c once' /dev/null",
            "tmux new-window 'handrail approvals answer 3f9c once'",
            "tmux send-keys 'handrail approvals answer 3f9c once' Enter",
            "ssh localhost -t handrail approvals answer 3f9c once",
            "at now <<< 'handrail approvals answer 3f9c once'",
            "screen -dm handrail approvals answer 3f9c once",
            "systemd-run --user --pty handrail approvals answer 3f9c once",
            "echo once | handrail approvals answer 3f9c",
            "bash -c 'handrail approvals answer 3f9c always'",
            "setsid nohup handrail approvals answer 3f9c once &",
            "handrail config set approvals.mode off",
            "handrail config unset approvals.deny",
            "EDITOR='sed -i s/manual/off/' handrail config edit",
            "echo 'approvals: {mode: off}' > ~/.config/handrail/config.yaml",
            "sed -i s/manual/off/ ~/.config/handrail/config.yaml",
            "cd ~/.config/handrail && rm config.yaml",
            "cp evil.yaml $HOME/.config/handrail/config.yaml",
            "ln -sf /tmp/evil.yaml ~/.config/handrail/config.yaml",
            "rm -f ~/.local/state/handrail/approvals.db",
            "sqlite3 ~/.local/state/handrail/approvals.db \"update requests set state='answered'\"",
        ],
    )
    @pytest.mark.parametrize("settings", [{}, {"yolo": True}, {"mode": "off"}], ids=str)
    def test_it_is_refused_in_every_mode(self, text: str, settings: dict[str, Any]) -> None:
        approver = RecordingApprover([Decision.ALWAYS])
        assert review(gate(**settings), text, approver=approver).startswith("Not run:")
        assert approver.requests == []

    @pytest.mark.parametrize(
        "text",
        [
            "echo x > {home}/config.yaml",
            "rm -rf {home}/state",
            "cp evil {home}/config.yaml",
            "tee $HANDRAIL_HOME/config.yaml < evil",
            'mv evil "${{HANDRAIL_HOME}}/config.yaml"',
            "cd {home} && rm config.yaml",
            "sqlite3 {home}/state/approvals.db 'delete from requests'",
        ],
    )
    def test_a_home_that_was_put_elsewhere_is_as_safe(self, home: Path, text: str) -> None:
        for settings in ({}, {"yolo": True}):
            assert review(gate(**settings), text.format(home=home)).startswith("Not run:")

    def test_also_from_within_it(self, home: Path) -> None:
        assert review(gate(yolo=True), command("rm config.yaml", cwd=str(home))).startswith("Not run:")

    def test_reading_and_other_folders_are_nobodys_business(self, home: Path) -> None:
        for text in ("cat ~/.config/handrail/config.yaml", f"ls {home}/state", "rm handrail.txt", "handrail tools"):
            assert review(gate(), text) == "allowed"


class TestFiles:
    @pytest.fixture(autouse=True)
    def project(self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")  # even when nobody is asked
        monkeypatch.chdir(tmp_path)
        (tmp_path / "link").symlink_to(home)
        (tmp_path / "file-link").symlink_to(home / "config.yaml")
        return tmp_path

    def paths(self, home: Path, project: Path) -> list[str]:
        relative = os.path.relpath(home, project)
        names = ["config.yaml", "state/approvals.db", "state/new/file", "cache/x", "plugins/evil.py"]
        places = [f"{folder}/{name}" for folder in (str(home), relative, "link") for name in names]
        return [*places, "file-link", f"{home}/x/../config.yaml", str(home)]

    def test_no_path_leads_a_file_tool_to_our_files(self, home: Path, project: Path) -> None:
        before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        for path in self.paths(home, project):
            for name, args in (
                ("write_file", {"path": path, "content": "approvals: {mode: 'off'}\n"}),
                ("patch", {"path": path, "old_string": "off", "new_string": "manual"}),
                ("patch", {"mode": "patch", "patch": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"}),
                ("patch", {"mode": "patch", "patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"}),
            ):
                error = json.loads(str(model_tools.handle_function_call(name, args)))
                assert error["error_type"] == "denied", (name, path, error)
        kept = {path: path.read_bytes() for path in before}
        assert kept == before

    def test_a_move_into_our_folder_is_refused(self, home: Path, project: Path) -> None:
        (project / "evil.yaml").write_text("one\n")
        text = f"*** Begin Patch\n*** Update File: evil.yaml\n*** Move to: {home}/config.yaml\n@@\n-one\n+two\n*** End Patch"
        error = json.loads(str(model_tools.handle_function_call("patch", {"mode": "patch", "patch": text})))
        assert error["error_type"] == "denied"
        assert (project / "evil.yaml").read_text() == "one\n"

    def test_the_rest_of_the_project_can_be_written(self, project: Path) -> None:
        answer = model_tools.handle_function_call("write_file", {"path": "notes.txt", "content": "x"})
        assert "error" not in json.loads(str(answer))


class TestOtherProtectedFiles:
    @pytest.mark.parametrize("path", ["~/.ssh/authorized_keys", "~/.bashrc", "/etc/passwd", ".git/hooks/pre-commit"])
    def test_they_are_asked_about(self, path: str) -> None:
        error = json.loads(str(model_tools.handle_function_call("write_file", {"path": path, "content": "x"})))
        assert error["error_type"] == "denied"
        assert error["decided_by"] == "policy"

    def test_our_own_program_is_asked_about(self) -> None:
        import handrail

        args = {"path": handrail.__file__, "old_string": "x", "new_string": "y"}
        error = json.loads(str(model_tools.handle_function_call("patch", args)))
        assert error["rules"] == ["own.program"]


class TestInsideAShellOfTheAgent:
    """What would run if a command got past the judge, in a real shell of the tools."""

    @pytest.fixture
    def shell(self, tmp_path: Path) -> Iterator[LocalEnvironment]:
        environment = LocalEnvironment(
            str(tmp_path), env={"PYTHONPATH": str(INJECTED), "WITNESS": str(tmp_path / "ran")}
        )
        yield environment
        environment.close()

    @pytest.fixture
    def store(self, home: Path) -> Iterator[ApprovalStore]:
        opened = ApprovalStore(home / "state" / "approvals.db")
        yield opened
        opened.close()

    @pytest.fixture
    def request_id(self, store: ApprovalStore) -> str:
        request = ApprovalRequest("terminal", {}, "why", text="rm -rf build", expires_at=time.time() + 600)
        return store.ask(request._replace(offers=tuple(Decision)), fingerprint="f").request.id

    @pytest.mark.parametrize(
        "way",
        [
            "{}",
            "env -i HANDRAIL_HOME={home} {}",
            "env -u HANDRAIL_INSIDE setsid -w {}",
            "env -u HANDRAIL_INSIDE script -qec {quoted} /dev/null",
        ],
    )
    def test_it_cannot_answer(
        self, shell: LocalEnvironment, store: ApprovalStore, request_id: str, home: Path, way: str
    ) -> None:
        call = f"{HANDRAIL} approvals answer {request_id} once"
        done = shell.execute(way.format(call, quoted=shlex.quote(call), home=home), timeout=60)
        assert done.exit_code == 3
        assert "an agent cannot answer requests" in done.output.head.decode()
        assert [stored.request.id for stored in store.pending()] == [request_id]

    def test_it_cannot_answer_through_the_library(
        self, shell: LocalEnvironment, store: ApprovalStore, request_id: str, home: Path
    ) -> None:
        code = (
            "from pathlib import Path; from handrail.store.approvals import ApprovalStore; "
            "from handrail.protocols import Answer, Decision; "
            f"ApprovalStore(Path('{home}/state/approvals.db')).answer('{request_id}', Answer(Decision.ONCE, 'me'))"
        )
        done = shell.execute(f"env -u HANDRAIL_INSIDE {PYTHON} -c {shlex.quote(code)}", timeout=60)
        assert "Denied" in done.output.head.decode()
        assert [stored.request.id for stored in store.pending()] == [request_id]

    @pytest.mark.parametrize(
        "what", ["config set approvals.mode off", "config unset approvals.mode", "approvals revoke 1", "config edit"]
    )
    def test_it_cannot_change_the_settings(self, shell: LocalEnvironment, home: Path, what: str) -> None:
        (home / "config.yaml").write_text("approvals:\n  mode: manual\n")
        done = shell.execute(f"EDITOR=true {HANDRAIL} {what}", timeout=60)
        assert done.exit_code == 3
        assert (home / "config.yaml").read_text() == "approvals:\n  mode: manual\n"

    @pytest.mark.parametrize(
        "way",
        [
            "{call}",
            "{call} --yolo",
            "HANDRAIL_APPROVALS_MODE=off {call}",
            "mkdir h; echo 'approvals: {{mode: \"off\"}}' > h/config.yaml; HANDRAIL_HOME=$PWD/h {call}",
            "env -u HANDRAIL_INSIDE script -qec '{call} --yolo' /dev/null",
        ],
    )
    def test_a_runtime_of_its_own_asks_nobody_and_allows_nothing(
        self, shell: LocalEnvironment, tmp_path: Path, way: str
    ) -> None:
        done = shell.execute(way.format(call=f"{HANDRAIL} call shell command=@command.txt --json"), timeout=60)
        assert done.exit_code in (2, 3)
        (tmp_path / "command.txt").write_text("rm -rf build")
        done = shell.execute(way.format(call=f"{HANDRAIL} call shell command=@command.txt --json"), timeout=60)
        assert done.exit_code == 3, done.output
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "command",
    [
        "kill -HUP {pid}",
        "kill {pid}",
        "sleep 1; kill -s HUP -- {pid} 5",
        "kill -1 $(pidof handrail)",
        "kill -HUP `pgrep -f 'handrail serve'`",
        "pkill -HUP -f handrail",
        "systemctl --user reload handrail",
        "cp evil ~/.local/bin/handrail",
        "printf x > ~/bin/handrail",
        "ln -s /tmp/evil /usr/local/bin/handrail",
        "install -m 755 evil /opt/tools/bin/handrail",
    ],
)
def test_signals_to_us_and_a_program_of_our_name_ask(command: str) -> None:
    assert review(gate(), command.format(pid=os.getpid())).startswith("Not run: denied by")


@pytest.mark.parametrize("command", ["kill 1{pid}", "kill -0 4711", "handrail tools", "ls ~/.local/bin/handrail"])
def test_other_signals_and_a_look_at_our_program_do_not(command: str) -> None:
    assert review(gate(), command.format(pid=os.getpid())) == "allowed"


def test_a_file_of_our_name_among_programs_asks(tmp_path: Path) -> None:
    planted = Action(ActionKind.FILE_WRITE, str(tmp_path / "bin" / "handrail"), cwd=str(tmp_path))
    assert review(gate(), planted, tool="write_file").startswith("Not run: denied by")
    assert review(gate(), planted._replace(text=str(tmp_path / "handrail")), tool="write_file") == "allowed"
