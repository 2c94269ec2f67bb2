"""A command may be tried: it runs once with its connections held, its effect is shown, and it is kept or taken back."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Config, Handrail
from handrail.approval import Answer, ApprovalRequest, Decision
from handrail.effects import trial
from handrail.protocols import ActionKind
from handrail.settings.sections import ApprovalsConfig, EffectsConfig, TerminalConfig
from handrail.settings.services import NetworkConfig
from tests.environments.shell_host.watched_commands import snapshot
from tests.support import wait_until

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
        self.meanwhile: Callable[[], object] = lambda: None
        self.while_it_connects: Callable[[], object] = lambda: None
        self.pick = ""  # the lines that are kept, if not all

    def decide(self, request: ApprovalRequest) -> Answer:
        if request.kind is ActionKind.COMMAND:
            self.commands.append(request)
            return Answer(Decision.TRY)
        if "connect" in request.reason:
            self.connections.append(request.text)
            self.while_it_connects()
            return Answer(self.connect)
        self.effects.append(request)
        if self.looks_at is not None:
            self.seen.append(self.looks_at.exists())
        self.meanwhile()
        return Answer(self.keep, edited=self.pick)


@pytest.fixture
def approver() -> Approver:
    return Approver()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "a").write_text("a")
    return folder


def opened(work: Path, home: Path, approver: Approver, effects: EffectsConfig, **more: Any) -> Handrail:
    terminal, approvals = TerminalConfig(cwd=str(work)), ApprovalsConfig(mode="manual")
    config = Config(terminal=terminal, approvals=approvals, effects=effects, **more)
    return Handrail(config, home=home, approver=approver)


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
    assert [(one.rule, one.start, one.end) for one in approver.effects[0].concerns] == [(trial.TRIED, 0, 0)]
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


def test_what_it_did_is_shown_as_a_diff(run: Run, work: Path, approver: Approver) -> None:
    run("rm -rf old; echo ran >> new")
    assert "-a" in approver.effects[0].preview.splitlines()
    assert "+ran" in approver.effects[0].preview.splitlines()


@pytest.mark.parametrize("tries", ["run", "isolated"])
def test_a_part_of_it_is_kept(request: pytest.FixtureRequest, work: Path, approver: Approver, tries: str) -> None:
    run: Run = request.getfixturevalue(tries)
    (work / "notes").write_text("one\n")
    approver.pick = f"~ {work}/notes\n+ {work}/b\n+ /never/offered"
    result = run("rm -rf old; echo b > b; echo c > c; echo two >> notes")
    assert "+two" in approver.effects[0].preview.splitlines()
    assert "Not kept" in str(result["error"])
    assert f"{work}/old/a" in str(result["error"])
    assert (work / "old" / "a").read_text() == "a"
    assert sorted(os.listdir(work)) == ["b", "notes", "old"]
    assert (work / "notes").read_text() == "one\ntwo\n"


def test_a_file_is_kept_with_the_new_folder_that_it_is_in(isolated: Run, work: Path, approver: Approver) -> None:
    approver.pick = f"+ {work}/made/b"
    isolated("rm -rf old; mkdir made; echo b > made/b; echo c > made/c")
    assert sorted(os.listdir(work)) == ["made", "old"]
    assert os.listdir(work / "made") == ["b"]


def test_picking_nothing_keeps_nothing(run: Run, work: Path, approver: Approver) -> None:
    approver.pick = "nothing of that"
    assert run("rm -rf old; echo ran >> new")["error_type"] == "denied"
    assert sorted(os.listdir(work)) == ["old"]


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


_SWAP = """
import ctypes, os, socket, struct, threading, time
def address(port):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
room = ctypes.create_string_buffer(address(PORT), 16)
def swap():
    while not os.path.exists("asked"): time.sleep(0.01)
    ctypes.memmove(room, address(OTHER), 16)
    open("swapped", "w").close()
