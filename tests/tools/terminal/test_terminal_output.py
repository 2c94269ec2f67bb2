"""What becomes of a command's output: the model's part, the stored whole, and the news on the way."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.command_request import Capture
from handrail.environments.output import Masker, OutputSink
from handrail.environments.tasks import TaskEnvironments
from handrail.protocols import ResultWriter
from handrail.runtime.dispatch import Runtime
from handrail.settings.sections import TerminalConfig
from handrail.store.results import FileResultStore
from handrail.testing import MemoryResultStore
from handrail.types import Progress, ToolContext

from ...support import costs_less_than
from .conftest import Terminal

SECRET = "s3cret-of-the-test"


class TestWhatTheModelGets:
    def test_a_short_output_is_whole(self, terminal: Terminal, stored: MemoryResultStore) -> None:
        answer = terminal("seq 1000")
        assert answer == {"output": "".join(f"{number}\n" for number in range(1, 1001)), "exit_code": 0}
        assert stored.texts == {}

    def test_of_a_long_output_head_and_tail_and_the_rest_by_its_id(
        self, terminal: Terminal, here: Runtime, stored: MemoryResultStore
    ) -> None:
        answer = terminal("seq 20000")
        output = answer["output"]
        assert len(output) < 21_000
        assert output.startswith("1\n2\n")
        assert output.endswith("\n20000\n")
        kept = answer["stored"]["output"]
        assert f"read_result with id {kept['id']}" in output
        assert stored.texts[kept["id"]] == "".join(f"{number}\n" for number in range(1, 20_001))
        assert (kept["chars"], kept["lines"]) == (len(stored.texts[kept["id"]]), 20_001)
        page = json.loads(here.handle("read_result", {"id": kept["id"], "pattern": "^17777$"}))  # type: ignore[arg-type]
        assert page["matches"] == [{"line": 17777, "text": "17777"}]

    def test_a_very_long_one_is_stored_while_it_comes(self, terminal: Terminal, stored: MemoryResultStore) -> None:
        answer = terminal("seq 200000")
        text = stored.texts[answer["stored"]["output"]["id"]]
        assert text == "".join(f"{number}\n" for number in range(1, 200_001))
        assert answer["output"].startswith("1\n")
        assert answer["output"].endswith("\n200000\n")

    def test_a_progress_bar_of_megabytes_is_one_line(self, terminal: Terminal, stored: MemoryResultStore) -> None:
        answer = terminal("for i in {1..40000}; do printf '\\r[####      ] %d' $i; done; echo; echo done")
        assert answer["output"] == "[####      ] 40000\ndone\n"
        assert stored.texts == {}

    def test_text_that_touches_binary_output_is_kept(self, terminal: Terminal) -> None:
        answer = terminal(
            "printf 'before: '; head -c 400 /dev/zero | tr '\\0' '\\377'; printf ' and after\\n'; echo ready"
        )
        assert answer["output"].endswith("\nbefore: \n[401 bytes that are not text]\n and after\nready\n")

    def test_binary_output_is_described(self, terminal: Terminal) -> None:
        answer = terminal("head -c 300000 /bin/bash")
        assert answer["output"].startswith("[binary output of 300,000 bytes, starting with 7f 45 4c 46")
        assert "/lib64/ld-linux" in answer["output"]
        assert len(answer["output"]) < 4000

    def test_output_that_mixes_text_and_binary_keeps_its_lines(self, terminal: Terminal) -> None:
        for size in (4000, 400_000):  # also one of which only head and tail are kept
            answer = terminal(
                f"echo configuring; head -c {size} /dev/urandom | tr -d '\\n'; echo; echo error: disk full"
            )
            assert "configuring\n" in answer["output"]
            assert answer["output"].endswith("error: disk full\n")
            assert "bytes that are not text]" in answer["output"]
            assert len(answer["output"]) < 1000

    def test_a_short_word_before_and_after_binary_data_is_kept(self, terminal: Terminal) -> None:
        answer = terminal("echo start; head -c 3000 /dev/urandom; echo; echo end")
        assert "\nText in it:\nstart\n" in answer["output"]
        assert answer["output"].endswith("end\n")

    def test_binary_after_text_is_noticed(self, terminal: Terminal) -> None:
        answer = terminal("seq 5000; head -c 9000 /dev/urandom | tr -d '\\n'; echo; echo the end")
        assert "\n5000\n[" in answer["output"]
        assert answer["output"].endswith("the end\n")
        assert "\\x" not in answer["output"]

    def test_binary_output_of_any_size_costs_little(self, terminal: Terminal) -> None:
        with costs_less_than(2):
            answer = terminal("head -c 20000000 /dev/zero", timeout=60)
        assert answer["output"].startswith("[binary output of 20,000,000 bytes, starting with 00 00")
        assert "stored" not in answer

    @pytest.mark.parametrize("command", ["find /etc -maxdepth 1 -print0", "printf 'caf\\xe9\\n'", "printf 'a\\0b\\0'"])
    def test_odd_bytes_in_text_do_not_make_it_binary(self, terminal: Terminal, command: str) -> None:
        assert "binary output" not in terminal(command)["output"]

    def test_both_streams_come_in_order(self, terminal: Terminal) -> None:
        assert terminal("echo a; echo b >&2; echo c")["output"] == "a\nb\nc\n"


class TestLimits:
    @pytest.fixture
    def limits(self) -> TerminalConfig:
        return TerminalConfig(max_output_chars=1000, max_stored_bytes=300_000)

    def test_the_configuration_says_how_much_is_shown(self, terminal: Terminal) -> None:
        answer = terminal("seq 1000")
        assert len(answer["output"]) < 1300
        assert answer["output"].startswith("1\n2\n")
        assert answer["output"].endswith("\n1000\n")

    def test_over_the_cap_the_end_is_still_kept(self, terminal: Terminal, stored: MemoryResultStore) -> None:
        answer = terminal("seq 1000000")
        text = stored.texts[answer["stored"]["output"]["id"]]
        assert text.startswith("1\n2\n")
        assert text.endswith("\n1000000\n")
        assert "bytes were not kept" in text
        assert 300_000 < len(text) < 400_000


class TestSecrets:
    @pytest.fixture(autouse=True)
    def _secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SERVICE_TOKEN", SECRET)

    @pytest.fixture
    def limits(self) -> TerminalConfig:
        return TerminalConfig(env={"GIVEN_API_KEY": "k3y-that-was-given"})

    def test_the_runtimes_own_secrets_reach_no_command_and_no_output(self, terminal: Terminal) -> None:
        assert terminal("echo [$SERVICE_TOKEN]")["output"] == "[]\n"
        assert terminal(f"echo {SECRET[:8]}'{SECRET[8:]}'")["output"] == "[secret]\n"

    def test_one_that_was_given_is_used_but_not_shown(self, terminal: Terminal) -> None:
        answer = terminal("echo $GIVEN_API_KEY ${#GIVEN_API_KEY}")
        assert answer["output"] == "[secret] 18\n"

    def test_nor_one_that_was_given_to_a_single_task(self, terminal: Terminal, environments: TaskEnvironments) -> None:
        terminal("true")
        environments.override("t1", {"env": {"TASK_PASSWORD": "only-for-this-task"}})
        assert terminal("echo $TASK_PASSWORD")["output"] == "[secret]\n"

    @pytest.mark.parametrize("lines", [10, 30_000, 400_000])
    def test_wherever_it_stands_in_a_long_output(
        self, terminal: Terminal, stored: MemoryResultStore, lines: int
    ) -> None:
        answer = terminal(f"yes {SECRET} | head -n {lines}")
        assert SECRET[4:] not in json.dumps(answer)
        assert all(SECRET not in text for text in stored.texts.values())
        assert "[secret]\n" in answer["output"]

    @pytest.mark.parametrize("cap", range(199_990, 200_010))
    def test_no_cut_leaves_a_part_of_it(self, cap: int, stored: MemoryResultStore) -> None:
        limits = TerminalConfig(max_output_chars=1000, max_stored_bytes=cap)
        with Capture(ToolContext(tool="terminal", results=stored), Masker({SECRET}), limits) as capture:
            for _ in range(40):
                capture.sink.feed((SECRET + " ").encode() * 1000)
            shown = capture.shown(capture.sink.output())
        (whole,) = stored.texts.values()
        for text in (shown.text, whole):
            assert not [part for part in (SECRET[:6], SECRET[-6:]) if part in text]

    def test_not_in_the_news_either(self, terminal: Terminal) -> None:
        news: list[Progress] = []
        terminal(f"echo at {SECRET}; sleep 0.01", more={"on_progress": news.append})
        assert [one.message for one in news] == ["at [secret]"]

    def test_the_news_have_only_whole_lines(self) -> None:
        news: list[str] = []
        context = ToolContext(tool="terminal", on_progress=lambda progress: news.append(progress.message))
        capture = Capture(context, Masker({SECRET}), TerminalConfig())
        for piece in (SECRET[:9], SECRET[9:] + "\n", "one\ntwo\nthr", "ee\n" + "x" * 1000 + SECRET + "\nfour\n"):
            capture._reported_at = 0.0
            capture.sink.feed(piece.encode())
        assert news == ["two", "four"]


class TestNews:
    def test_the_last_line_is_told_now_and_then_while_it_runs(self, terminal: Terminal, tmp_path: Path) -> None:
        news: list[str] = []

        def listen(progress: Progress) -> None:
            news.append(progress.message)
            (tmp_path / "heard").touch()

        (tmp_path / "steps").write_bytes(b"step 1\n\x1b[32mstep 2\x1b[0m\n")  # one write of cat is one piece
        command = f"cat {tmp_path}/steps; until [ -e {tmp_path}/heard ]; do sleep 0.01; done; seq 100000"
        answer = terminal(command, more={"on_progress": listen})
        assert news[0] == "step 2"
        assert len(news) < 50
        assert answer["exit_code"] == 0

    def test_a_listener_that_fails_does_not_hurt_the_command(self, terminal: Terminal) -> None:
        def listen(progress: Progress) -> None:
            raise RuntimeError("deaf")

        assert terminal("echo a; seq 50000 | tail -n 1", more={"on_progress": listen})["output"] == "a\n50000\n"


class FullDisk(MemoryResultStore):
    """A store that has no room, from the beginning or after a while."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.discarded = 0

    def put(self, tool: str, text: str) -> Any:
        raise OSError(28, "No space left on device")

    def writer(self, tool: str) -> ResultWriter:
        if self.room <= 0:
            raise OSError(28, "No space left on device")
        store = self

        class Writer:
            def write(self, text: str) -> None:
                store.room -= len(text)
                if store.room < 0:
                    raise OSError(28, "No space left on device")

            def finish(self) -> Any:
                raise OSError(28, "No space left on device")

            def discard(self) -> None:
                store.discarded += 1

        return Writer()


