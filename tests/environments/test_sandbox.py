"""Local commands in a sandbox."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from handrail.environments import sandbox
from handrail.environments.errors import EnvironmentStartError, SandboxUnavailable
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
from handrail.environments.shell_host import landlock, proc

from ..support import wait_until
from .conftest import PATIENCE_SECONDS, is_running, text


@pytest.fixture
def home_of_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private")
    (home / ".netrc").write_text("password")
    (home / "notes").write_text("public")
    monkeypatch.setenv("HOME", str(home))
    return home


def _run(environment: LocalEnvironment, command: str) -> str:
    return text(environment.execute(command, timeout=PATIENCE_SECONDS))


def test_only_the_work_tree_can_be_written_to(work: Path, home_of_secrets: Path) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        assert local.isolated
        assert local.reaches_host
        assert not local.persistent
        assert _run(local, "touch inside && echo yes") == "yes\n"
        for place in ("/usr/outside", "/etc/outside", "/outside", "/var/outside"):
            assert local.execute(f"touch {place}", timeout=PATIENCE_SECONDS).exit_code != 0
            assert not Path(place).exists()
    assert (work / "inside").exists()


@pytest.mark.parametrize("mechanism", Mechanism)
def test_root_has_no_power_to_undo_it(work: Path, mechanism: Mechanism) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy(mechanism=mechanism)) as local:
        assert _run(local, "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status | grep -v '0000000000000000'") == ""
        for way in ("remount,rw", "remount,rw,bind"):
            assert local.execute(f"mount -o {way} / /", timeout=PATIENCE_SECONDS).exit_code != 0
        assert local.execute("touch /usr/outside", timeout=PATIENCE_SECONDS).exit_code != 0
    assert not Path("/usr/outside").exists()


def test_the_temporary_folder_is_its_own(tmp_path: Path) -> None:
    mark = Path("/tmp") / f"handrail-mark-{os.getpid()}"
    mark.write_text("x")
    work = Path("/var/tmp") / f"handrail-work-{os.getpid()}"
    work.mkdir()
    try:
        with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
            assert _run(local, f"ls {mark} 2>&1 | wc -l; touch /tmp/inside && ls /tmp/inside") == "1\n/tmp/inside\n"
            assert local.execute(f"test -e {mark}", timeout=PATIENCE_SECONDS).exit_code == 1
        assert not Path("/tmp/inside").exists()
    finally:
        mark.unlink()
        work.rmdir()


def test_keys_and_passwords_in_the_home_are_not_there(work: Path, home_of_secrets: Path) -> None:
    with LocalEnvironment(
        str(work), sandbox=SandboxPolicy(writable=(str(work), str(home_of_secrets / "notes")))
    ) as local:
        found = _run(
            local,
            f"ls {home_of_secrets}/.ssh 2>/dev/null; cat {home_of_secrets}/.netrc 2>/dev/null; cat {home_of_secrets}/notes",
        )
        assert found == "public"
        with pytest.raises(FileNotFoundError):  # the file tools see the same
            local.files.read(str(home_of_secrets / ".ssh" / "id"), max_bytes=10)
        with pytest.raises(OSError, match="read-only"):
            local.files.write("/usr/outside", b"x")


def test_the_runtimes_own_files_are_not_there(work: Path, home: Path) -> None:
    (home / "config.yaml").write_text("command_allowlist: []")
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        assert local.execute(f"cat {home}/config.yaml", timeout=PATIENCE_SECONDS).exit_code == 1
        local.execute(f"echo bad >{home}/config.yaml", timeout=PATIENCE_SECONDS)
    assert (home / "config.yaml").read_text() == "command_allowlist: []"


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_off_unless_it_is_allowed(work: Path, network: bool) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy(network=network)) as local:
        own = int(_run(local, "readlink /proc/self/ns/net | tr -dc 0-9"))
    assert (own == os.stat("/proc/self/ns/net").st_ino) is network


def test_it_sees_and_reaches_no_process_outside(work: Path) -> None:
    outside = subprocess.Popen(["sleep", "1000"])
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        assert _run(local, "pgrep -f '^sleep 1000$' | wc -l") == "0\n"
    assert outside.poll() is None
    outside.kill()
    outside.wait()


def test_it_has_the_state_of_a_shell_and_all_else(work: Path) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        local.execute("V=1; f() { echo F; }", timeout=PATIENCE_SECONDS)
        assert local.execute("sleep 1000", timeout=0.2).timed_out
        assert _run(local, "echo $V; f") == "1\nF\n"
        process = local.background("echo up; cat")
        process.write(b"x\n")
        wait_until(lambda: process.read().data == b"up\nx\n")
        terminal = local.open_pty("read line")
        wait_until(terminal.waits_for_input)
        local.files.write("file", b"content")
    assert (work / "file").read_bytes() == b"content"


def test_a_process_cannot_be_started_to_outlive_it(work: Path) -> None:
    local = LocalEnvironment(str(work), sandbox=SandboxPolicy())
    with local, pytest.raises(EnvironmentStartError, match="cannot outlive"):
        local.background("sleep 1000", survives=True)


def test_the_runtimes_secrets_are_not_in_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        assert _run(local, "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c OPENAI") == "0\n"


def test_without_namespaces_bubblewrap_and_landlock_nothing_runs(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    monkeypatch.setattr(sandbox, "can_make_namespaces", lambda: False)
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    with pytest.raises(SandboxUnavailable, match="install the package bubblewrap"):
        LocalEnvironment(str(work), sandbox=SandboxPolicy()).execute(f"touch {work}/ran")
    assert list(work.iterdir()) == []


def test_it_ends_when_the_runtime_is_killed_and_not_when_a_thread_ends(work: Path) -> None:
    code = """