threading.Thread(target=swap).start()
s = socket.socket()
print(ctypes.CDLL(None).connect(s.fileno(), room, 16), s.getpeername()[1])
"""


def test_a_connection_goes_where_it_was_said_to_go_though_no_other_call_has_to_wait(
    work: Path, tmp_path: Path, approver: Approver
) -> None:
    def swap() -> None:
        (work / "asked").touch()
        wait_until((work / "swapped").exists)

    approver.connect, approver.while_it_connects = Decision.ONCE, swap
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
        opened(work, tmp_path / "home", approver, EffectsConfig(), network=NetworkConfig(contain="off")) as app,
    ):
        port = server.getsockname()[1]
        code = _SWAP.replace("PORT", str(port)).replace("OTHER", str(other.getsockname()[1]))
        (work / "swap.py").write_text(code)
        result = app.handle_function_call("terminal", {"command": "rm -rf old; python3 swap.py"})
    assert (approver.connections, json.loads(result)["output"]) == ([f"127.0.0.1:{port}"], f"0 {port}\n")


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


@pytest.fixture
def isolated(work: Path, tmp_path: Path, approver: Approver) -> Iterator[Run]:
    with opened(work, tmp_path / "home", approver, EffectsConfig(tries="isolated")) as app:
        yield lambda command: dict(json.loads(app.handle_function_call("terminal", {"command": command})))
    assert not list((tmp_path / "home" / "state" / "tried").iterdir())


_MIXED = (
    "rm -rf old; mkdir -p new/deep; echo one > new/deep/file; ln -s deep new/link; chmod 700 kept; echo more >> kept/b"
)


def test_an_isolated_try_is_seen_by_nobody_and_dropped_without_a_trace(
    isolated: Run, work: Path, approver: Approver
) -> None:
    (work / "kept").mkdir(mode=0o755)
    (work / "kept" / "b").write_text("b\n")
    before = snapshot(work)
    approver.keep, approver.looks_at = Decision.DENY, work / "new"
    result = isolated(f"{_MIXED}; cat kept/b; exit 3")
    assert result["output"] == "b\nmore\n"
    assert result["error_type"] == "denied"
    assert approver.seen == [False]
    shown = approver.effects[0].text.splitlines()
    assert {f"- {work}/old/a", f"+ {work}/new/deep/file", f"~ {work}/kept/b"} <= set(shown)
    assert snapshot(work) == before


def test_what_is_kept_of_an_isolated_try_has_run_once_and_can_be_undone(
    work: Path, tmp_path: Path, approver: Approver
) -> None:
    (work / "kept").mkdir(mode=0o755)
    (work / "kept" / "b").write_text("b\n")
    before = snapshot(work)
    with opened(work, tmp_path / "home", approver, EffectsConfig(tries="isolated")) as app:

        def run(command: str) -> dict[str, Any]:
            return dict(json.loads(app.handle_function_call("terminal", {"command": command})))

        run("word=hidden; greet() { echo hello; }; sub=1")
        result = run(f"{_MIXED}; greet; echo $word; cd kept")
        assert result["output"] == "hello\nhidden\n"
        assert result["cwd"] == str(work / "kept")
        assert (work / "new" / "link" / "file").read_text() == "one\n"
        assert (work / "kept" / "b").read_text() == "b\nmore\n"
        assert stat.S_IMODE((work / "kept").stat().st_mode) == 0o700
        assert not (work / "old").exists()
        effects = app.effects.describe(result["call"])
        assert str(work / "old" / "a") in {one["path"] for one in effects["lost"]}
        assert app.undo(result["call"])["status"] == "undone"
    assert snapshot(work) == before


def test_an_isolated_try_works_in_a_folder_of_any_name(tmp_path: Path, approver: Approver) -> None:
    work = tmp_path / "it's $(touch x) a b"
    (work / "old").mkdir(parents=True)
    with opened(work, tmp_path / "home", approver, EffectsConfig(tries="isolated")) as app:
        result = json.loads(app.handle_function_call("terminal", {"command": "rm -rf old"}))
    assert "error" not in result
    assert list(work.iterdir()) == []


def test_what_a_killed_try_has_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "7" / "0" / "kernel" / "work" / "inner").mkdir(parents=True)
    (tmp_path / "7" / "0" / "kernel" / "work").chmod(0)
    trial.remove(tmp_path / "7")
    assert not (tmp_path / "7").exists()


def test_an_isolated_try_is_not_kept_over_what_somebody_else_has_changed(
    isolated: Run, work: Path, approver: Approver
) -> None:
    approver.meanwhile = lambda: (work / "old" / "late").write_text("mine")
    result = isolated("rm -rf old; echo x > new")
    assert f"somebody else has changed {work}/old/late" in str(result["error"])
    assert (work / "old" / "late").read_text() == "mine"
    assert not (work / "new").exists()


def test_an_isolated_try_changes_nothing_outside_and_reaches_no_host(
    isolated: Run, work: Path, approver: Approver, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = isolated(
            f"rm -rf old; echo x > {tmp_path}/beside; echo x > /tmp/handrail-beside; (echo x > /dev/tcp/127.0.0.1/{port})"
        )
    assert "refused" in str(result["output"])
    assert not (tmp_path / "beside").exists()
    assert not Path("/tmp/handrail-beside").exists()
    assert not (work / "old").exists()
