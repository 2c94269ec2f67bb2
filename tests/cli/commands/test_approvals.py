"""`handrail approvals` and what `doctor` says of the gate."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from handrail.approval.settings import add_to_allowlist
from handrail.config.config_file import ConfigFile
from handrail.protocols import ActionKind, Answer, ApprovalRequest, Concern, Decision
from handrail.store.approvals import ApprovalStore
from tests.approval.agent_questions import CWD, line, write_history
from tests.cli.conftest import Cli, run_here
from tests.support import in_threads

KIND = "fs.rm.recursive@project:/srv/app"


@pytest.fixture
def store(home: Path) -> ApprovalStore:
    return ApprovalStore(home / "state" / "approvals.db")


def ask(store: ApprovalStore, text: str = "rm -rf build", seconds: float = 600, preview: str = "") -> str:
    concern = Concern(
        "fs.rm.recursive", "deletes a tree of files", 0, len(text), KIND, "fs.rm.recursive below /srv/app"
    )
    request = ApprovalRequest(
        "terminal",
        {},
        concern.why,
        kind=ActionKind.COMMAND,
        text=text,
        cwd="/srv/app",
        environment="local",
        concerns=(concern,),
        offers=tuple(Decision),
        expires_at=time.time() + seconds,
        preview=preview,
    )
    return store.ask(request, fingerprint=text).request.id


class TestList:
    def test_nothing_waits(self) -> None:
        ran = run_here("approvals", "list")
        assert ran.code == 0
        assert ran.out.startswith("No requests are pending. ")

    def test_what_waits_is_shown_as_it_would_run(self, store: ApprovalStore) -> None:
        request_id = ask(store, "rm -rf \x1b[2Kbuild")
        ran = run_here("approvals", "list")
        assert r"    rm -rf \x1b[2Kbuild" in ran.out
        assert f"handrail approvals answer {request_id}" in ran.out
        assert "\x1b" not in ran.out

    def test_grants_and_what_is_always_allowed(self, store: ApprovalStore, home: Path) -> None:
        store.grants.add("session:s1", [KIND], by="cli", uses=3)
        (home / "config.yaml").write_text(f'command_allowlist: ["{KIND}"]\n')
        ran = run_here("approvals", "list")
        assert "session s1" in ran.out
        assert "3 more times" in ran.out
        listed = json.loads(run_here("approvals", "list", "--json").out)
        assert listed["always"] == [KIND]
        assert listed["grants"][0]["scope"] == "session:s1"


class TestShow:
    def test_all_that_would_be_written(self, store: ApprovalStore) -> None:
        content = "--- /dev/null\n+++ a\n@@ -0,0 +1,60 @@\n" + "".join(f"+line {number}\n" for number in range(60))
        request_id = ask(store, "/srv/app/a", preview=content + "+\x1b[2Jthe end\n")
        listed, shown = run_here("approvals", "list").out, run_here("approvals", "show", request_id[:5]).out
        assert f"approvals show {request_id}" in listed
        assert "line 59" not in listed
        assert r"+\x1b[2Jthe end" in shown
        assert "line 59" in json.loads(run_here("approvals", "show", request_id, "--json").out)["preview"]

    def test_it_is_seen_where_it_is_answered(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store, "/srv/app/a", preview="".join(f"line {number}\n" for number in range(60)))
        with cli.terminal("approvals", "answer", request_id) as terminal:
            terminal.wait_for("deny, instead, view? ")
            assert "line 59" not in terminal.text
            terminal.type("v")
            terminal.wait_for("deny, instead? ")
            assert "line 59" in terminal.text
            terminal.type("once\n")
            assert terminal.end() == 0
        assert "Allowed once: terminal: /srv/app/a" in terminal.text


class TestAnswer:
    def test_an_id_that_could_be_anothers_is_refused(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        ran = cli("approvals", "answer", request_id[:3], "deny")
        assert ran.code == 2
        assert "give at least 4 characters" in ran.err
        assert len(store.pending()) == 1

    def test_a_no_needs_no_terminal(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        assert cli("approvals", "answer", request_id, "deny").code == 0
        stored = store.get(request_id)
        assert stored.answer == Answer(Decision.DENY, "cli")

    def test_a_no_carries_its_reason(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        assert cli("approvals", "answer", request_id, "deny", "--why", "move it instead").code == 0
        assert store.get(request_id).answer == Answer(Decision.DENY, "cli", "move it instead")

    def test_a_yes_needs_one(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        ran = cli("approvals", "answer", request_id, "once")
        assert ran.code == 3
        assert "approving needs a terminal" in ran.err
        assert len(store.pending()) == 1

    def test_the_question_is_shown_and_enter_alone_is_no_answer(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        with cli.terminal("approvals", "answer", request_id[:5]) as terminal:
            terminal.wait_for("deny, instead? ")
            assert "rm -rf build" in terminal.text
            terminal.type("\n")
            terminal.wait_for("deny, instead? ", times=2)
            assert "Press the first letter of a word" in terminal.text
            terminal.type("session\n")
            assert terminal.end() == 0
        assert store.get(request_id).answer == Answer(Decision.SESSION, "cli")

    @pytest.mark.parametrize(
        ("happened", "told"),
        [
            ("answered", "was answered"),
            ("expired", "it timed out and was denied"),
            ("withdrawn", "the call was cancelled"),
        ],
    )
    def test_a_late_answer_is_told_what_happened(self, store: ApprovalStore, happened: str, told: str) -> None:
        request_id = ask(store, seconds=-1 if happened == "expired" else 600)
        if happened == "answered":
            store.answer(request_id, Answer(Decision.ONCE, "phone"))
        elif happened == "withdrawn":
            store.withdraw(request_id)
        ran = run_here("approvals", "answer", request_id, "deny")
        assert ran.code == 1
        assert told in ran.err
        assert ("by phone: once" in ran.err) is (happened == "answered")

    def test_a_wrong_answer_and_a_wrong_id(self, cli: Cli, store: ApprovalStore) -> None:
        request_id = ask(store)
        ran = cli("approvals", "answer", request_id, "maybe")
        assert ran.code == 2
        assert "it takes once, try, task, session, always, deny" in ran.err
        assert "no request 'nothing'" in cli("approvals", "answer", "nothing", "deny").err

    def test_json(self, store: ApprovalStore) -> None:
        request_id = ask(store)
        assert json.loads(run_here("approvals", "answer", request_id, "deny", "--json").out) == {
            "id": request_id,
            "decision": "deny",
            "holds": True,
        }


class TestRevoke:
    def test_a_grant_by_its_number(self, store: ApprovalStore) -> None:
        store.grants.add("session:s", [KIND], by="cli")
        (grant,) = store.grants.all()
        assert run_here("approvals", "revoke", str(grant.id)).code == 0
        assert store.grants.all() == []

    def test_what_is_always_allowed_by_its_kind(self, home: Path) -> None:
        path = home / "config.yaml"
        path.write_text(f'# mine\ncommand_allowlist:\n  - "{KIND}"\n  - x.y@home # kept\n')
        assert run_here("approvals", "revoke", KIND).code == 0
        assert path.read_text() == "# mine\ncommand_allowlist:\n  - x.y@home # kept\n"

    def test_what_is_not_there(self) -> None:
        for name in ("7", KIND):
            assert run_here("approvals", "revoke", name).code == 2


def test_two_writers_of_the_allowlist_lose_nothing(home: Path) -> None:
    path = home / "config.yaml"
    path.write_text("# mine\nfiles:\n  roots: []  # all\n")
    in_threads(6, lambda who: [add_to_allowlist(path, [f"rule.n{who}-{n}@home", "same.one@home"]) for n in range(5)])
    listed = ConfigFile(path).load().command_allowlist
    assert sorted(listed) == sorted(["same.one@home", *(f"rule.n{who}-{n}@home" for who in range(6) for n in range(5))])
    assert path.read_text().startswith("# mine\nfiles:\n  roots: []  # all\n")


def test_two_processes_can_answer_always_at_once(with_tools: Cli) -> None:
    with_tools.configure("# mine\n")
    with (
        with_tools.terminal("call", "shell", "command=rm -rf build") as first,
        with_tools.terminal("call", "shell", "command=rm -rf ~/pictures") as second,
    ):
        for terminal in (first, second):
            terminal.wait_for("deny, edit, instead? ")
        for terminal in (first, second):
            terminal.type("always\n")
        assert [first.end(), second.end()] == [0, 0]
    listed = ConfigFile(with_tools.home / "config.yaml").load().command_allowlist
    assert sorted(listed) == ["fs.rm.recursive@home", f"fs.rm.recursive@project:{with_tools.cwd}"]
    assert (with_tools.home / "config.yaml").read_text().startswith("# mine\n")


class TestLog:
    def test_who_what_which_rule_and_how_long(self, with_tools: Cli) -> None:
        with_tools("call", "shell", "command=rm -rf build")
        with_tools("call", "shell", "command=rm -rf /", "--yolo")
        with_tools("call", "shell", "command=rm -rf dist", "--yolo")
        records = with_tools("approvals", "log", "--json").json
        assert [(record["text"], record["decision"], record["by"]) for record in records] == [
            ("rm -rf build", "deny", "policy"),
            ("rm -rf /", "deny", "floor"),
            ("rm -rf dist", "allow", "yolo"),
        ]
        assert records[0]["keys"] == [f"fs.rm.recursive@project:{with_tools.cwd}"]
        table = with_tools("approvals", "log", "--last", "1").out
        assert "rm -rf dist" in table
        assert "rm -rf build" not in table

    def test_nothing_yet(self) -> None:
        assert run_here("approvals", "log").out.startswith("No decisions yet. ")


class TestSimulate:
    def test_the_history_is_judged_under_another_policy(self, with_tools: Cli) -> None:
        for text in ("ls -la", "git push", "rm -rf build", "rm -rf /"):
            with_tools("call", "shell", f"command={text}")
        policy = with_tools.file("policy.yaml", "approvals:\n  deny: [git push]\n  allow: [rm -rf build]\n")
        simulated = with_tools("approvals", "simulate", str(policy), "--json").json
        assert simulated["counts"] == {"actions": 4, "changed": 2, "allow": 2, "ask": 0, "deny": 2}
        assert [(trial["text"], trial["was"], trial["would"]) for trial in simulated["trials"]] == [
            ("ls -la", "allow", "allow"),
            ("git push", "allow", "deny"),
            ("rm -rf build", "asked (deny)", "allow"),
            ("rm -rf /", "deny", "deny"),
        ]
        shown = with_tools("approvals", "simulate", str(policy)).out
        assert "allow → deny" in shown
        assert "4 actions: 2 would be decided otherwise." in shown
        assert not (with_tools.cwd / "build").exists()

    def test_a_policy_that_cannot_be_used_is_named(self, cli: Cli) -> None:
        assert "is not there" in cli("approvals", "simulate", "nothing.yaml").err
        policy = cli.file("policy.yaml", "approvals: {allow: ['*']}\n")
        ran = cli("approvals", "simulate", str(policy))
        assert ran.code == 1
        assert "would allow everything" in ran.err


class TestDoctor:
    @pytest.mark.parametrize(
        ("text", "health", "told"),
        [
            ("", "ok", "mode manual"),
            ("approvals: {mode: 'off'}\n", "missing", "nobody is asked"),
            ("approvals: {mode: smart}\n", "missing", "no model to ask"),
            ("command_allowlist: ['*']\n", "broken", "does not say how far"),
        ],
    )
    def test_it_tells_the_state_of_the_gate(self, home: Path, text: str, health: str, told: str) -> None:
        (home / "config.yaml").write_text(text)
        findings = json.loads(run_here("doctor", "--json").out)["findings"]
        (finding,) = [finding for finding in findings if finding["what"] == "approvals"]
        assert finding["health"] == health
        assert told in finding["detail"]


class TestSuggest:
    @pytest.fixture(autouse=True)
    def history(self, home: Path) -> None:
        lines = [line("rm -rf build", at=number * 86_400.0, session=f"s{number}") for number in range(10)]
        lines += [line("dropdb 'shop_a@b'", at=number, session="s1") for number in range(5)]
        write_history(home / "state", lines)

    def test_rules_are_shown_with_what_else_they_allow(self, home: Path) -> None:
        shown = run_here("approvals", "suggest").out
        assert f"fs.rm.recursive@project:{CWD}" in shown
        assert "answers 10 of 15 questions as you did" in shown
        assert "CAREFUL: an agent could have brought this about by asking" in shown
        listed = json.loads(run_here("approvals", "suggest", "--json").out)
        assert listed["answered"] == 15
        assert all(0 < len(rule["also_allows"]) <= 5 for rule in listed["rules"])

    def test_accepting_writes_to_the_configuration_and_asks_no_more(self, home: Path) -> None:
        (home / "config.yaml").write_text("# mine\napprovals:\n  allow: [docker compose down]\n")
        found = {rule["setting"]: rule for rule in json.loads(run_here("approvals", "suggest", "--json").out)["rules"]}
        ids = [word for rule in found.values() for word in ("--accept", rule["id"])]
        assert run_here("approvals", "suggest", *ids).code == 0
        assert (home / "config.yaml").read_text().startswith("# mine\n")
        config = ConfigFile(home / "config.yaml").load()
        assert config.command_allowlist == (f"fs.rm.recursive@project:{CWD}",)
        assert config.approvals.allow == ("docker compose down", "dropdb shop_a@b")
        assert json.loads(run_here("approvals", "suggest", "--json").out)["questions"] == 0

    def test_an_unknown_id_writes_nothing(self, cli: Cli, home: Path) -> None:
        ran = cli("approvals", "suggest", "--accept", "ffffff")
        assert ran.code == 2
        assert "no suggestion ffffff" in ran.err
        assert not (home / "config.yaml").exists()
