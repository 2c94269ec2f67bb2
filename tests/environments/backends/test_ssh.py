"""Commands on another machine, over a real OpenSSH server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments import private_dirs
from handrail.environments.backends.ssh import KIND, SshEnvironment
from handrail.environments.base import ProcessState, RestartReason, ShellState
from handrail.environments.errors import (
    EnvironmentLost,
    EnvironmentStartError,
    HostKeyRefused,
    LoginRefused,
)
from handrail.environments.shell_host import proc
from handrail.environments.shell_host.held_calls import ALLOW, DENY
from handrail.errors import ConfigError

from ...services.proofs import running_with
from ...services.sshd import Ssh
from ...support import takes_less_than, wait_until
from ..conftest import PATIENCE_SECONDS, text
from ..held_elsewhere import answering, check_pause
from ..undo_elsewhere import check_undo, check_undo_of_random_calls

Make = Callable[..., SshEnvironment]


@pytest.fixture
def mark() -> str:
    """In the environment of all that runs there."""
    return uuid.uuid4().hex


@pytest.fixture
def make(mark: str) -> Iterator[Make]:
    """An environment on a server's host; all are closed in the end, and leave nothing."""
    made: list[SshEnvironment] = []

    def make(ssh: Ssh, **settings: Any) -> SshEnvironment:
        given = {"host": ssh.alias, "config_file": str(ssh.config), **settings}
        made.append(SshEnvironment.from_settings(given, task_id="t", env={"MARK": mark}))
        return made[-1]

    yield make
    for environment in made:
        environment.close()
    assert not _folders()
    wait_until(lambda: not _connections())
    wait_until(lambda: not running_with(mark), otherwise=lambda: f"left there: {running_with(mark)}")


def _folders() -> list[str]:
    """Ours, and those of processes that have ended."""
    return [folder for folder in private_dirs.every(KIND) if f".{os.getpid()}." in folder]


