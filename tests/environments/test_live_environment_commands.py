"""One command: how it ends, what it prints, what it reads, where it runs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from handrail.environments.errors import CommandRefused, NoSuchDirectory
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.output import OutputSink
from handrail.errors import InvalidArguments

from .conftest import PATIENCE_SECONDS, Run, text


def test_the_exit_code_is_the_commands_own(run: Run) -> None:
    codes = {
        "true": 0,
        "false": 1,
        "no_such_program": 127,
        "/etc/passwd": 126,
        "(exit 77)": 77,
        "bash -c 'kill -9 $$'": 137,
        "bash -c 'kill -TERM $$'": 143,
        "false | true": 0,
        "set -o pipefail; false | true": 1,
        "true | (exit 3)": 3,
        "echo 'unfinished": 2,
        "if true; then": 2,
        "": 0,
        "# nothing but a comment": 0,
        "! true": 1,
    }
    ended = {command: run(command) for command in codes}
    assert {command: each.exit_code for command, each in ended.items()} == codes
    assert {each.restarted for each in ended.values()} == {None}


def test_both_streams_come_together_in_their_order(run: Run) -> None:
    assert text(run("echo out; echo err >&2; echo out again")) == "out\nerr\nout again\n"


def test_stderr_can_be_had_apart(run: Run) -> None:
    streams = {
        "echo out; echo err >&2; echo more": (b"out\nmore\n", b"err\n"),
        "cat <<EOF\nhere\nEOF\ncat >&2 <<< there": (b"here\n", b"there\n"),
        "false | true; echo ${PIPESTATUS[*]} >&2": (b"", b"1 0\n"),
        "printf 'a\\0\\377b' >&2": (b"", b"a\0\xffb"),
        "echo both 2>&1 >&2": (b"both\n", b""),
        "echo out; exit 3": (b"out\n", b""),
        "true": (b"", b""),
    }
    for command, (stdout, stderr) in streams.items():
        run("(exit 7)")
        ended = run(command, separate=True)
        assert (ended.output.head, ended.stderr) == (stdout, stderr), command
        assert text(run("echo together >&2")) == "together\n", command


def test_a_command_whose_stderr_is_apart_keeps_the_state_of_the_shell(run: Run, work: Path) -> None:
    run("(exit 7)")
    ended = run("NAME=$?; cd /; f() { echo $NAME; }; no_such_program", separate=True)
    assert (ended.exit_code, b"no_such_program" in ended.stderr) == (127, True)
    assert text(run("f; pwd")) == "7\n/\n"
    assert run("cat", stdin=b"given", separate=True, cwd=str(work)).output.head == b"given"
    assert b"unexpected" in run("if true; then", separate=True).stderr


def test_of_a_long_stderr_the_end_is_kept_and_what_runs_on_does_not_fill_the_memory(run: Run) -> None:
    ended = run("seq 400000 >&2; echo done", separate=True)
    assert (ended.output.head, ended.stderr[-7:], len(ended.stderr)) == (b"done\n", b"400000\n", 1 << 20)
    run("(while :; do echo late >&2; done) & sleep 0.1", separate=True)
    ended = run("kill $!; wait; echo mine >&2", separate=True)
    assert b"mine\n" in ended.stderr
    assert set(ended.stderr.splitlines()) <= {b"late", b"mine"}


def test_binary_output_is_exact(run: Run, work: Path) -> None:
    content = os.urandom(100_000)
    (work / "blob").write_bytes(content)
    result = run("cat blob")
    assert hashlib.sha256(result.output.head).digest() == hashlib.sha256(content).digest()


def test_output_that_looks_like_a_report_is_only_output(run: Run) -> None:
    forged = r"; 1 7 0 ; \0 O\0\0\0\1 D\0\0\0\2{}"
    result = run(f"printf '{forged}'")
    assert result.exit_code == 0
    assert result.output.head == b"; 1 7 0 ; \0 O\0\0\0\1 D\0\0\0\2{}"


def test_nothing_is_read_from_the_runtimes_own_input(run: Run) -> None:
    assert text(run("cat; read line; echo $?")) == "1\n"


def test_given_input_is_read_and_is_gone_for_the_next(run: Run) -> None:
    assert text(run("cat", stdin=b"one\ntwo")) == "one\ntwo"
    assert text(run("cat")) == ""


def test_input_of_a_megabyte_passes(run: Run) -> None:
    assert text(run("wc -c", stdin=b"x" * 1_000_000)).strip() == "1000000"


def test_variables_of_one_command_are_gone_after_it(run: Run) -> None:
    value = "quote ' and \" and $HOME\nand a line"
    assert text(run("bash -c 'printf %s \"$GIVEN\"'", env={"GIVEN": value})) == value
    assert text(run('echo "${GIVEN-unset}"')) == "unset\n"


def test_the_working_directory_of_one_command_is_left_after_it(run: Run, work: Path) -> None:
    (work / "below").mkdir()
    assert text(run("pwd", cwd="below")) == f"{work}/below\n"
    result = run("pwd; cd /; pwd", cwd="/usr")
    assert text(result) == "/usr\n/\n"
    assert result.cwd == str(work)
    assert text(run("pwd; echo $OLDPWD")) == f"{work}\n\n"


def test_a_tilde_is_the_home_of_the_shell(run: Run, work: Path) -> None:
    (work / "sub").mkdir()
    run(f"export HOME={work}")
    assert text(run("pwd", cwd="~")) == f"{work}\n"
    assert text(run("pwd", cwd="~/sub")) == f"{work}/sub\n"


def test_a_working_directory_that_is_not_there_is_an_error_and_nothing_runs(run: Run, work: Path) -> None:
    with pytest.raises(NoSuchDirectory, match=r"/proc/nowhere: No such file or directory"):
        run("touch made", cwd="/proc/nowhere")
    assert not (work / "made").exists()
    assert text(run("pwd")) == f"{work}\n"


@pytest.mark.parametrize("name", ["with space", "quote'\"", "new\nline", "ünï ☃", "-dash", "$HOME", "*"])
def test_directories_of_any_name_are_entered_and_reported(run: Run, work: Path, name: str) -> None:
    (work / name).mkdir()
    assert run("touch here", cwd=name).exit_code == 0
    assert (work / name / "here").exists()
    assert run("cd ./-dash 2>/dev/null || cd -- *").cwd == str(work / name)


def test_what_no_shell_can_be_given_is_refused(run: Run) -> None:
    for command in ("echo a\0b", "\0", "echo \ud800"):
        with pytest.raises(CommandRefused) as caught:
            pytest.fail(f"{command!r} ended with {run(command).exit_code}")
        assert isinstance(caught.value, InvalidArguments), command
        assert text(run("echo still here")) == "still here\n", command
    for env in ({"A-B": "1"}, {"": "1"}, {"A": "\0"}):
        with pytest.raises(CommandRefused):
            pytest.fail(f"{env} ended with {run('true', env=env).exit_code}")


def test_bytes_that_are_no_text_pass_through_a_command(run: Run) -> None:
    assert run("printf %s '\udcff\udcfe'").output.head == b"\xff\xfe"


def test_a_command_of_a_megabyte_runs(run: Run) -> None:
    assert text(run(f": {'x' * (1 << 20)}; echo end")) == "end\n"
    assert text(run("echo short again")) == "short again\n"


def test_output_comes_while_the_command_runs(run: Run, work: Path) -> None:
    os.mkfifo(work / "gate")
    pieces: list[bytes] = []

    def listen(piece: bytes) -> None:
        pieces.append(piece)
        if b"first" in piece:  # the command waits for this: had the piece not come, nobody would open the gate
            with (work / "gate").open("w"):
                pass

    result = run("echo first; read x <gate; echo second", on_output=listen)
    assert b"".join(pieces) == result.output.head == b"first\nsecond\n"


def test_a_large_output_keeps_its_beginning_and_its_end(shell: LiveEnvironment) -> None:
    sink = OutputSink(head_bytes=1000, tail_bytes=2000)
    whole = "".join(f"{number}\n" for number in range(1, 500_001)).encode()
    seen = hashlib.sha256()
    result = shell.execute("seq 500000", timeout=PATIENCE_SECONDS, output=sink, on_output=seen.update)
    assert result.output.head == whole[:1000]
    assert result.output.tail == whole[-2000:]
    assert result.output.total_bytes == len(whole)
    assert result.output.skipped_bytes == len(whole) - 3000
    assert seen.digest() == hashlib.sha256(whole).digest()


def test_output_without_end_takes_bounded_memory(local: LocalEnvironment) -> None:
    local.execute("head -c 1000000 /dev/zero", timeout=PATIENCE_SECONDS)
    before = _peak_megabytes()
    result = local.execute("head -c 200000000 /dev/zero", timeout=PATIENCE_SECONDS)
    assert result.output.total_bytes == 200_000_000
    assert _peak_megabytes() - before < 10


def test_what_a_process_substitution_prints_is_not_missed(run: Run) -> None:
    assert text(run("echo x > >(cat)")) == "x\n"
    assert text(run("echo x > >(sleep 0.2; cat)")) == "x\n"


def test_words_for_loops_and_functions_do_no_harm_outside_of_them(run: Run) -> None:
    run("KEPT=1")
    for command in ("break", "continue", "break 1", "return 0", "return 3"):
        assert run(command).restarted is None, command
        assert text(run("echo $KEPT")) == "1\n", command


def test_breaking_out_of_more_loops_than_there_are_ends_the_shell_with_its_state(run: Run) -> None:
    run("KEPT=1")
    run("break 9")
    assert text(run("echo $KEPT")) == "1\n"


def test_the_status_of_the_command_before_can_be_asked_for(run: Run) -> None:
    for before, command, printed in (
        ("(exit 7)", "echo $?", "7\n"),
        ("true", "echo $?", "0\n"),
        ("(exit 3) | true | (exit 5)", "echo $? ${PIPESTATUS[@]}", "5 3 0 5\n"),
        ("false | true", 'echo "${PIPESTATUS[*]}"', "1 0\n"),
        ("exit 4", "echo ${?}", "4\n"),
        ("(exit 6)", "echo a; echo $?", "a\n0\n"),
        ("set -e; (exit 6)", "echo $?; set +e", "6\n"),
        ("(exit 6)", "bash -c 'echo $?'", "0\n"),
        ("cat <<E | false\nx\nE", "echo $?", "1\n"),
    ):
        run(before)
        assert text(run(command)) == printed, before


def test_a_heredoc_without_end_is_what_bash_makes_of_it(run: Run) -> None:
    result = run("cat <<END\nabc | def")
    assert result.exit_code == 0
    assert text(result).endswith("abc | def\n")


def test_a_pipeline_that_does_not_end_is_an_error_as_ever(run: Run) -> None:
    assert run("echo a |").exit_code == 2
    assert text(run("echo next")) == "next\n"


def test_tracing_shows_the_command_and_nothing_of_ours(run: Run) -> None:
    run("set -x")
    assert text(run("echo v")) == "++ echo v\nv\n"
    assert text(run("echo v | cat")).count("\n") == 3


def test_error_messages_have_the_line_of_the_command(run: Run) -> None:
    assert text(run("true\n\nno_such_program")) == "bash: line 3: no_such_program: command not found\n"


def test_a_command_is_not_seen_in_the_list_of_processes(run: Run) -> None:
    assert "__hr" not in text(run("ps -eo args | cat"))


def test_a_command_inherits_no_descriptor_of_ours(run: Run) -> None:
    assert text(run("sleep 1000 & exec 9</dev/null; ls /proc/self/fd; exec 9<&-")).split() == ["0", "1", "2", "3", "9"]
    assert text(run("ls /proc/self/fd")).split() == ["0", "1", "2", "3"]


def _peak_megabytes() -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
