"""A command may be tried: it runs once with its connections held, its effect is shown, and it is kept or taken back."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Config, Handrail
from handrail.approval import Answer, ApprovalRequest, Decision
from handrail.protocols import ActionKind
from handrail.settings.sections import ApprovalsConfig, EffectsConfig, TerminalConfig

Run = Callable[[str], dict[str, object]]


class Approver:
    """Tries commands, and answers what comes then: `keep` the effect, `connect`."""

    name = "test"

    def __init__(self) -> None:
        self.keep, self.connect = Decision.ONCE, Decision.DENY
        self.commands: list[ApprovalRequest] = []
        self.effects: list[ApprovalRequest] = []
        self.connections: list[str] = []
        self.seen: list[bool] = []
        self.looks_at: Path | None = None

    def decide(self, request: ApprovalRequest) -> Answer:
        if request.kind is ActionKind.COMMAND:
            self.commands.append(request)
            return Answer(Decision.TRY)
        if "connect" in request.reason:
            self.connections.append(request.text)
            return Answer(self.connect)
        self.effects.append(request)
        if self.looks_at is not None:
            self.seen.append(self.looks_at.exists())
        return Answer(self.keep)


@pytest.fixture
def approver() -> Approver:
    return Approver()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "a").write_text("a")
    return folder


def opened(work: Path, home: Path, approver: Approver, effects: EffectsConfig) -> Handrail:
    terminal, approvals = TerminalConfig(cwd=str(work)), ApprovalsConfig(mode="manual")
    return Handrail(Config(terminal=terminal, approvals=approvals, effects=effects), home=home, approver=approver)


@pytest.fixture
def run(work: Path, tmp_path: Path, approver: Approver) -> Iterator[Run]:
    with opened(work, tmp_path / "home", approver, EffectsConfig()) as app:
        yield lambda command: dict(json.loads(app.handle_function_call("terminal", {"command": command})))


def test_what_is_not_kept_is_taken_back_after_it_was_shown(run: Run, work: Path, approver: Approver) -> None:
    approver.keep, approver.looks_at = Decision.DENY, work / "new"
    result = run("rm -rf old; echo ran >> new")
    assert Decision.TRY in approver.commands[0].offers
    assert approver.effects[0].offers == (Decision.ONCE, Decision.DENY)
    shown = approver.effects[0].text.splitlines()
    assert f"- {work}/old/a" in shown
    assert f"+ {work}/new" in shown
    assert approver.seen == [True]
    assert result["error_type"] == "denied"
    assert "not kept" in str(result["error"])
    assert sorted(os.listdir(work)) == ["old"]
    assert (work / "old" / "a").read_text() == "a"


def test_what_is_kept_stays_and_has_run_once(run: Run, work: Path, approver: Approver) -> None:
    result = run("rm -rf old; echo ran >> new")
    assert (result["exit_code"], len(approver.effects)) == (0, 1)
    assert (work / "new").read_text() == "ran\n"
    assert not (work / "old").exists()


def test_connections_wait_and_the_program_goes_on_without_them_after_a_no(
    run: Run, work: Path, approver: Approver
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = f"rm -rf old; (echo x > /dev/tcp/127.0.0.1/{port}) 2>&1; true"
        assert "denied" in str(run(command)["output"])
        assert approver.connections == [f"127.0.0.1:{port}"]
        (work / "old").mkdir()
        approver.connect = Decision.ONCE
        run(command)
        server.settimeout(30)
        with server.accept()[0] as connection:
            assert connection.recv(10) == b"x\n"
    assert f"! contacted 127.0.0.1:{port}, which cannot be taken back" in approver.effects[-1].text


def test_services_on_this_machine_wait_as_well(run: Run, work: Path, approver: Approver) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work / "s"))
        server.listen()
        run("rm -rf old; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"s\")'")
    assert approver.connections == [str(work / "s")]


def test_processes_that_it_left_end_with_what_is_not_kept(run: Run, work: Path, approver: Approver) -> None:
    approver.keep = Decision.DENY
    result = run("rm -rf old; (while sleep 0.05; do echo x >> late; done) > /dev/null 2>&1 &")
    assert "as it was before" in str(result["error"])
    assert sorted(os.listdir(work)) == ["old"]


def test_it_is_not_offered_where_nothing_can_be_taken_back(work: Path, tmp_path: Path, approver: Approver) -> None:
    with opened(work, tmp_path / "home", approver, EffectsConfig(enabled=False)) as app:
        result = json.loads(app.handle_function_call("terminal", {"command": "rm -rf old"}))
    assert Decision.TRY not in approver.commands[0].offers
    assert result["error_type"] == "denied"  # and a try that was not offered is no yes
    assert (work / "old" / "a").exists()