class TestNoRoom:
    @pytest.mark.parametrize(("room", "lines"), [(0, 20_000), (0, 200_000), (100_000, 200_000), (10**9, 200_000)])
    def test_a_full_disk_costs_the_middle_and_nothing_else(
        self, terminal: Terminal, here: Runtime, room: int, lines: int
    ) -> None:
        store = here.results = FullDisk(room)
        answer = terminal(f"seq {lines}")
        assert answer["exit_code"] == 0
        assert answer["output"].startswith("1\n")
        assert answer["output"].endswith(f"\n{lines}\n")
        assert "lost: No space left on device" in answer["output"]
        assert "stored" not in answer
        assert store.discarded == (1 if room else 0)

    def test_without_a_store_the_middle_is_lost_and_that_is_said(self, terminal: Terminal, here: Runtime) -> None:
        here.results = None
        answer = terminal("seq 200000")
        assert "lost: this runtime has no result store" in answer["output"]
        assert answer["output"].endswith("\n200000\n")


def test_a_command_that_fails_in_the_middle_leaves_no_half_stored_result(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    with Capture(ToolContext(tool="terminal", results=store), Masker(()), TerminalConfig()) as capture:
        for _ in range(10):
            capture.sink.feed(b"x" * 65_536)
        assert len(list((tmp_path / "results").iterdir())) == 1
    assert list((tmp_path / "results").iterdir()) == []


def test_much_output_costs_little_memory(here: Runtime, terminal: Terminal, tmp_path: Path) -> None:
    here.results = FileResultStore(tmp_path / "results")
    terminal("seq 300000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = terminal("yes 'a line of output' | head -c 100000000")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert "100,000,000 bytes" in answer["output"]
    assert grown < 10 * 1024


def test_the_sink_tells_once_that_the_output_is_long() -> None:
    began: list[bytes] = []
    heard: list[bytes] = []

    def begin(before: bytes) -> Any:
        began.append(before)
        return heard.append

    sink = OutputSink(head_bytes=4, tail_bytes=4, on_long=begin)
    for piece in (b"abc", b"def", b"ghi", b"jkl"):
        sink.feed(piece)
    assert began == [b"abcdef"]
    assert heard == [b"ghi", b"jkl"]
    assert sink.output().head + sink.output().tail == b"abcdijkl"
