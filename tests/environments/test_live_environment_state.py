"""What a shell knows, and that no command can take it away for good."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from handrail.environments.base import RestartReason, ShellState
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc

from ..support import wait_until
from .conftest import PATIENCE_SECONDS, Run, host_pid, is_running, text

_PREPARE = (
    'cd "$PLACE"; export X=1; y="a b"; declare -A m=([k]=v); arr=(1 "2 3"); f() { echo F$1; }; alias ll="echo LL"; '
    'set -f; shopt -s nullglob extglob; umask 027; trap "echo t" USR1; set -- p q; readonly RO=1; declare -n ref=y; '
    "g() { [[ $1 == @(a|b) ]] && echo matched; }; export -f f; line=$'a\\nb'"
)
_ASK = (
    'pwd; echo $X "$y" ${m[k]} "${arr[1]}" $RO "$ref" "$line"; f 2; ll; g a; [[ $- == *f* ]] && echo noglob; '
    'shopt -q nullglob && echo nullglob; umask; command trap -p USR1; echo $#; bash -c "f 3"'
)
_ANSWER = "{place}\n1 a b v 2 3 1 a b a\nb\nF2\nLL\nmatched\nnoglob\nnullglob\n0027\ntrap -- 'echo t' SIGUSR1\n2\nF3\n"

# What each of these leaves behind is undone by the second.
_HARMFUL = [
    ("true", ""),
    ("exit 3", ""),
    ("exec true", ""),
    ("exec sh -c 'exit 9'", ""),
    ("set -e; false", "set +e"),
    ("set -u; echo $nope", "set +u"),
    ("kill -9 $$", ""),
    ("kill $$", ""),
    ("kill -HUP $$", ""),
    ("kill -USR2 $$", ""),
    ("exec >/dev/null", ""),
    ("exec >&- 2>&-", ""),
    ("exec <&-", ""),
    ('for i in {3..255}; do eval "exec $i>&-"; done; for i in {3..255}; do eval "exec $i<&-"; done', ""),
    ("echo 'unfinished", ""),
    ("case x in", ""),
    ("cat <<E\nabc", ""),
    ("IFS=", "unset IFS"),
    ("IFS=0123456789", "unset IFS"),
    (
        "alias read=false mapfile=false eval=false printf=false builtin=false trap=false while=false exec=false",
        "\\unalias read mapfile eval printf builtin trap while exec",
    ),
    ("alias builtin=false declare=false; exit 5", "\\unalias builtin declare"),
    (
        "eval() { :; }; printf() { :; }; read() { :; }; trap() { :; }; exit() { :; }; exec() { :; }",
        "unset -f eval printf read trap exit exec",
    ),
    ("builtin() { :; }", "unset -f builtin"),
    ("command() { :; }", ""),
    ("command() { :; }; builtin() { :; }; unset() { :; }", "command unset -f unset builtin"),
    ("declare -i __hr_code; declare -u __hr_memo", ""),
    ("trap 'true' DEBUG; trap 'true' ERR; set -T", "trap - DEBUG ERR; set +T"),
    ("trap 'exit 1' ERR; false", "trap - ERR"),
    ("trap '' TERM INT RTMAX EXIT", "trap - TERM INT"),
    ("set -o posix", "set +o posix; shopt -s expand_aliases"),
    ("set -v; set -a", "set +v +a"),
    (
        "shopt -s lastpipe failglob; shopt -u expand_aliases; echo a | read b",
        "shopt -u lastpipe failglob; shopt -s expand_aliases",
    ),
    ("P=$PATH; PATH=", "PATH=$P"),
    ("unset PATH HOME; export PATH=/usr/bin:/bin", ""),
    ("ulimit -f 0; echo x > file; true", ""),
    ("ulimit -n 12", ""),
    ("PWD=/faked OLDPWD=/faked; exit 1", 'cd "$PLACE"'),
    ("suspend -f & kill -9 $!", ""),
    ("disown -a; wait; fg; bg; jobs", ""),
    ("source /dev/null; . /dev/null; return", ""),
    ("coproc cat; exec {COPROC[1]}>&-; wait", "unset COPROC"),
]
# These the shell survives with what was saved when it was idle.
_MORE_HARMFUL = [
    ("readonly __hr=5 __hr_code __hr_memo=x", ""),
    ("h() { local y=inner; set -- other; exit 2; }; h", "y='a b'"),
]


@pytest.mark.parametrize(("harm", "undo"), _HARMFUL, ids=lambda value: value[:40])
def test_the_state_is_there_whatever_a_command_does(run: Run, work: Path, harm: str, undo: str) -> None:
    run(_PREPARE, env={"PLACE": str(work)})
    run(f"export PLACE={work}")
    run(harm)
    run(undo)
    assert text(run(_ASK)) == _ANSWER.format(place=work)


@pytest.mark.parametrize(("harm", "undo"), _MORE_HARMFUL, ids=lambda value: value[:40])
def test_the_state_of_a_moment_ago_is_there_whatever_a_command_does(run: Run, work: Path, harm: str, undo: str) -> None:
    run(_PREPARE, env={"PLACE": str(work)})
    _save(run)
    run(harm)
    run(undo)
    assert text(run(_ASK)) == _ANSWER.format(place=work)


@pytest.mark.parametrize(
    ("command", "code", "state"),
    [
        ("exit 3", 3, ShellState.KEPT),
        ("set -e; false", 1, ShellState.KEPT),
        ("f() { exit 8; }; f", 8, ShellState.KEPT),
        ("kill $$", 143, ShellState.KEPT),
        ("exec sh -c 'exit 9'", 9, ShellState.SNAPSHOT),
        ("kill -9 $$", 137, ShellState.SNAPSHOT),
        ("trap 'exit 7' EXIT; exit 1", 7, ShellState.SNAPSHOT),
    ],
)
def test_a_command_that_ends_the_shell_has_its_own_code_and_says_so(
    run: Run, command: str, code: int, state: ShellState
) -> None:
    result = run(f"echo printed; {command}")
    assert text(result) == "printed\n"
    assert result.exit_code == code
    assert result.restarted is not None
    assert result.restarted.reason is RestartReason.ENDED
    assert result.restarted.state is state
    assert "new one was started" in str(result.restarted)
    assert run("true").restarted is None


# Nobody can see in it that it ends the shell.
_SURPRISE = "word=ki; word+=ll; $word -9 $$"


def test_it_is_said_whether_what_is_there_again_is_older_than_the_last_command(run: Run) -> None:
    run("true")
    _save(run)
    run("X=set")
    end = run(_SURPRISE)
    assert end.exit_code == 137
    is_there = text(run("echo $X")) == "set\n"  # on a slow machine it was saved in time
    assert end.restarted is not None
    assert end.restarted.state is (ShellState.SNAPSHOT if is_there else ShellState.OLDER)
    run(_SURPRISE)
    again = run(_SURPRISE)  # of a shell that has run nothing: what it had is what it began with
    assert again.restarted is not None
    assert again.restarted.state is ShellState.SNAPSHOT


def test_a_shell_that_cannot_be_restored_begins_anew(tmp_path: Path) -> None:
    """It is tried for ten seconds, in which bash does not rest: once, because who asks for it makes no difference."""
    with LocalEnvironment(str(tmp_path)) as local:
        local.execute("shopt -s extdebug; trap false DEBUG", timeout=1)
        local.execute("exit", timeout=PATIENCE_SECONDS)
        assert text(local.execute("echo works", timeout=PATIENCE_SECONDS)) == "works\n"


def test_a_variable_that_was_taken_away_does_not_come_back(tmp_path: Path) -> None:
    with LocalEnvironment(str(tmp_path), env={"GIVEN": "1"}) as local:
        assert text(local.execute("echo $GIVEN; unset GIVEN; exit", timeout=PATIENCE_SECONDS)) == "1\n"
        assert text(local.execute("echo ${GIVEN-gone}", timeout=PATIENCE_SECONDS)) == "gone\n"


def test_an_exit_trap_runs_when_the_shell_exits_and_only_then(run: Run) -> None:
    assert text(run("trap 'echo bye; echo err >&2' EXIT")) == ""
    assert text(run("echo not yet")) == "not yet\n"
    assert text(run("trap -p INT")) == ""
    result = run("exit 6")
    assert text(result) == "bye\nerr\n"
    assert result.exit_code == 6
    assert text(run("exit 7")) == ""


def test_an_exit_trap_of_the_same_command_runs(run: Run) -> None:
    result = run("trap 'echo bye' EXIT; exit 6")
    assert (text(result), result.exit_code) == ("bye\n", 6)


def test_an_exit_trap_that_was_taken_back_does_not_run(run: Run) -> None:
    run("trap 'echo bye' EXIT")
    run("trap - EXIT")
    assert text(run("exit")) == ""


def test_a_trap_of_the_user_runs_in_the_command_that_is_signalled(run: Run) -> None:
    run("trap 'echo caught' USR1")
    assert text(run("kill -USR1 $$; echo after")) == "caught\nafter\n"


def test_a_signal_between_two_commands_is_no_end(shell: LiveEnvironment, run: Run) -> None:
    run("trap 'GOT=yes' USR1")
    pid = int(text(run("echo $$")))
    os.kill(host_pid(pid), signal.SIGUSR1)
    assert text(run("echo $GOT")) == "yes\n"


def test_a_shell_killed_between_two_commands_is_replaced_and_the_next_command_runs_once(run: Run, work: Path) -> None:
    pid = int(text(run("echo $$")))
    os.kill(host_pid(pid), signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    result = run("echo $$ >>ran; exit 5")
    assert result.exit_code == 5
    assert len((work / "ran").read_text().split()) == 1


def test_a_state_saved_when_idle_survives_a_kill_from_outside(run: Run) -> None:
    run("KEPT=1; cd /usr")
    pid = _save(run)
    os.kill(host_pid(pid), signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    result = run("echo $KEPT; pwd")
    assert text(result) == "1\n/usr\n"
    assert result.restarted is not None


def test_a_path_through_a_link_is_kept_as_it_was_typed(run: Run, work: Path) -> None:
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    run("cd link; exit")
    assert text(run("pwd; pwd -P")) == f"{work}/link\n{work}/real\n"


@pytest.mark.parametrize("most", [3, 4, 5])
def test_too_few_descriptors_cost_the_shell_and_no_output(run: Run, most: int) -> None:
    run(f"ulimit -n {most}")
    assert text(run("echo printed")) == "printed\n"
    assert int(text(run("ulimit -n"))) > most


def test_a_working_directory_that_is_removed_does_no_harm(run: Run, shell: LiveEnvironment, work: Path) -> None:
    (work / "gone").mkdir()
    run("cd gone")
    (work / "gone").rmdir()
    result = run("echo here")
    assert text(result) == "here\n"
    assert result.cwd == f"{work}/gone"
    shell.files.write("note", b"x")  # there, and not in a folder that is called "gone (deleted)"
    assert (work / "gone" / "note").read_bytes() == b"x"
    assert os.listdir(work) == ["gone"]
    shutil.rmtree(work / "gone")
    run("exit 1")
    result = run("pwd")
    assert text(result) == f"{work}\n"
    assert result.cwd == str(work)


def test_an_empty_path_leaves_the_builtins_and_the_shell(run: Run) -> None:
    run("PATH=")
    assert run("ls").exit_code == 127
    assert text(run("echo $((1+1)); exit")) == "2\n"
    assert text(run("echo still")) == "still\n"


def test_a_background_job_that_is_killed_says_nothing_in_the_next_command(run: Run) -> None:
    result = run("sleep 1000 & echo $!")
    os.kill(host_pid(int(text(result))), signal.SIGKILL)
    wait_until(lambda: not is_running(int(text(result))))
    assert text(run("echo clean")) == "clean\n"


def test_jobs_can_be_waited_for_in_a_later_command(run: Run) -> None:
    run("(exit 5) & JOB=$!")
    assert text(run("wait $JOB; echo $?")) == "5\n"


def test_a_forged_report_does_not_confuse_the_next_command(run: Run, work: Path) -> None:
    os.mkfifo(work / "gate")
    forge = 'for f in /proc/$PPID/fd/*; do [ -p $f ] && printf "; %s 9 0 ; " $__hr_number >$f; done 2>/dev/null'
    forged = run(f"({forge}); read x <gate; echo late")
    assert forged.exit_code == 9
    with (work / "gate").open("w"):
        pass
    result = run("echo mine")
    assert result.exit_code == 0
    assert text(result).endswith("mine\n")
    assert text(run("echo next")) == "next\n"


def test_a_killed_keeper_costs_no_more_than_the_jobs(run: Run) -> None:
    run("KEPT=1; f() { echo F; }; cd /usr")
    pid = _save(run)
    bash = proc.stat_of(host_pid(pid))
    assert bash is not None
    os.kill(bash.parent, signal.SIGTERM)
    wait_until(lambda: not is_running(pid))
    result = run("echo $KEPT; f; pwd")
    assert text(result) == "1\nF\n/usr\n"
    assert result.restarted is not None
    assert result.restarted.reason is RestartReason.SUPERVISOR


def test_a_command_that_kills_the_keeper_does_not_break_the_next(run: Run) -> None:
    run("KEPT=1")
    _save(run)
    run("kill -9 $PPID; sleep 1000")
    result = run("echo $KEPT")
    assert text(result) == "1\n"


def _save(run: Run) -> int:
    """Wait until the supervisor has the state of this moment, as it has when nothing was run for a while: bash's pid."""
    mark = os.urandom(8).hex()
    pid = int(text(run(f"MARK={mark}; echo $$")))
    bash = proc.stat_of(host_pid(pid))
    assert bash is not None
    wait_until(lambda: f'MARK="{mark}"'.encode() in _saved_state(bash.parent))
    return pid


def _saved_state(supervisor: int) -> bytes:
    for descriptor in Path(f"/proc/{supervisor}/fd").iterdir():
        if os.readlink(descriptor).startswith("/memfd:state"):
            return descriptor.read_bytes()
    return b""


@pytest.mark.parametrize("taken", ["10>&-", "12<&-", "10>/dev/null 11>/dev/null 12</dev/null", ">/dev/null", "<&-"])
def test_a_command_may_take_the_descriptors_of_the_shells_loop(run: Run, taken: str) -> None:
    assert text(run("echo before")) == "before\n"
    run(f"exec {taken}")
    assert [text(run("echo one; cat")), text(run("echo two"))] == ["one\n", "two\n"]


def test_what_writes_on_in_the_background_is_not_in_the_next_output(run: Run) -> None:
    run("echo first")
    run("(timeout 2 yes &); echo started")
    assert [text(run("echo one")), text(run("echo two"))] == ["one\n", "two\n"]