def _connections(owner: int = os.getpid()) -> list[str]:
    """Connections in the background which belong to a process."""
    titles = (proc.command_line(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [title for title in titles if f"handrail-ssh.{owner}." in title and "[mux]" in title]


def _run(environment: SshEnvironment, command: str) -> str:
    return text(environment.execute(command, timeout=PATIENCE_SECONDS))


def _config(tmp_path: Path, ssh: Ssh, **options: str) -> str:
    """The server's configuration with other options before it, which win."""
    config = tmp_path / "config"
    lines = [f"Host {ssh.alias}", *(f"  {name} {value}" for name, value in options.items())]
    config.write_text("\n".join([*lines, ssh.config.read_text()]))
    return str(config)


def test_commands_run_on_the_host_as_its_user(ssh_service: Ssh, make: Make) -> None:
    environment = make(ssh_service)
    assert _run(environment, "id -un; pwd") == f"{ssh_service.user}\n{ssh_service.home}\n"
    assert environment.cwd == str(ssh_service.home)
    assert (environment.isolated, environment.reaches_host, environment.persistent) == (False, False, True)


def test_variables_and_a_folder_to_begin_in_can_be_set(ssh_service: Ssh, mark: str, make: Make) -> None:
    environment = make(ssh_service, cwd="/usr", env={"GIVEN": "it's"})
    assert _run(environment, "pwd; echo $GIVEN $MARK") == f"/usr\nit's {mark}\n"


def test_a_folder_to_begin_in_that_is_missing_is_an_error(ssh_service: Ssh, make: Make) -> None:
    with pytest.raises(EnvironmentStartError, match="the working directory /proc/nowhere/at/all does not exist"):
        make(ssh_service, cwd="/proc/nowhere/at/all").start()


def test_it_goes_over_a_jump_host(ssh_service: Ssh, make: Make) -> None:
    assert _run(make(ssh_service, host=ssh_service.jumped), "echo over") == "over\n"


def test_files_of_any_size_are_copied_both_ways(ssh_service: Ssh, make: Make, tmp_path: Path) -> None:
    content = os.urandom((6 << 20) + 7)
    (tmp_path / "file").write_bytes(content)
    environment = make(ssh_service)
    environment.upload(str(tmp_path / "file"), f"/tmp/{tmp_path.name}.copy")
    environment.download(f"/tmp/{tmp_path.name}.copy", str(tmp_path / "back"))
    environment.files.remove(f"/tmp/{tmp_path.name}.copy")
    assert (tmp_path / "back").read_bytes() == content


# Host keys and logins


def test_a_host_with_another_key_than_before_is_refused(ssh_service: Ssh, make: Make) -> None:
    with pytest.raises(HostKeyRefused, match=r"another key than the one that is known.*ssh-keygen -R"):
        make(ssh_service, host=ssh_service.impostor).start()


@pytest.mark.parametrize("asked", ["yes", "no", "accept-new"])
def test_an_unknown_host_is_not_accepted_unseen_whatever_the_configuration_says(
    ssh_service: Ssh, make: Make, tmp_path: Path, asked: str
) -> None:
    known = tmp_path / "known"
    config = _config(tmp_path, ssh_service, UserKnownHostsFile=str(known), StrictHostKeyChecking=asked)
    with pytest.raises(HostKeyRefused, match=r"is not known here.*ssh-keyscan.*accept_new_hosts") as refused:
        make(ssh_service, config_file=config).start()
    assert f"ssh -F {config} {ssh_service.alias}" in str(refused.value), "a person can do that"
    assert not known.exists()


def test_an_unknown_host_is_accepted_when_the_settings_say_so_but_not_a_changed_one(
    ssh_service: Ssh, make: Make, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    config = _config(tmp_path, ssh_service, UserKnownHostsFile=str(known))
    assert _run(make(ssh_service, config_file=config, accept_new_hosts=True), "echo in") == "in\n"
    assert known.read_text().split()[1:3] == ssh_service.known_hosts.read_text().split()[1:3]
    with pytest.raises(HostKeyRefused):
        make(ssh_service, host=ssh_service.impostor, accept_new_hosts=True).start()


@pytest.mark.parametrize("host", ["guest", "jumped"])
def test_a_login_that_would_need_a_password_is_refused_and_nobody_is_asked(
    ssh_service: Ssh, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    asked = tmp_path / "asked"
    askpass = tmp_path / "askpass"
    askpass.write_text(f"#!/bin/sh\ntouch {asked}\nsleep 1000\n")
    askpass.chmod(0o755)
    for name, value in {"SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}.items():
        monkeypatch.setenv(name, value)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    config = tmp_path / "config"
    config.write_text(ssh_service.config.read_text().replace(str(ssh_service.key), str(key)))
    with takes_less_than(30), pytest.raises(LoginRefused, match="refused the login"):
        make(ssh_service, host=host, config_file=str(config)).start()
    assert not asked.exists()


def test_a_key_can_be_named_and_no_other_is_tried(ssh_service: Ssh, make: Make, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(ssh_service.config.read_text().replace("IdentityFile", "#"))
    environment = make(ssh_service, config_file=str(config), identity_file=str(ssh_service.key), port=ssh_service.port)
    assert _run(environment, "echo in") == "in\n"


def test_what_a_configuration_has_for_people_does_not_reach_a_models_commands(
    ssh_service: Ssh, make: Make, tmp_path: Path
) -> None:
    options = {
        "RemoteCommand": "echo not this",
        "RequestTTY": "force",
        "ForwardAgent": "yes",
        "PermitLocalCommand": "yes",
        "LocalCommand": f"touch {tmp_path}/ran",
        "LocalForward": f"{ssh_service.port} localhost:1",
        "ExitOnForwardFailure": "yes",
    }
    environment = make(ssh_service, config_file=_config(tmp_path, ssh_service, **options))
    assert _run(environment, "echo ${SSH_AUTH_SOCK-none}; tty") == "none\nnot a tty\n"
    assert not (tmp_path / "ran").exists()


# Connections


def _client_port(environment: SshEnvironment) -> str:
    return _run(environment, "echo ${SSH_CONNECTION% * *}")


def test_environments_of_one_host_share_a_connection(ssh_service: Ssh, make: Make) -> None:
    one, other = make(ssh_service), make(ssh_service)
    assert _client_port(one) == _client_port(other)
    assert len(_connections()) == 1
    one.close()
    assert _run(other, "echo still") == "still\n"
    [folder] = _folders()
    assert os.stat(folder).st_mode & 0o777 == 0o700
    other.close()
    assert not _folders()
    assert not _connections()


def test_environments_that_log_in_otherwise_share_none(ssh_service: Ssh, make: Make) -> None:
    one, other = make(ssh_service), make(ssh_service, identity_file=str(ssh_service.key))
    assert _client_port(one) != _client_port(other)


def test_environments_that_start_at_once_all_work(ssh_service: Ssh, make: Make) -> None:
    environments = [make(ssh_service) for _ in range(6)]
    answers: list[str] = []
    threads = [threading.Thread(target=lambda one=one: answers.append(_run(one, "echo here"))) for one in environments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["here\n"] * 6


def test_what_start_up_files_print_does_no_harm(own_ssh_service: Ssh, make: Make) -> None:
    (own_ssh_service.home / ".bashrc").write_text("echo welcome; printf '\\377\\0noise'; seq 10000\n")
    assert _run(make(own_ssh_service), "echo hi") == "hi\n"


def test_a_host_without_python_says_what_to_do(ssh_service: Ssh, make: Make) -> None:
    with pytest.raises(
        EnvironmentStartError, match=r"python9 was not found on the host.*install Python 3.8.*ssh.python"
    ):
        make(ssh_service, python="python9").start()


def test_a_start_that_failed_leaves_nothing_even_if_nobody_closes_it(ssh_service: Ssh) -> None:
    settings = {"host": ssh_service.impostor, "config_file": str(ssh_service.config)}
    with pytest.raises(HostKeyRefused):
        SshEnvironment.from_settings(settings, task_id="t").start()
    assert not _folders()


def test_after_a_fork_the_child_has_a_connection_of_its_own(ssh_service: Ssh, make: Make) -> None:
    environment = make(ssh_service)
    mine = _client_port(environment)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, _client_port(environment).encode())
            environment.close()
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as said:
        theirs = said.read()
    os.waitpid(child, 0)
    assert theirs
    assert theirs != mine
    assert _run(environment, "echo still") == "still\n"


def test_an_account_that_may_not_log_in_says_so(own_ssh_service: Ssh, make: Make) -> None:
    (own_ssh_service.home / ".bashrc").write_text("echo 'this account is not for you'; exit 7\n")
    with pytest.raises(EnvironmentStartError, match="ended with code 7: this account is not for you"):
        make(own_ssh_service).start()


def test_nobody_there_is_said_in_time(own_ssh_service: Ssh, make: Make) -> None:
    own_ssh_service.kill()
    with takes_less_than(30), pytest.raises(EnvironmentStartError, match=r"could not be reached.*Connection refused"):
        make(own_ssh_service).start()


# Losses


def _in_mid_command(environment: SshEnvironment, then: Callable[[], object]) -> str:
    """What a command had printed when the connection went."""
    with pytest.raises(EnvironmentLost, match="The next command starts it again") as lost:
        environment.execute("echo begun; setsid sleep 1001 & sleep 1000", on_output=lambda _: then(), timeout=60)
    return str(lost.value.details["output"])


@pytest.mark.parametrize("order", ["kill", "hang_up"])
def test_a_lost_connection_ends_all_that_ran_there_and_the_next_command_says_so(
    own_ssh_service: Ssh, make: Make, mark: str, order: str
) -> None:
    environment = make(own_ssh_service)
    _run(environment, "cd /usr; KEPT=1")
    wait_until(lambda: _is_saved(environment))
    with takes_less_than(PATIENCE_SECONDS):
        assert _in_mid_command(environment, getattr(own_ssh_service, order)) == "begun\n"
    wait_until(lambda: not running_with(mark))
    if order == "kill":
        with pytest.raises(EnvironmentStartError, match="could not be reached"):
            environment.execute("echo too early", timeout=PATIENCE_SECONDS)
        own_ssh_service.start_again()
    result = environment.execute("pwd; echo $KEPT", timeout=PATIENCE_SECONDS)
    assert text(result) == "/usr\n1\n"
    assert result.restarted == (RestartReason.LOST, ShellState.OLDER)
    assert environment.execute("true", timeout=PATIENCE_SECONDS).restarted is None


def _is_saved(environment: SshEnvironment) -> bool:
    """Its state is sent when the shell has been idle for a moment, and comes with the next answer."""
    environment.left_running()
    return environment._link is not None and environment._link.state is not None


def test_a_cut_link_is_noticed_at_both_ends(far_ssh_service: Ssh, make: Make, mark: str) -> None:
    link = far_ssh_service.link
    assert link is not None
    environment = make(far_ssh_service, keepalive=1)
    _run(environment, "cd /usr")
    with takes_less_than(30):
        assert _in_mid_command(environment, link.cut) == "begun\n"
    assert running_with(mark), "nobody has told that machine"
    wait_until(lambda: not running_with(mark), otherwise=lambda: "the far side does not miss us")
    link.restore()
    result = environment.execute("echo again", timeout=PATIENCE_SECONDS)
    assert text(result) == "again\n"
    assert result.restarted is not None
    assert result.restarted.reason is RestartReason.LOST


RUNTIME = """
import sys, json
from handrail.environments.backends.ssh import SshEnvironment
environment = SshEnvironment.from_settings(json.loads(sys.argv[1]), task_id="t")
environment.background("sleep 2000", survives=False)
environment.execute("setsid -f sleep 2001 >/dev/null 2>&1")
environment.execute("echo begun; sleep 2002", on_output=lambda _: print("begun", flush=True))
"""


@pytest.mark.usefixtures("orphans")
def test_a_killed_runtime_leaves_nothing_there_and_what_it_left_here_is_pruned(ssh_service: Ssh, mark: str) -> None:
    settings = f'{{"host": "{ssh_service.alias}", "config_file": "{ssh_service.config}", "env": {{"MARK": "{mark}"}}}}'
    runtime = subprocess.Popen([sys.executable, "-c", RUNTIME, settings], stdout=subprocess.PIPE)
    assert runtime.stdout is not None
    assert runtime.stdout.readline() == b"begun\n"
    runtime.stdout.close()
    wait_until(lambda: len(running_with(mark)) >= 4)  # the last of them starts after it has said so
    assert _connections(runtime.pid)
    os.kill(runtime.pid, signal.SIGKILL)
    runtime.wait()
    wait_until(lambda: not running_with(mark))
    wait_until(lambda: not _connections(runtime.pid))
    ours = [found for found in SshEnvironment.prune(dry_run=True) if f".{runtime.pid}." in found]
    assert len(ours) == 1
    assert set(ours) <= set(SshEnvironment.prune(dry_run=False))
    assert not [found for found in SshEnvironment.prune(dry_run=True) if f".{runtime.pid}." in found]


@pytest.mark.usefixtures("orphans")
def test_what_is_in_use_is_not_pruned(ssh_service: Ssh, make: Make) -> None:
    environment = make(ssh_service)
    environment.start()
    assert not [found for found in SshEnvironment.prune(dry_run=False) if f".{os.getpid()}." in found]
    assert _run(environment, "echo hi") == "hi\n"


def test_a_process_that_is_to_live_on_is_found_again(ssh_service: Ssh, make: Make) -> None:
    first = make(ssh_service)
    started = first.background("echo up; sleep 1000", survives=True)
    mortal = first.background("sleep 1001")
    first.close()
    second = make(ssh_service)
    found = {process.id: process for process in second.processes()}
    assert mortal.id not in found
    again = found[started.id]
    assert again.poll().state is ProcessState.RUNNING
    assert again.read(timeout=PATIENCE_SECONDS).data == b"up\n"
    assert again.kill().state is ProcessState.ENDED
    again.forget()
    assert started.id not in {process.id for process in second.processes()}


# Settings


def test_a_check_says_nothing_when_all_is_well(ssh_service: Ssh) -> None:
    assert SshEnvironment.check({"host": ssh_service.alias, "config_file": str(ssh_service.config)}) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"host": "impostor"}, "another key than the one that is known"),
        ({"host": "guest", "python": "python9"}, "python9 was not found"),
        ({"host": "guest", "port": 1}, "could not be reached"),
        ({}, "ssh.host: is missing: the host"),
    ],
)
def test_a_check_says_what_is_wrong(ssh_service: Ssh, settings: dict[str, Any], said: str) -> None:
    with takes_less_than(30):
        answer = SshEnvironment.check({"config_file": str(ssh_service.config), **settings})
    assert said in str(answer)


def test_a_check_of_a_host_that_is_silent_ends(far_ssh_service: Ssh) -> None:
    assert far_ssh_service.link is not None
    far_ssh_service.link.cut()
    with takes_less_than(30):
        assert SshEnvironment.check({"host": "guest", "config_file": str(far_ssh_service.config)}) is not None


def test_without_a_client_the_check_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    assert "install OpenSSH's client" in str(SshEnvironment.check({"host": "guest"}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hots": "x"}, "ssh.hots: unknown key; did you mean 'host'"),
        ({}, "ssh.host: is missing: the host"),
        ({"host": "-oProxyCommand=touch x"}, "ssh.host: it must be"),
        ({"host": ""}, "ssh.host: it must be"),
        ({"host": 7}, "ssh.host: must be text, not 7"),
        ({"host": "x", "port": 0}, "ssh.port: must be at least 1, not 0"),
        ({"host": "x", "port": "22"}, "ssh.port: must be a whole number"),
        ({"host": "x", "accept_new_hosts": "no"}, "ssh.accept_new_hosts: must be true or false"),
        ({"host": "x", "env": {"A": 1}}, "ssh.env.A: must be text, not 1"),
        ({"host": "x", "identity_file": "/proc/nowhere/key"}, "ssh.identity_file: there is no file /proc/nowhere/key"),
        ({"host": "x", "config_file": "/proc/nowhere/config"}, "ssh.config_file: there is no file"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        SshEnvironment.from_settings(settings, task_id="t")
    assert said in str(wrong.value)


def test_a_time_limit_holds_there(ssh_service: Ssh, make: Make, mark: str) -> None:
    environment = make(ssh_service)
    environment.start()
    result = environment.execute("trap '' TERM; echo begun; (setsid sleep 1000) | sleep 1001", timeout=2)
    assert text(result).startswith("begun\n")
    assert (result.exit_code, result.timed_out) == (124, True)
    assert result.seconds < 30
    wait_until(lambda: len(running_with(mark)) <= 1, otherwise=lambda: "more than the shell itself is left")


def test_what_a_command_changes_on_a_host_can_be_undone(ssh_service: Ssh, make: Make) -> None:
    shell = make(ssh_service)
    check_undo(shell)
    check_undo_of_random_calls(shell)


def test_a_command_that_deletes_much_waits_for_an_answer(ssh_service: Ssh, make: Make) -> None:
    check_pause(make(ssh_service))


def test_contained_writes_outside_of_its_folder_wait_for_an_answer(ssh_service: Ssh, make: Make) -> None:
    usual = next(
        place for place in ("/opt", os.path.expanduser("~")) if os.access(place, os.W_OK)
    )  # none for temporary files
    with tempfile.TemporaryDirectory(dir=usual) as outside:
        Path(outside, "kept").write_text("kept\n")
        for place in (outside, f"{outside}/kept"):
            os.chmod(place, 0o777)  # its user may write there
        shell = make(ssh_service, profile="contained")
        asked = answering(shell, lambda held: ALLOW if held.target.endswith("/yes") else DENY)
        written = shell.execute(f"echo a > in && echo b > {outside}/yes && cat in {outside}/kept", timeout=60, call=1)
        assert (text(written), written.exit_code) == ("a\nkept\n", 0)
        refused = shell.execute(f"rm in {outside}/kept; echo c > {outside}/no", timeout=60, call=2)
        assert refused.exit_code != 0
        names = [(held.kind, os.path.basename(held.target)) for held in asked]
        assert names == [("write outside", name) for name in ("yes", "kept", "no")]
        assert Path(outside, "yes").read_text() == "b\n"
        assert sorted(os.listdir(outside)) == ["kept", "yes"]


def test_an_unknown_profile_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError, match="choose open or contained"):
        SshEnvironment.from_settings({"host": "a", "profile": "sealed"}, task_id="")
