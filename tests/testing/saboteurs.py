"""Backends that are broken on purpose: for each check of the conformance kit at least one that must fail it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from handrail.environments.base import CommandResult, LeftRunning
from handrail.environments.errors import EnvironmentLost, NoSuchDirectory
from handrail.environments.handles import JobProcess, LeftProcess
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.output import Output
from handrail.errors import ToolError
from handrail.files.local import LocalFiles
from handrail.protocols import FileEntry, Files, FileStat

SABOTEURS: list[tuple[str, type[LocalEnvironment]]] = []
STRAYS: list[subprocess.Popen[bytes]] = []  # processes that a saboteur let get away; whoever runs it ends them

Rewrite = Callable[[str], str]
Change = Callable[[str, CommandResult], CommandResult]


def breaks(*names: str) -> Callable[[type[LocalEnvironment]], type[LocalEnvironment]]:
    def add(saboteur: type[LocalEnvironment]) -> type[LocalEnvironment]:
        SABOTEURS.extend((name, saboteur) for name in names)
        return saboteur

    return add


def rewrites(name: str, rewrite: Rewrite) -> None:
    """One that runs another command than it was given."""

    @breaks(name)
    class Rewrites(LocalEnvironment):
        def execute(self, command: str, **options: Any) -> CommandResult:
            return super().execute(rewrite(command), **options)


def changes(name: str, change: Change) -> None:
    """One that gives back another result than it had."""

    @breaks(name)
    class Changes(LocalEnvironment):
        def execute(self, command: str, **options: Any) -> CommandResult:
            return change(command, super().execute(command, **options))


def options(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """One that does not do with a command what it was asked to."""

    @breaks(name)
    class Options(LocalEnvironment):
        def execute(self, command: str, **options: Any) -> CommandResult:
            return super().execute(command, **change(options))


def forgets(name: str, how: str) -> None:
    rewrites(name, lambda command: f"{how}\n{command}")


def let_one_get_away(command: str) -> None:
    """Start again what the command was to sleep, where nobody looks after it."""
    nap = re.search(r"sleep (\d{9})", command)
    if nap is not None:
        STRAYS.append(subprocess.Popen(["sleep", nap[1]]))


def loses(name: str, when: Callable[[str, CommandResult], bool]) -> None:
    """One that leaves a process running."""

    def change(command: str, result: CommandResult) -> CommandResult:
        if when(command, result):
            let_one_get_away(command)
        return result

    changes(name, change)


# State

forgets("state.the_working_directory_is_kept", "cd /")
forgets("state.exported_variables_are_kept", "unset kit_exported")
forgets("state.plain_variables_are_kept", "unset kit_plain")
forgets("state.functions_are_kept", "unset -f kit_function")
forgets("state.aliases_are_kept", "unalias -a")
forgets("state.options_are_kept", "set +f")
forgets("state.the_last_exit_code_is_kept", "true")


# Survival


@breaks("state.exit_is_survived", "files.directories_of_any_name_outlive_the_shell")
class ForgetsAtExit(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if "exit" in command:
            super().execute("unset kit_kept; cd /", timeout=10)
        return result


changes(
    "state.exec_is_survived",
    lambda command, result: result._replace(exit_code=0) if "exec" in command else result,
)
changes("state.a_failure_under_set_e_is_survived", lambda _, result: result._replace(restarted=None))
changes(
    "state.a_syntax_error_is_survived",
    lambda command, result: result._replace(exit_code=0) if "unfinished" in command else result,
)


@breaks("state.a_killed_shell_is_survived")
class DiesWithItsShell(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if result.exit_code == 137:
            raise EnvironmentLost("the shell was killed")
        return result


@breaks("state.a_removed_working_directory_is_survived")
class NeedsItsDirectory(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        if not os.path.isdir(self.cwd):
            raise NoSuchDirectory("the working directory is gone")
        return super().execute(command, **options)


forgets("state.an_empty_path_is_survived", '[ "$PATH" ] || PATH=/usr/bin:/bin')


@breaks("state.a_process_limit_is_survived")
class KeepsItsLimits(LocalEnvironment):
    is_limited = False

    def execute(self, command: str, **options: Any) -> CommandResult:
        self.is_limited = self.is_limited or "ulimit" in command
        return super().execute("(exit 254)" if self.is_limited else command, **options)


# Codes

changes("commands.codes_are_exact", lambda _, result: result._replace(exit_code=min(result.exit_code, 1)))
forgets("commands.pipelines_have_the_code_of_their_last_part", "set -o pipefail")
changes("commands.signals_are_told_by_the_code", lambda _, result: result._replace(exit_code=result.exit_code & 127))


# Output


def _output(result: CommandResult, data: bytes) -> CommandResult:
    return result._replace(output=Output(data, b"", len(data)))


rewrites("output.output_and_errors_come_in_order", lambda command: f"{{ {command}\n}} 2> >(sleep .2; cat)\nsleep .3")
changes(
    "output.bytes_are_not_changed",
    lambda _, result: _output(result, result.output.head.decode("utf-8", "replace").encode()),
)
changes(
    "output.nothing_printed_can_look_like_the_end",
    lambda _, result: _output(result, result.output.head.partition(b"__END__")[0]),
)
forgets("output.commands_inherit_no_descriptor", "exec 9</dev/null")
rewrites(
    "output.a_command_that_closes_its_output_is_waited_for",
    lambda command: f"{{ {command}; }} &" if ">&-" in command else command,
)


@breaks("output.output_comes_while_the_command_runs")
class TellsAtTheEnd(LocalEnvironment):
    def execute(self, command: str, *, on_output: Any = None, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if on_output is not None:
            on_output(result.output.head)
        return result


@breaks("output.a_listener_that_fails_ends_the_command")
class HidesWhatListenersSay(LocalEnvironment):
    def execute(self, command: str, *, on_output: Any = None, **options: Any) -> CommandResult:
        def listen(piece: bytes) -> None:
            with contextlib.suppress(Exception):
                on_output(piece)

        return super().execute(command, on_output=on_output and listen, **options)


options("output.the_head_and_the_tail_are_kept", lambda given: {**given, "output": None})


@breaks("output.a_hundred_megabytes_cost_bounded_memory")
class KeepsEverything(LocalEnvironment):
    def execute(self, command: str, *, on_output: Any = None, **options: Any) -> CommandResult:
        kept: list[bytes] = []

        def listen(piece: bytes) -> None:
            kept.append(piece)
            on_output(piece)

        return super().execute(command, on_output=on_output and listen, **options)


@breaks("output.ten_thousand_lines_a_second_arrive")
class DropsAPiece(LocalEnvironment):
    def execute(self, command: str, *, on_output: Any = None, **options: Any) -> CommandResult:
        count = 0

        def listen(piece: bytes) -> None:
            nonlocal count
            count += 1
            if count != 3:
                on_output(piece)

        return super().execute(command, on_output=on_output and listen, **options)


# Input

options("commands.stdin_is_what_was_given", lambda given: {**given, "stdin": None})
forgets("commands.without_stdin_there_is_an_end_at_once", "exec < <(sleep 987654321)")


# Commands


@breaks("commands.a_directory_can_be_given_for_one_command")
class StaysThere(LocalEnvironment):
    def execute(self, command: str, *, cwd: str | None = None, **options: Any) -> CommandResult:
        return super().execute(f"cd {cwd}; {command}" if cwd else command, **options)


@breaks("commands.a_directory_that_is_not_there_is_an_error")
class StaysHere(LocalEnvironment):
    def execute(self, command: str, *, cwd: str | None = None, **options: Any) -> CommandResult:
        return super().execute(command, cwd=cwd if cwd and os.path.isdir(cwd) else None, **options)


@breaks("commands.variables_can_be_given_for_one_command")
class KeepsVariables(LocalEnvironment):
    def execute(self, command: str, *, env: Any = None, **options: Any) -> CommandResult:
        result = super().execute(command, env=env, **options)
        for name in env or ():
            super().execute(f"export {name}=kept", timeout=10)
        return result


@breaks("commands.secrets_of_the_runtime_stay_out")
class TellsSecrets(LocalEnvironment):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, allowed_secrets=("KIT_ACCESS_TOKEN",))


forgets("commands.a_big_environment_is_no_obstacle", "unset kit_big_300")
rewrites("commands.a_command_of_a_megabyte_works_or_is_refused", lambda command: command[: 1 << 19])
rewrites("commands.a_nul_is_refused", lambda command: command.replace("\0", ""))
rewrites("commands.words_of_any_kind_arrive", lambda command: " ".join(command.split()))


# Names


class OddFiles:
    """The real ones, but for what a subclass changes."""

    def __init__(self, real: Files) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def files_are(odd: type[OddFiles], *names: str) -> None:
    @breaks(*names)
    class HasOddFiles(LocalEnvironment):
        @property
        def files(self) -> Files:
            made: Any = odd(super().files)
            return made  # type: ignore[no-any-return]


class HidesNames(OddFiles):
    def entries(self, path: str) -> list[FileEntry]:
        return [entry for entry in self._real.entries(path) if "\n" not in entry.name]


changes(
    "files.directories_of_any_name_can_be_worked_in",
    lambda _, result: result._replace(cwd=result.cwd.replace("\n", "?")),
)
files_are(HidesNames, "files.files_of_any_name_can_be_read_and_written")


# Limits

changes(
    "limits.a_time_limit_ends_the_command",
    lambda _, result: result._replace(exit_code=143) if result.timed_out else result,
)
loses("limits.a_time_limit_ends_what_ignores_signals", lambda command, result: result.timed_out and "trap" in command)
loses("limits.a_time_limit_ends_other_sessions", lambda command, result: result.timed_out and "setsid" in command)
loses("limits.a_time_limit_ends_daemons", lambda command, result: result.timed_out and "&) &)" in command)
loses("limits.cancelling_ends_the_command", lambda _, result: result.cancelled)
changes(
    "limits.cancelling_ends_the_command",
    lambda _, result: result._replace(exit_code=143) if result.cancelled else result,
)
changes(
    "limits.a_time_limit_ends_busy_shells",
    lambda command, result: result._replace(timed_out=False) if "while" in command else result,
)
changes(
    "limits.a_time_limit_ends_a_flood",
    lambda command, result: result._replace(exit_code=141) if "flood" in command else result,
)
rewrites(
    "limits.a_limit_that_is_met_changes_nothing",
    lambda command: f"{command}; exit" if "sleep" in command else command,
)


@breaks("limits.a_time_limit_ends_a_flood")
class ComesLate(LocalEnvironment):
    def execute(self, command: str, *, timeout: float | None = None, **options: Any) -> CommandResult:
        is_short = timeout is not None and timeout < 1
        return super().execute(command, timeout=4 if is_short else timeout, **options)


@breaks("limits.the_rest_does_not_run_after_a_time_limit")
class GoesOn(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if result.timed_out:
            super().execute(command.partition(";")[2], timeout=10)
        return result


@breaks("limits.a_time_limit_spares_what_was_there_before")
class EndsTooMuch(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if result.timed_out:
            for left in self.left_running():
                self.adopt(left).kill()
        return result


@breaks("limits.what_is_cancelled_beforehand_does_not_run")
class HearsTooLate(LocalEnvironment):
    def execute(self, command: str, *, cancel: Any = None, **options: Any) -> CommandResult:
        return super().execute(command, **options)._replace(cancelled=cancel is not None)


# Left running


@breaks("background.what_is_left_running_holds_up_nobody")
class WaitsForAll(LocalEnvironment):
    def execute(self, command: str, *, timeout: float = 0, **options: Any) -> CommandResult:
        result = super().execute(command, timeout=timeout, **options)
        time.sleep(timeout / 2 if result.left_running else 0)
        return result


class CannotBeKilled(LeftProcess):
    def kill(self, *, grace: float = 2.0) -> Any:
        return self.poll()


@breaks("background.what_is_left_running_can_be_adopted")
class AdoptsInName(LocalEnvironment):
    def adopt(self, left: LeftRunning) -> LeftProcess:
        return CannotBeKilled(self._call, left)


changes("background.what_is_left_running_is_named", lambda _, result: result._replace(left_running=()))


# Background processes and terminals


def processes_are(odd: type[JobProcess], *names: str) -> None:
    @breaks(*names)
    class HasOddProcesses(LocalEnvironment):
        def _start_job(self, *args: Any) -> JobProcess:
            process = super()._start_job(*args)
            process.__class__ = odd
            return process


class ReadsFromTheBeginning(JobProcess):
    def read(self, offset: int = 0, **options: Any) -> Any:
        return super().read(0, **options)


class HearsNothing(JobProcess):
    def write(self, data: bytes) -> None:
        pass


class HearsNoInterrupt(JobProcess):
    def write(self, data: bytes) -> None:
        super().write(data.replace(b"\x03", b"\r"))


class KillsTheFirstOnly(JobProcess):
    def kill(self, *, grace: float = 2.0) -> Any:
        os.kill(self.pid, signal.SIGKILL)
        return self.wait(60)


class HasOneSize(JobProcess):
    def resize(self, rows: int, columns: int) -> None:
        pass


class AlwaysWaits(JobProcess):
    def waits_for_input(self) -> bool:
        return True


class NeverWaits(JobProcess):
    def waits_for_input(self) -> bool:
        return False


class Succeeds(JobProcess):
    def wait(self, *args: Any, **options: Any) -> Any:
        return super().wait(*args, **options)._replace(exit_code=0)


processes_are(ReadsFromTheBeginning, "background.its_output_can_be_read")
processes_are(HearsNothing, "background.it_reads_what_it_is_given")
processes_are(KillsTheFirstOnly, "background.it_can_be_killed")
processes_are(Succeeds, "background.it_runs_beside_commands")
processes_are(HearsNoInterrupt, "background.it_takes_keys")
processes_are(HasOneSize, "background.it_can_be_resized")
processes_are(AlwaysWaits, "background.waiting_for_input_is_seen")
processes_are(NeverWaits, "background.waiting_for_input_is_seen")


@breaks("background.it_has_the_shells_state")
class BeginsAtTheRoot(LocalEnvironment):
    def background(self, command: str, **options: Any) -> JobProcess:
        return super().background(f"cd /; {command}", **options)


@breaks("background.it_is_listed_until_it_is_forgotten")
class ListsNothing(LocalEnvironment):
    def processes(self) -> list[JobProcess]:
        return []


@breaks("background.it_outlives_the_environment_if_it_was_to")
class EndsAll(LocalEnvironment):
    def background(self, command: str, *, survives: bool = False, **options: Any) -> JobProcess:
        return super().background(command, **options)


@breaks("background.it_outlives_the_environment_if_it_was_to")
class PromisesTooMuch(LocalEnvironment):
    """Says that nothing survives, and takes the order all the same."""

    persistent = False

    def background(self, command: str, *, survives: bool = False, **options: Any) -> JobProcess:
        return super().background(command, **options)


@breaks("background.it_is_a_terminal")
class HasOneSizeOnly(LocalEnvironment):
    def open_pty(self, command: str, *, rows: int = 24, columns: int = 80, **options: Any) -> JobProcess:
        return super().open_pty(command, **options)


# Files


class BeginElsewhere(OddFiles):
    def __init__(self, real: Files) -> None:
        super().__init__(LocalFiles("/"))


class KnowNoOffset(OddFiles):
    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        return self._real.read(path, max_bytes=max_bytes)


class FollowLinks(OddFiles):
    def entries(self, path: str) -> list[FileEntry]:
        def is_dir(name: str) -> bool:
            return os.path.isdir(os.path.join(path, name))

        return [FileEntry(entry.name, is_dir(entry.name), not is_dir(entry.name)) for entry in self._real.entries(path)]


class KnowNoVersion(OddFiles):
    def stat(self, path: str) -> FileStat | None:
        found = self._real.stat(path)
        return found and found._replace(version="1")

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        return self._real.write(path, data, mode=mode)._replace(version="1")


class KnowOneMode(OddFiles):
    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        self._real.write(path, data, mode=mode)
        os.chmod(path, 0o644)
        found = self._real.stat(path)
        assert found is not None
        return found


class RemoveLinks(OddFiles):
    def remove(self, path: str) -> None:
        if os.path.islink(path):
            os.unlink(path)
        else:
            self._real.remove(path)


class HideErrors(OddFiles):
    def read(self, path: str, **options: Any) -> bytes:
        try:
            return self._real.read(path, **options)
        except ToolError:
            return b""


files_are(BeginElsewhere, "files.files_and_commands_see_the_same")
files_are(KnowNoOffset, "files.files_of_any_content_are_read_in_pieces")
files_are(FollowLinks, "files.files_are_listed_and_described")
files_are(KnowNoVersion, "files.files_are_listed_and_described")
files_are(KnowOneMode, "files.modes_are_kept")
files_are(RemoveLinks, "files.files_can_be_removed")
files_are(HideErrors, "files.what_cannot_be_done_to_a_file_is_said")


@breaks("files.files_are_copied_both_ways")
class CopiesWithoutMode(LocalEnvironment):
    def upload(self, host_path: str, path: str) -> None:
        super().upload(host_path, path)
        os.chmod(path, 0o600)


# Concurrency


@breaks("concurrency.environments_work_beside_each_other")
class OneAtATime(LocalEnvironment):
    lock = threading.Lock()

    def execute(self, command: str, **options: Any) -> CommandResult:
        with self.lock:
            return super().execute(command, **options)


@breaks("concurrency.files_can_be_used_while_a_command_runs")
class FilesWait(LocalEnvironment):
    @property
    def files(self) -> Files:
        with self._running:
            return super().files


@breaks("concurrency.commands_of_one_environment_take_turns")
class AllAtOnce(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        if not self._running.locked():
            return super().execute(command, **options)
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
        return CommandResult(0, done.returncode, Output(done.stdout, b"", len(done.stdout)), self.cwd, 0.0)


# Loss and closing


@breaks("leftovers.a_lost_environment_is_an_error_and_comes_back")
class HidesALoss(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        try:
            return super().execute(command, **options)
        except EnvironmentLost:
            return CommandResult(0, 0, Output(b"", b"", 0), "/", 0.0)


@breaks("leftovers.closing_ends_all_that_runs")
class LetsOneGo(LocalEnvironment):
    last = ""

    def execute(self, command: str, **options: Any) -> CommandResult:
        self.last = command if command.startswith("sleep") else self.last
        return super().execute(command, **options)

    def close(self) -> None:
        super().close()
        let_one_get_away(self.last)


@breaks("leftovers.closing_ends_the_command_that_runs")
class DoesNotInterrupt(LocalEnvironment):
    def close(self) -> None:
        if not self._running.locked():
            super().close()


@breaks("leftovers.what_is_closed_says_so")
class OpensAgain(LocalEnvironment):
    def close(self) -> None:
        super().close()
        self._is_closed = False


@breaks("leftovers.nothing_is_left_on_this_machine")
class LeavesAFile(LocalEnvironment):
    def close(self) -> None:
        super().close()
        os.close(tempfile.mkstemp()[0])


@breaks("leftovers.nothing_is_left_on_this_machine")
class LeavesASocket(LocalEnvironment):
    usual = tempfile.gettempdir()

    def close(self) -> None:
        super().close()
        if tempfile.gettempdir() != self.usual:  # where the check looks, and removes it
            os.mkdir(os.path.join(tempfile.gettempdir(), f".handrail-{os.getuid()}", "left"))


@breaks("leftovers.nothing_is_left_on_this_machine")
class LeavesAProcess(LocalEnvironment):
    def close(self) -> None:
        super().close()
        STRAYS.append(subprocess.Popen(["sleep", "987654321"]))


@breaks("leftovers.nothing_is_left_inside")
class LeavesAProcessInside(LocalEnvironment):
    def execute(self, command: str, **options: Any) -> CommandResult:
        result = super().execute(command, **options)
        if result.timed_out:
            super().execute("sleep 987654321 &", timeout=10)
        return result
