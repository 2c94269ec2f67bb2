"""What is typed: keys as a terminal sends them, without a terminal."""

from __future__ import annotations

import re
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from handrail.cli.chat.input import Input, _Words, clipboard_image
from handrail.cli.chat.pastes import Pastes

CHOICES: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "help": ("what there is", list),
    "resume": ("go on", lambda: ["20260101-1\tthe parser", "20260102-2"]),
}


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Callable[..., str]]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        modes: list[str] = []

        opened: list[Pastes] = []

        def read(keys: str, text: str = "", *, woken_by: Callable[[Input], None] = lambda made: None) -> str:
            opened.append(Pastes())
            made = Input(
                history=tmp_path / "state" / "history",
                choices=lambda: CHOICES,
                resources=lambda: ["docs:notes://one"],
                toolbar=lambda: "",
                coloured=False,
                folder=lambda: str(tmp_path),
                next_mode=lambda: modes.append("next"),
                pastes=opened[-1],
            )
            pipe.send_text(keys)

            def prompt() -> str:
                woken_by(made)
                return "› "

            return made.read(prompt, text=text)

        read.modes = modes  # type: ignore[attr-defined]
        yield read
        for each in opened:
            each.close()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("hello\r", "hello"),
        ("two\x1b\rlines\r", "two\nlines"),
        ("two\nlines\r", "two\nlines"),
        ("two\\\rlines\r", "two\nlines"),
        ("\x1b[200~pasted\r\n  text\r\n\x1b[201~\r", "pasted\n  text\n"),
        ("helo\x1b[Dl\r", "hello"),
        ("日本\r", "日本"),
    ],
    ids=["enter sends", "alt-enter", "ctrl-j", "backslash", "paste", "arrow", "wide"],
)
def test_what_keys_mean(typed: Callable[..., str], keys: str, message: str) -> None:
    assert typed(keys) == message


def test_what_was_taken_back_stands_there_to_be_changed(typed: Callable[..., str]) -> None:
    assert typed(" again\r", text="do it") == "do it again"


def test_reading_is_left_for_a_plugin_unless_something_is_typed(typed: Callable[..., str]) -> None:
    assert typed("", woken_by=lambda made: threading.Thread(target=made.wake).start()) == ""
    assert typed(" it\r", text="do", woken_by=lambda made: made.wake()) == "do it"


def test_ctrl_d_and_ctrl_c_are_told_apart(typed: Callable[..., str]) -> None:
    with pytest.raises(EOFError):
        typed("\x04")
    with pytest.raises(KeyboardInterrupt):
        typed("half a sent\x03")


def test_history_is_kept_for_the_next_chat_and_from_others_eyes(typed: Callable[..., str], tmp_path: Path) -> None:
    typed("remember me\r")
    assert typed("\x1b[A\r") == "remember me"
    assert stat.S_IMODE((tmp_path / "state" / "history").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/", ["/help", "/resume"]),
        ("/re", ["/resume"]),
        ("/resume ", ["20260101-1", "20260102-2"]),
        ("/resume 20260102", ["20260102-2"]),
        ("/nonsense ", []),
        ("some words", []),
        ("look at ./no", ["tes.txt"]),
        ("!cat no", ["tes.txt"]),
    ],
)
def test_what_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]) -> None:
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    found = _Words(lambda: CHOICES, lambda: ["docs:notes://one"], lambda: ".").get_completions(
        Document(line, len(line)), CompleteEvent()
    )
    assert [each.text for each in found] == offered


def test_a_session_is_offered_with_its_title() -> None:
    line = "/resume 20260101"
    (found,) = _Words(lambda: CHOICES, list, lambda: ".").get_completions(Document(line, len(line)), CompleteEvent())
    assert (found.text, found.display_meta_text) == ("20260101-1", "the parser")


def test_a_long_paste_is_folded_and_sent_whole(typed: Callable[..., str]) -> None:
    long = "\n".join(f"line {number}" for number in range(400))
    assert typed(f"look: \x1b[200~{long}\x1b[201~ please\r") == f"look: {long} please"
    assert Pastes().folded(long) == "[Pasted text #1 +400 lines]"
    assert Pastes().folded(f"{long}\n") == "[Pasted text #1 +400 lines]"
    assert Pastes().unfolded("[Pasted text #7 +3 lines]") == "[Pasted text #7 +3 lines]"


def test_shift_tab_changes_the_mode(typed: Callable[..., str]) -> None:
    assert typed("a\x1b[Z\x1b[Zb\r") == "ab"
    assert typed.modes == ["next", "next"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("@ord", "@shop/orders.py"),
        ("@shpri", "@shop/prices.py"),
        ("@a b", ""),
        ("@note", '@"my notes.md"'),
        ("@zzz", ""),
        ("@docs:", "@docs:notes://one"),
    ],
)
def test_files_are_completed_after_an_at(word: str, first: str, tmp_path: Path) -> None:
    for name in ("shop/orders.py", "shop/prices.py", "my notes.md", ".git/orders"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    document = Document(f"look at {word}")
    found = [
        each.text
        for each in _Words(lambda: CHOICES, lambda: ["docs:notes://one"], lambda: str(tmp_path)).get_completions(
            document, CompleteEvent()
        )
    ]
    assert (found[0] if found else "") == first
    assert not any(".git" in each for each in found)


def test_ctrl_v_attaches_the_image_in_the_clipboard(
    typed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "xclip"
    program.write_text("#!/bin/sh\nprintf '\\211PNG and more'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert clipboard_image() == b"\x89PNG and more"
    kept = re.fullmatch(r"see @(/\S+/image-1\.png)", typed("see \x16\r").strip())
    assert kept
    assert Path(kept[1]).read_bytes() == b"\x89PNG and more"
    program.write_text("#!/bin/sh\necho text\n")
    assert typed("see \x16it\r") == "see it"


def test_the_history_keeps_a_paste_whole(typed: Callable[..., str], tmp_path: Path) -> None:
    typed(f"\x1b[200~{chr(10).join(['pasted'] * 20)}\x1b[201~\r")
    kept = (tmp_path / "state" / "history").read_text()
    assert kept.count("pasted") == 20
    assert "[Pasted text" not in kept