import os, sys, threading
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
from handrail.environments.shell_host import proc
local = LocalEnvironment(sys.argv[1], sandbox=SandboxPolicy())
thread = threading.Thread(target=local.start)
thread.start()
thread.join()
assert local.execute("echo hi").output.head == b"hi\\n"
local.execute("setsid -f sleep 2000 >/dev/null 2>&1")
local.execute("echo begun; sleep 2001", on_output=lambda _: print(*proc.tree(os.getpid()), flush=True))
"""
    client = subprocess.Popen([sys.executable, "-c", code, str(work)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    pids = [int(pid) for pid in client.stdout.readline().split()]
    client.stdout.close()
    assert len(pids) > 5
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    wait_until(
        lambda: not any(map(is_running, pids)),
        otherwise=lambda: str([proc.command_line(p) for p in pids if is_running(p)]),
    )


def test_a_further_sandbox_is_three_processes(work: Path) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as first:
        first.start()
        before = set(proc.tree(os.getpid()))
        with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as second:
            second.start()
            assert len(set(proc.tree(os.getpid())) - before) == 3
            first.execute("touch /tmp/mine", timeout=PATIENCE_SECONDS)
            assert _run(second, "ls /tmp/mine 2>/dev/null") == ""
        assert set(proc.tree(os.getpid())) == before


def test_a_killed_supervisor_is_replaced_inside_of_it_and_leaves_nothing(work: Path) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        local.execute("V=1; touch /tmp/kept", timeout=PATIENCE_SECONDS)
        local.execute("setsid -f sleep 2002 >/dev/null 2>&1; kill -9 $PPID", timeout=PATIENCE_SECONDS)
        assert _run(local, "ls /tmp/kept; pgrep -f 'sleep 2002' | wc -l; kill -9 1; cat /proc/1/comm") == (
            "/tmp/kept\n0\nhandrail-relay\n"
        )


def test_what_was_to_be_covered_may_be_gone_meanwhile(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    covers = SandboxPolicy._covers
    gone = {"/usr/gone": ["--ro-bind", "/dev/null", "/usr/gone"], "/usr/gone2": ["--tmpfs", "/usr/gone2"]}
    monkeypatch.setattr(SandboxPolicy, "_covers", lambda self: {**covers(self), **gone})
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as local:
        assert _run(local, "ls /usr | grep -c gone") == "0\n"


def test_where_no_proc_can_be_mounted_namespaces_are_not_chosen() -> None:
    code = "from handrail.environments import sandbox; print(sandbox.can_make_namespaces())"
    mask = 'mount -t tmpfs none /proc/irq && exec "$@"'  # as containers do it
    words = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", mask, "sh"]
    ran = subprocess.run([*words, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_when_the_server_was_killed_another_one_starts_sandboxes(work: Path) -> None:
    with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as first:
        first.start()
        for pid in proc.children(os.getpid()):
            if proc.command_line(pid) == "handrail-fork" and any(map(proc.children, proc.children(pid))):
                os.kill(pid, signal.SIGKILL)
        with LocalEnvironment(str(work), sandbox=SandboxPolicy()) as second:
            assert _run(second, "echo second") == "second\n"
        assert _run(first, "echo first") == "first\n"


_SANDBOXES = [Mechanism.NAMESPACES, Mechanism.LANDLOCK]


@pytest.mark.parametrize("mechanism", _SANDBOXES, ids=lambda one: one.value)
@pytest.mark.parametrize("above", [".", "..", "/"])
def test_a_work_tree_above_them_does_not_uncover_hidden_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, above: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib" if os.geteuid() == 0 else Path.home()) as folder:
        home = Path(folder, "home")
        own = [home / ".config/handrail", home / ".cache/handrail", home / ".local/state/handrail", home / ".ssh"]
        for place in own:
            place.mkdir(parents=True)
            (place / "secret").write_text("SECRET")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("HANDRAIL_HOME", raising=False)
        policy = SandboxPolicy(mechanism=mechanism)
        with LocalEnvironment(os.path.normpath(home / above), sandbox=policy) as shell:
            for place in own:
                result = shell.execute(f"cat {place}/secret; echo x > {place}/secret; echo x > {place}/new", timeout=60)
                assert "SECRET" not in text(result), place
        assert [(place / "secret").read_text() for place in own] == ["SECRET"] * 4
        assert not any((place / "new").exists() for place in own)


def test_what_makes_other_programs_run_something_is_read_only(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    script = (
        "git init -q sub && git -C sub -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && "
        "git init -q tree && cd tree && "
        "git -c protocol.file.allow=always submodule --quiet add ../sub inner && mkdir .vscode .idea .husky && "
        "touch .envrc .mcp.json .vscode/tasks.json && git config core.hooksPath .husky"
    )
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    protected = [".git/config", ".git/hooks/x", ".git/modules/inner/config", ".git/modules/inner/hooks/x", ".envrc"]
    protected += [".mcp.json", ".vscode/tasks.json", ".idea/x", ".husky/pre-commit"]
    with LocalEnvironment(str(tree), sandbox=SandboxPolicy(mechanism=Mechanism.NAMESPACES)) as shell:
        for path in protected:
            assert shell.execute(f"echo x >> {path}", timeout=60).exit_code != 0, path
        for command in (
            "git config core.fsmonitor evil",
            "mv .vscode v2",
            "rm -rf .git/hooks",
            "mv .git g2",
            "mv .git/modules m2",
        ):
            shell.execute(command, timeout=60)
        git = "git -c user.name=x -c user.email=x@x"
        assert shell.execute(f"echo x > new && git add new && {git} commit -qm y", timeout=60).exit_code == 0
    assert "fsmonitor" not in (tree / ".git/config").read_text()
    assert (tree / ".vscode/tasks.json").read_text() == ""


@pytest.mark.parametrize("place", ["/var/tmp", "~"])
def test_sockets_of_other_programs_cannot_be_reached(tmp_path: Path, place: str) -> None:
    with tempfile.TemporaryDirectory(dir=os.path.expanduser(place)) as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({folder + '/s'!r})"
        with LocalEnvironment(str(tmp_path), sandbox=SandboxPolicy(mechanism=Mechanism.NAMESPACES)) as shell:
            assert shell.execute(f"python3 -c {shlex.quote(code)}", timeout=60).exit_code != 0


def test_handrails_own_folder_is_no_work_tree(home: Path) -> None:
    shell = LocalEnvironment(str(home), sandbox=SandboxPolicy())
    with pytest.raises(SandboxUnavailable, match="belongs to Handrail"):
        shell.execute("true", timeout=60)
    shell.close()
