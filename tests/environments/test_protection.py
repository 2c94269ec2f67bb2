"""What belongs to Handrail is protected by the kernel, whatever a command does: as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection, _described, check_allowed, sockets
from handrail.errors import InvalidArguments

from .conftest import PATIENCE_SECONDS, text

_SOURCE = Path(__file__).parents[2] / "src" / "handrail"
_WRITES = [
    line
    for line in (Path(__file__).parent / "own_file_writes.txt").read_text().splitlines()
    if not line.startswith("#")
]
_USER = 54321
# A folder is covered in one of two ways: it can be read, or it is invisible. One of each is tried with every command by one of
# the users, the others with a share of them; `make soak` asks for all.
_WHOLE = {"configuration", "state"}
_OTHERS = int(os.environ.get("OWN_FILES_EVERY", "8"))
# Root and a user come into the protection in two ways, and what it is like inside is the same: a test takes one of them in turn,
# but for those that try to get out of it.
pytestmark = pytest.mark.by_turns("template", ("root", "user"))
by_both = pytest.mark.by_turns()


class Home(NamedTuple):
    """A user's home with Handrail's folders and a copy of its program in it."""

    path: Path
    python: list[str]
    env: dict[str, str]

    @property
    def own(self) -> dict[str, Path]:
        return {
            "configuration": self.path / ".config/handrail",
            "plugins": self.path / ".config/handrail/plugins",
            "cache": self.path / ".cache/handrail",
            "state": self.path / ".local/state/handrail",
            "program": self.path / "install/handrail",
        }

    @property
    def work(self) -> Path:
        return self.path / "work"

    def run(self, *commands: str, **options: Any) -> dict[str, Any]:
        order = {"cwd": str(self.work), "commands": commands, **options}
        script = self.path / "install" / "protected_commands.py"
        done = subprocess.run(
            [*self.python, str(script)],
            input=json.dumps(order),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=580,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    def output(self, command: str, **options: Any) -> str:
        ((_, said),) = self.run(command, **options)["said"]
        return str(said)


def _users() -> list[str]:
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


@pytest.fixture(scope="module", params=_users())
def template(request: pytest.FixtureRequest) -> Iterator[Home]:
    """What every test gets a copy of: a copy of the program is compiled once, and then only copied."""
    with tempfile.TemporaryDirectory(prefix="handrail-template-") as folder:
        yield _make_home(Path(folder), is_root=request.param == "root")


@pytest.fixture
def home(template: Home) -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="handrail-home-") as folder:
        others = [str(each) for each in template.path.iterdir() if each.name != "install"]
        subprocess.run(["cp", "-a", *others, folder], check=True)
        # Its thousands of files are the template's own: what a command could do to one would be seen here all the same.
        subprocess.run(["cp", "-al", str(template.path / "install"), folder], check=True)
        shutil.copystat(template.path, folder)
        os.chown(folder, template.path.stat().st_uid, template.path.stat().st_gid)
        yield Home(Path(folder), template.python, _environment(Path(folder)))


def _make_home(folder: Path, *, is_root: bool) -> Home:
    shutil.copytree(
        _SOURCE, folder / "install/handrail", ignore=shutil.ignore_patterns("__pycache__", "static", "console")
    )
    shutil.copy(Path(__file__).with_name("protected_commands.py"), folder / "install")
    python = [sys.executable]
    if os.geteuid() == 0 and not is_root:
        # An interpreter that everybody may run.
        python = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "/usr/bin/python3"]
    home = Home(folder, python, _environment(folder))
    home.work.mkdir()
    if os.geteuid() == 0 and not is_root:
        _give_away(folder)
    home.env.pop("PYTHONDONTWRITEBYTECODE")
    home.run()
    for place in home.own.values():
        place.mkdir(parents=True, exist_ok=True)
        (place / "known").write_text("known\n")
        (place / "empty").mkdir()
    _fill(home.work)
    if os.geteuid() == 0 and not is_root:
        _give_away(folder)
    return home


def _environment(folder: Path) -> dict[str, str]:
    env = {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(folder / "install")}
    return env | {"PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}


def _give_away(folder: Path) -> None:
    subprocess.run(["chown", "-R", f"{_USER}:{_USER}", str(folder)], check=True)


def _fill(work: Path) -> None:
    """What the commands write with."""
    (work / "seed").write_text("seed\nseeds\n")
    (work / "tree").mkdir()
    (work / "tree/new").write_text("x")
    (work / "change.patch").write_text("--- known\n+++ known\n@@ -1 +1 @@\n-known\n+changed\n")
    (work / "script.ed").write_text("a\nx\n.\nw\nq\n")
    (work / "make.mk").write_text("all:\n\t@echo x > $(OWN)/new\n")
    (work / "package").mkdir()
    (work / "package/pyproject.toml").write_text("[project]\nname = 'x'\nversion = '1'\n")
    script = (
        "cd tree && tar -cf ../tree.tar . && find . | cpio -o --quiet > ../tree.cpio; python3 -m zipfile -c ../tree.zip new; "
        "cd .. && git init -q repository && cd repository && echo x > new && printf 'install:\\n\\tcp new $(DESTDIR)/new\\n' "
        "> Makefile && git add . && git -c user.name=x -c user.email=x@x commit -qm x"
    )
    subprocess.run(["sh", "-c", script], cwd=work, capture_output=True, check=False)


def _fingerprint(folder: Path) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for place, folders, files in os.walk(folder):
        for name in sorted([*folders, *files, "."]):
            path = os.path.join(place, name)
            stat = os.lstat(path)
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            found.append((path, stat.st_mode, stat.st_uid, stat.st_size, stat.st_mtime_ns, content))
    return sorted(found)


def _spelled(command: str, own: Path) -> str:
    words = command.format(own=own, above=own.parent, name=own.name)
    return f"timeout 20 bash -c {shlex.quote(words)} </dev/null >/dev/null 2>&1; true"


@by_both
@pytest.mark.parametrize("which", ["configuration", "plugins", "cache", "state", "program"])
def test_no_command_writes_to_our_own_files(home: Home, which: str) -> None:
    before = {name: _fingerprint(place) for name, place in home.own.items()}
    every = min(len(_users()), _OTHERS) if which in _WHOLE else _OTHERS
    first = list(home.own).index(which) + (home.python == [sys.executable])
    home.run(*(_spelled(command, home.own[which]) for command in _WRITES[first % every :: every]))
    after = {name: _fingerprint(place) for name, place in home.own.items()}
    # Covering a folder makes none: what a command made in place of it would be here.
    assert after == before


@pytest.mark.parametrize("template", _users()[:1], indirect=True)
def test_every_one_of_these_commands_writes_where_nothing_protects(home: Home) -> None:
    """Otherwise the test above says nothing. A program that is missing here writes nothing, and that is all."""
    own, kept = home.own["plugins"], home.path / "kept"
    shutil.copytree(own, kept, symlinks=True)
    check = f"diff -r {kept} {own} >/dev/null 2>&1 && stat -c %Y%a {kept}/known | diff - <(stat -c %Y%a {own}/known) >/dev/null"
    reset = f"rm -rf {own} {own.parent}.old {own}.old {own}.new; mkdir -p {own}; cp -a {kept}/. {own}; echo seed > seed; {check}"
    orders = []
    for command in _WRITES:
        orders += [reset, _spelled(command, own), check]
    said = home.run(*orders, protected=False)["said"]
    duds = [command for command, (code, _) in zip(_WRITES, said[2::3], strict=True) if code == 0 and _is_known(command)]
    assert duds == [], duds


def _is_known(command: str) -> bool:
    """Whether the programs of a command are here, and allowed to do it without protection."""
    program = command.split()[0].lstrip("(")
    return shutil.which(program) is not None and program not in (
        "mount",
        "nsenter",
        "unshare",
        "bwrap",
        "chroot",
        "for",
        "mv",
    )


@by_both
def test_handrails_secrets_are_invisible_and_its_configuration_can_be_read(home: Home) -> None:
    state, config = home.own["state"], home.own["configuration"]
    said = home.output(f"ls -A {state}; cat {state}/known; cat {config}/known")
    assert said == f"cat: {state}/known: No such file or directory\nknown\n"


_REACHES_FOR_OTHERS = (
    "cat /proc/@RUNTIME@/environ",
    "cat /proc/@OUTSIDE@/environ",
    "tr '\\0' '\\n' < /proc/@OUTSIDE@/environ | grep secret",
    "grep -al secret-of-another-process /proc/[0-9]*/environ",
    "readlink /proc/@OUTSIDE@/fd/0",
    "readlink /proc/@OUTSIDE@/cwd",
    "ls /proc/@RUNTIME@/root/",
    "head -c 1 /proc/@OUTSIDE@/mem",
    "kill -0 @OUTSIDE@",
    "kill -9 @OUTSIDE@",
    "kill -HUP @RUNTIME@",
    "pkill -9 -x sleep",
    "python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open(@OUTSIDE@), 9)'",
    "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, @OUTSIDE@, 0, 0) == -1)'",
    "gdb -p @OUTSIDE@ -batch",
    "nsenter -t @OUTSIDE@ -m true",
)


@by_both
@pytest.mark.parametrize("pids", [True, False], ids=["own processes", "all processes"])
def test_other_processes_are_out_of_reach(home: Home, pids: bool) -> None:
    orders = [f"timeout 20 bash -c {shlex.quote(command)}" for command in _REACHES_FOR_OTHERS]
    answer = home.run(*orders, protection={"pids": pids})
    said = zip(_REACHES_FOR_OTHERS, answer["said"], answer["alive"], strict=True)
    reached = [command for command, (code, text), alive in said if code == 0 or "secret" in text or not alive]
    assert reached == []


def test_a_command_sees_its_own_processes_only(home: Home) -> None:
    assert home.output("ls -d /proc/[0-9]* | wc -l").strip() in ("3", "4", "5", "6")
    assert "sleep" not in home.output("ps axo comm")


_TAKES_PROTECTION_AWAY = (
    "umount -l {own}",
    "umount {own}",
    "mount -o remount,rw {own}",
    "mount -o remount,bind,rw {own}",
    "mount --bind / /mnt",
    "mount --make-rshared /",
    "unshare -m true",
    "unshare -Um true",
    "unshare -Urm true",
    "unshare -r sh -c 'umount -l {own}'",
    "unshare -Ur sh -c 'mount -t tmpfs x {own}'",
    "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(435, b\"\\0\" * 88, 88) == -1)'",
    "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(428, -100, b\"/\", 1) == -1)'",
    "mv {above} {above}2",
    "mv {own} {own}2",
    "rmdir {own}",
)


@by_both
def test_the_protection_cannot_be_taken_away(home: Home) -> None:
    own = home.own["configuration"]
    commands = [command.format(own=own, above=own.parent) for command in _TAKES_PROTECTION_AWAY]
    said = home.run(*(f"timeout 20 bash -c {shlex.quote(command)}" for command in commands))["said"]
    assert [command for command, (code, _) in zip(commands, said, strict=True) if code == 0] == []


def test_browsers_can_still_make_user_namespaces_for_their_sandbox(home: Home) -> None:
    assert home.output("unshare -Urpf --mount-proc=/proc true; unshare -Ur id -u").endswith("0\n")


def test_files_belong_to_the_same_user_and_the_directory_is_kept(home: Home) -> None:
    uid = (home.work / "seed").stat().st_uid
    assert home.output("id -u; pwd; touch made; stat -c %u made seed") == f"{uid}\n{home.work}\n{uid}\n{uid}\n"
    assert (home.work / "made").stat().st_uid == uid


def test_hard_links_and_renames_work_across_the_home(home: Home) -> None:
    """The folders above ours cannot be renamed, and otherwise are one file system as before."""
    commands = (
        "ln seed ~/.cache/linked && mv ~/.cache/linked ~/.config/moved && stat -c %h seed && mkdir ~/new && rmdir ~/new"
    )
    assert home.output(commands) == "2\n"


def test_terminals_are_our_own(home: Home) -> None:
    said = home.output(
        "ls /dev/pts; script -qc tty /dev/null; for n in 0 1 2 3; do echo x > /dev/pts/$n; done 2>&1 | wc -l"
    )
    assert said.splitlines()[0] == "ptmx"
    assert "/dev/pts/0" in said


def test_a_socket_of_a_program_that_acts_for_others_is_covered_and_can_be_allowed(home: Home) -> None:
    runtime = home.path / "run"
    (runtime / "gnupg").mkdir(parents=True)
    places = {"bus": runtime / "bus", "agent": home.path / "agent.sock", "gnupg": runtime / "gnupg/S.gpg-agent"}
    servers = [_listening(path) for path in places.values()]
    subprocess.run(["chown", "-R", f"{home.work.stat().st_uid}", str(runtime), str(places["agent"])], check=True)
    home.env.update(XDG_RUNTIME_DIR=str(runtime), SSH_AUTH_SOCK=str(places["agent"]), DISPLAY=":7", TMUX="/tmp/x,1,0")
    connect = (
        "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' {} 2>/dev/null && echo in"
    )
    commands = [connect.format(path) for path in places.values()]
    seen = "echo $SSH_AUTH_SOCK-$DISPLAY-$TMUX-$DBUS_SESSION_BUS_ADDRESS"
    try:
        refused = home.run(*commands, seen)["said"]
        allowed = home.run(*commands, seen, protection={"allowed": ["ssh-agent", "gpg-agent"]})["said"]
    finally:
        for server in servers:
            server.close()
    assert [said for _, said in refused] == ["", "", "", "---\n"]
    assert [said for _, said in allowed] == ["", "in\n", "in\n", f"{places['agent']}---\n"]


def _listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    path.chmod(0o777)
    return server


def test_an_unknown_socket_is_an_error() -> None:
    check_allowed(list(sockets()))
    with pytest.raises(InvalidArguments, match="known: docker"):
        check_allowed(["dokcer"])


def test_background_processes_keep_their_log_and_their_terminal(work: Path) -> None:
    with LocalEnvironment(str(work)) as shell:
        process = shell.open_pty("tty; echo done")
        assert process.wait(PATIENCE_SECONDS).exit_code == 0
        assert process.read().data == b"/dev/pts/0\r\ndone\r\n"
        seen = int(text(shell.execute("sleep 1000 & echo $!", timeout=PATIENCE_SECONDS)))
        lasting = shell.background("sleep 1001")
        shell.execute(f"kill {seen} {lasting.pid}", timeout=PATIENCE_SECONDS)
        assert lasting.wait(PATIENCE_SECONDS).exit_code == 143


def test_a_linked_folder_is_protected_where_it_leads(home: Home) -> None:
    config = home.own["configuration"]
    elsewhere = home.path / "dotfiles"
    config.rename(elsewhere)
    config.symlink_to(elsewhere)
    before = _fingerprint(elsewhere)
    home.run(*(f"echo x > {path}/new; rm -rf {path}/known" for path in (config, elsewhere)))
    assert _fingerprint(elsewhere) == before


def test_folders_that_are_missing_cannot_be_made(home: Home) -> None:
    for place in (home.path / ".config", home.path / ".cache", home.path / ".local"):
        shutil.rmtree(place)
    said = home.run("mkdir -p ~/.config/handrail/plugins; echo x > ~/.config/handrail/config.yaml; echo done")["said"]
    assert said[0][1].endswith("done\n")
    assert list((home.path / ".config/handrail").iterdir()) == []


def test_a_work_tree_above_everything_does_not_uncover_it(home: Home) -> None:
    before = _fingerprint(home.own["configuration"])
    home.run("echo x > .config/handrail/new; rm -rf .config/handrail", cwd=str(home.path))
    home.run(f"echo x > .{home.own['configuration']}/new", cwd="/")
    assert _fingerprint(home.own["configuration"]) == before


def test_another_path_to_the_same_folder_is_protected_too(home: Home) -> None:
    other = home.path / "other"
    other.mkdir()
    mount = f'mount --bind {shlex.quote(str(home.path / ".config"))} {shlex.quote(str(other))} && exec "$@"'
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", mount, "sh"]
    home._replace(python=[*unshare, *home.python]).run(f"echo x > {other}/handrail/new; touch {other}/free")
    assert not (home.own["configuration"] / "new").exists()
    assert (home.path / ".config/free").exists()


def test_the_program_can_be_left_out(home: Home) -> None:
    program = home.own["program"]
    home.run(f"echo x > {program}/new", protection={"package": False})
    assert (program / "new").read_text() == "x\n"


def test_no_link_swapped_in_time_leads_into_our_files(home: Home) -> None:
    own = home.own["configuration"]
    race = (
        f"mkdir -p real; ln -sfn real d; (while :; do ln -sfn {own} d; ln -sfn real d; done) 2>/dev/null & p=$!; "
        "for i in {1..20000}; do echo x > d/new; done 2>/dev/null; kill $p"
    )
    before = _fingerprint(own)
    home.run(race.replace("{1..20000}", "$(seq 4000)"))
    assert _fingerprint(own) == before


@by_both
def test_a_protected_shell_says_how_it_is_protected(home: Home) -> None:
    report = home.run("true")["report"]
    assert report == {"by": "namespaces", "pids": True, "missing": [], "can_hold": False}  # nothing is watched here


@by_both
def test_without_namespaces_landlock_protects_our_files(home: Home) -> None:
    before = _contents(home)
    writes = [_spelled(command, place) for place in home.own.values() for command in _WRITES[::9]]
    config, state = home.own["configuration"], home.own["state"]
    price = f"touch {home.path}/new {home.work}/new; ls {home.work}/new; cat {config}/known; cat {state}/known"
    done = home.run(*writes, price, refused=["unshare"])
    assert done["report"]["by"] == "landlock"
    assert {"sockets", "modes and times of files"} <= {*done["report"]["missing"]}
    said = done["said"][-1][1]
    assert f"{home.path}/new" in said
    assert not (home.path / "new").exists()
    assert f"{home.work}/new\nknown\n" in said
    assert said.count("known\n") == 1
    assert _contents(home) == before


def _contents(home: Home) -> dict[str, list[tuple[object, object]]]:
    """What is in our folders: modes and times are not what Landlock knows about."""
    return {name: [(found[0], found[-1]) for found in _fingerprint(place)] for name, place in home.own.items()}


def test_where_the_kernel_refuses_everything_commands_run_and_the_report_says_so(home: Home) -> None:
    done = home.run("echo hello", refused=["unshare", "landlock_create_ruleset"])
    assert done["report"]["by"] == "nothing"
    assert done["report"]["why"] == "unshare: Operation not permitted"
    assert done["said"] == [[0, "hello\n"]]
    assert "the kernel protects nothing here" in _described(done["report"], Protection()).line


def test_inside_of_a_protected_shell_the_outer_protection_holds(home: Home) -> None:
    own = home.own["configuration"]
    order = json.dumps({"cwd": str(home.work), "commands": [f"echo x > {own}/new; cat {own}/known"]})
    python = sys.executable if home.python == [sys.executable] else "/usr/bin/python3"
    inner = f"printf %s {shlex.quote(order)} | {python} {home.path}/install/protected_commands.py 2>&1"
    done = json.loads(home.output(inner))
    assert done["report"]["by"] == "outer"
    ((_, said),) = done["said"]
    assert said.endswith("known\n")
    assert "new" in said
    assert not (own / "new").exists()


def test_the_default_is_to_protect() -> None:
    assert Protection().package
    assert Protection().pids
