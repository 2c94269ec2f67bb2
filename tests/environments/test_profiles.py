"""Commands in the profile `contained`: what they write outside of the work tree waits for an answer."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.base.workers import run_async
from handrail.environments.held_calls import held_calls
from handrail.environments.shell_host.work_tree import repository_of, writable_folders
from handrail.protocols import ApprovalRequest, Decision
from handrail.settings.schema import Config
from tests.support import PYTHON, configure, wait_until

TASK = "t"
RACES = int(os.environ.get("HANDRAIL_RACES", "200"))  # read before the tests' own environment takes its place


class Person:
    """Answers by a function of the path, and remembers what was asked."""

    name = "person"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.requests: list[ApprovalRequest] = []
        self.decide_on: Callable[[str], Decision] = lambda _: Decision.ONCE

    def decide(self, request: ApprovalRequest) -> Decision:
        if request.kind.value != "held":
            return Decision.ONCE  # the command itself
        self.asked.append(request.text)
        self.requests.append(request)
        return self.decide_on(request.text)


class Contained:
    """A runtime with a work tree, and a folder outside of it that is in no folder for temporary files."""

    def __init__(self, app: Handrail, work: Path, outside: Path, person: Person) -> None:
        self.app, self.work, self.outside, self.person = app, work, outside, person

    def call(self, tool: str, task: str = TASK, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(str(self.app.handle_function_call(tool, arguments, task, None, "s")))
        return answer

    def run(self, command: str, **more: Any) -> dict[str, Any]:
        return self.call("terminal", command=command, **more)

    def out(self, command: str) -> str:
        """Run it in the folder outside."""
        return str(self.run(f"cd {self.outside} && {command}")["output"])


@pytest.fixture(scope="module", autouse=True)
def _loop_of_this_thread() -> None:
    """Some commands ask by themselves, on a loop that this thread then keeps: it is no leftover of one test."""
    run_async(asyncio.sleep(0))


@pytest.fixture
def outside() -> Iterator[Path]:
    place = tempfile.mkdtemp(prefix="handrail-outside-", dir=_somewhere_else())
    yield Path(place)
    subprocess.run(["rm", "-rf", place], check=True)


def _somewhere_else() -> str:
    """A folder that this user may write to and that commands may not."""
    usual = writable_folders(tempfile.gettempdir(), ())
    for place in ("/opt", "/srv", os.path.expanduser("~"), os.getcwd()):
        if os.access(place, os.W_OK) and not any(f"{place}/".startswith(f"{one}/") for one in usual):
            return place
    pytest.skip("every folder that this user can write to is one for temporary files")


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def contained(tmp_path: Path, outside: Path, person: Person) -> Iterator[Contained]:
    work = tmp_path / "work"
    work.mkdir()
    with Handrail(Config(), approver=person) as app:
        app.register_task_env_overrides(TASK, cwd=str(work))
        yield Contained(app, work, outside, person)


def test_what_is_inside_is_written_without_a_question(contained: Contained) -> None:
    made = contained.run(
        "echo a > x; mkdir -p d/e; mv x d/e; touch /tmp/in-$$ && rm /tmp/in-$$; echo > /dev/null; cat d/e/x"
    )
    assert (made["output"], made["exit_code"]) == ("a\n", 0)
    assert contained.person.asked == []


_OPEN = f"{PYTHON} -c 'import os; os.close(os.open(\"f\", os.O_CREAT | os.O_RDWR, 0o640))'"
# What is there before, the command, and what is there afterwards, as `find` prints it with modes.
OPERATIONS = {
    "create": ("true", "echo a > new", "cat new", "a\n"),
    "overwrite": ("echo a > f", "echo b > f", "cat f", "b\n"),
    "append": ("echo a > f", "echo b >> f", "cat f", "a\nb\n"),
    "creat by C": (
        "true",
        f"{PYTHON} -c 'import os; os.close(os.open(\"f\", os.O_CREAT | os.O_RDWR, 0o640))'",
        "stat -c %a f",
        "640\n",
    ),
    "unlink": ("touch f", "rm f", "ls", ""),
    "mkdir": ("true", "umask 027; mkdir d", "stat -c %a d", "750\n"),
    "rmdir": ("mkdir d", "rmdir d", "ls", ""),
    "rename": ("echo a > f", "mv f g", "ls", "g\n"),
    "link": ("echo a > f", "ln f g", "stat -c %h g", "2\n"),
    "symlink": ("true", "ln -s /nowhere/at/all l", "readlink l", "/nowhere/at/all\n"),
    "chmod": ("touch f", "chmod 604 f", "stat -c %a f", "604\n"),
    "truncate": ("echo abc > f", "truncate -s 2 f", "cat f", "ab"),
    "fifo": ("true", "mkfifo p", "stat -c %F p", "fifo\n"),
    "times": ("touch f", "TZ=UTC touch -d 2001-02-03T04:05:06 f", "stat -c %Y f", "981173106\n"),
    "times now": ("touch -d 2001-02-03 f", "touch f", "[ $(stat -c %Y f) -gt 981173106 ] && echo yes", "yes\n"),
    "attributes": (
        "touch f",
        f'{PYTHON} -c \'import os; os.setxattr("f", "user.a", b"b")\'',
        f'{PYTHON} -c \'import os; print(os.getxattr("f", "user.a"))\'',
        "b'b'\n",
    ),
    "tree": ("true", "mkdir -p a/b/c && echo x > a/b/c/d && cp -r a z", "cat z/b/c/d", "x\n"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_write_outside_waits_for_a_yes_and_then_goes_on(contained: Contained, name: str) -> None:
    before, command, look, expected = OPERATIONS[name]
    subprocess.run(["bash", "-c", before], cwd=contained.outside, check=True)
    made = contained.run(f"cd {contained.outside}; {command}; echo $?")
    assert made["output"] == "0\n"
    assert contained.person.asked
    assert all(path.startswith(str(contained.outside)) for path in contained.person.asked[0].splitlines())
    assert (
        subprocess.run(["bash", "-c", look], cwd=contained.outside, capture_output=True, text=True).stdout == expected
    )


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_write_outside_that_is_refused_changes_nothing_and_the_model_is_told(contained: Contained, name: str) -> None:
    before, command, _, _ = OPERATIONS[name]
    subprocess.run(["bash", "-c", before], cwd=contained.outside, check=True)
    was = _state(contained.outside)
    contained.person.decide_on = lambda _: Decision.DENY
    made = contained.run(f"cd {contained.outside} && {{ {command}; }}")
    assert made["exit_code"] != 0
    assert "denied" in made["output"] or "Errno 13" in made["output"]
    assert str(contained.outside) in made["note"]
    assert _state(contained.outside) == was


def _state(folder: Path) -> str:
    shown = ["find", ".", "-printf", "%p %m %s %l %T@ %n\n"]
    return subprocess.run(shown, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_is_undone_includes_what_was_allowed_outside(contained: Contained) -> None:
    (contained.outside / "f").write_text("one")
    contained.out("echo two > f; echo x > new; mkdir d; echo y > d/e")
    assert (contained.outside / "f").read_text() == "two\n"
    contained.call("undo")
    assert (contained.outside / "f").read_text() == "one"
    assert [path.name for path in contained.outside.iterdir()] == ["f"]


def test_a_question_says_who_wants_what(contained: Contained) -> None:
    contained.out("touch a; mv a b")
    first, second = contained.person.requests
    assert first.reason == f"touch wants to write {contained.outside}/a (outside of the work tree)"
    assert f"mv wants to move {contained.outside}/a to {contained.outside}/b" in second.reason


def test_nothing_runs_twice_after_a_yes(contained: Contained) -> None:
    contained.run(f"echo run >> count; echo a > {contained.outside}/x; echo run >> count")
    assert (contained.work / "count").read_text() == "run\nrun\n"


def test_moving_over_the_edge_works_in_both_directions(contained: Contained) -> None:
    (contained.work / "x").write_text("1")
    (contained.outside / "y").write_text("2")
    made = contained.run(f"mv x {contained.outside}/; mv {contained.outside}/y .; ls . {contained.outside}")
    assert (contained.work / "y").read_text() == "2"
    assert (contained.outside / "x").read_text() == "1"
    assert made["exit_code"] == 0


def test_between_two_writable_folders_a_rename_works_without_a_question(contained: Contained) -> None:
    code = "import os,sys; open('a','w').close(); os.rename('a', sys.argv[1]); os.remove(sys.argv[1])"
    made = contained.run(f"{PYTHON} -c {json.dumps(code)} /var/tmp/handrail-moved-$$")
    same = os.stat("/var/tmp").st_dev == os.stat(contained.work).st_dev
    assert made["exit_code"] == 0 or not same, made
    assert contained.person.asked == []


def test_the_timeout_stands_still_while_a_question_is_open(contained: Contained) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> Decision:
        asked.set()
        go_on.wait()
        return Decision.ONCE

    contained.person.decide_on = wait
    contained.run("true")
    answers: list[dict[str, Any]] = []
    running = threading.Thread(
        target=lambda: answers.append(contained.run(f"echo a > {contained.outside}/x; echo on", timeout=1))
    )
    running.start()
    asked.wait()
    running.join(2.5)  # longer than the timeout: nothing is to happen
    assert running.is_alive()
    go_on.set()
    running.join()
    assert answers[0]["output"] == "on\n"
    assert "error" not in answers[0]


def test_others_go_on_while_one_waits(contained: Contained) -> None:
    def wait(_: str) -> Decision:
        wait_until((contained.work / "other").exists)
        return Decision.ONCE

    contained.person.decide_on = wait
    made = contained.run(f"(echo a > {contained.outside}/x) & echo b > other; wait; cat {contained.outside}/x")
    assert made["output"].endswith("a\n")


def test_with_nobody_to_ask_it_is_refused_at_once(tmp_path: Path, outside: Path, home: Path) -> None:
    with Handrail(home=home) as app:
        app.runtime.approver = None
        app.register_task_env_overrides(TASK, cwd=str(tmp_path))
        made = Contained(app, tmp_path, outside, Person()).run(f"echo a > {outside}/x")
    assert "Permission denied" in made["output"]
    assert f"{outside}/x" in made["note"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("decision", [Decision.TASK, Decision.SESSION])
def test_a_longer_yes_is_for_the_folder_and_no_other(contained: Contained, decision: Decision) -> None:
    for name in ("d", "e"):
        (contained.outside / name).mkdir()
    contained.person.decide_on = lambda _: decision
    contained.out("touch d/a")
    contained.out("touch d/b; mkdir d/c; touch d/c/x")
    assert contained.person.asked == [f"{contained.outside}/d/a"]
    contained.person.decide_on = lambda _: Decision.DENY
    contained.out("touch e/a; mv d/a e/b; rm d/b")
    assert {path.name for path in contained.outside.rglob("*")} == {"a", "c", "d", "e", "x"}


def test_a_yes_for_always_is_written_down(tmp_path: Path, outside: Path, home: Path, person: Person) -> None:
    configure(home, "approvals: {mode: manual}\n")
    person.decide_on = lambda _: Decision.ALWAYS
    (outside / "d").mkdir()
    for name in ("a", "b"):
        with Handrail(home=home, approver=person, confirms=True) as app:
            app.register_task_env_overrides(TASK, cwd=str(tmp_path))
            Contained(app, tmp_path, outside, person).run(f"touch {outside}/d/{name}")
    assert f"held.write@project:{outside}/d" in (home / "config.yaml").read_text()
    assert person.asked == [f"{outside}/d/a"]


def test_the_same_path_is_asked_once_per_call(contained: Contained) -> None:
    contained.out("for i in 1 2 3; do echo $i > f; done; chmod 600 f; rm f")
    assert contained.person.asked == [f"{contained.outside}/f"]


def test_ordinary_permissions_cause_no_question(contained: Contained) -> None:
    command = "touch /etc/handrail-x; chmod 777 /etc/passwd; rm /etc/passwd"
    made = contained.run(command if os.geteuid() else f"setpriv --reuid=65534 --clear-groups sh -c '{command}'")
    assert "denied" in made["output"] or "permitted" in made["output"], made
    assert contained.person.asked == []


def test_what_another_user_may_not_write_is_not_written_after_a_yes(contained: Contained) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    contained.outside.chmod(0o777)
    contained.run(f"setpriv --reuid=65534 --clear-groups touch {contained.outside}/theirs")
    assert (contained.outside / "theirs").stat().st_uid == 65534


def test_handrails_own_files_are_never_asked_about(tmp_path: Path, outside: Path, person: Person, home: Path) -> None:
    configure(home, "approvals: {mode: manual}\n")
    with Handrail(home=home, approver=person) as app:
        app.register_task_env_overrides(TASK, cwd=str(tmp_path))
        one = Contained(app, tmp_path, outside, person)
        was = (home / "config.yaml").read_text()
        one.run(f'python3 -c \'open("{home}/config.yaml", "a").write("x")\'')
        one.run(f"mv {home}/config.yaml {outside}; ln {home}/config.yaml {outside}/l")
    assert (home / "config.yaml").read_text() == was
    assert not list(outside.iterdir())
    assert not [path for path in person.asked if path.startswith(str(home))]


@pytest.mark.parametrize(
    "move",
    [
        "mv {above} {above}2",
        "mv -T {above} {above}2",
        "mv {above}/deep {above}/other",
        'python3 -c \'import os; os.rename("{above}", "{above}2")\'',
        'mkdir {above}3; python3 -c \'import ctypes; ctypes.CDLL(None).renameat2(-100, b"{above}3", -100, b"{above}", 2)\'',
    ],
)
def test_folders_above_handrails_own_cannot_be_moved(tmp_path: Path, outside: Path, person: Person, move: str) -> None:
    """The watcher, which performs what was asked about, is not bound by the mounts that keep them in place."""
    above = outside / "above"
    home = above / "deep" / "home"
    home.mkdir(parents=True)
    configure(home, "approvals: {mode: manual}\n")
    with Handrail(home=home, approver=person) as app:
        app.register_task_env_overrides(TASK, cwd=str(tmp_path))
        Contained(app, tmp_path, outside, person).run(move.format(above=above))
        assert (home / "config.yaml").exists()


def test_the_work_tree_may_be_the_home_and_a_folder_in_a_repository(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    (repository / "a" / "b").mkdir(parents=True)
    (repository / ".git").mkdir()
    assert repository_of(str(repository / "a" / "b")) == [str(repository)]
    assert os.path.expanduser("~") in writable_folders(os.path.expanduser("~"), ())
    assert "/" not in writable_folders("/", ())


def test_a_worktree_is_believed_only_if_its_repository_names_it(tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir()
    (work / ".git").write_text("gitdir: /etc/worktrees/x\n")
    assert repository_of(str(work)) == [str(work)]
    kept = tmp_path / "main" / ".git" / "worktrees" / "x"
    kept.mkdir(parents=True)
    (work / ".git").write_text(f"gitdir: {kept}\n")
    assert repository_of(str(work)) == [str(work)]
    (kept / "gitdir").write_text(f"{work}/.git\n")
    assert repository_of(str(work)) == [str(work), str(tmp_path / "main" / ".git")]


def test_background_processes_and_scripts_are_asked_about_too(contained: Contained) -> None:
    contained.call("terminal", command=f"echo a > {contained.outside}/job", background=True)
    wait_until((contained.outside / "job").exists)
    made = contained.call("execute_code", code=f"open({str(contained.outside / 'script')!r}, 'w').write('x')")
    assert made["exit_code"] == 0, made
    made = contained.call("terminal", command=f"echo a > {contained.outside}/pty", pty=True)
    assert (contained.outside / "pty").read_text() == "a\n"
    contained.person.decide_on = lambda _: Decision.DENY
    made = contained.call("execute_code", code=f"open({str(contained.outside / 'no')!r}, 'w')")
    assert "PermissionError" in made["output"]
    assert f"{contained.outside}/no" in made["note"]


_SWAP = """
import os, sys, threading
place, target, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.mkdir(place)
folder, link = place + "/d", place + "/l"
os.mkdir(folder)
os.symlink(target, link)
over = False
def swap():
    while not over:
        os.rename(folder, place + "/t"); os.rename(link, folder)
        os.rename(folder, link); os.rename(place + "/t", folder)
threading.Thread(target=swap).start()
for number in range(count):
    for operation in (
        lambda: os.close(os.open(folder + "/victim", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)),
        lambda: os.mkdir(f"{folder}/{number}"),
        lambda: os.chmod(folder + "/victim", 0o777),
        lambda: os.unlink(folder + "/victim"),
    ):
        try:
            operation()
        except OSError:
            pass
over = True
"""


def test_a_swapped_path_does_not_lead_outside(contained: Contained) -> None:
    """A thread puts a link to a folder outside in place of one inside while calls are made, and nobody says yes."""
    victim = contained.outside / "victim"
    victim.write_text("kept")
    (contained.work / "swap.py").write_text(_SWAP)
    contained.person.decide_on = lambda _: Decision.DENY
    made = contained.run(f"{PYTHON} swap.py s {contained.outside} {RACES}", timeout=600)
    assert made["exit_code"] == 0, made
    assert victim.read_text() == "kept"
    assert [path.name for path in contained.outside.iterdir()] == ["victim"]


def test_a_path_that_was_allowed_leads_nowhere_else(contained: Contained) -> None:
    """The folder that was asked about is swapped for a link to another one, before the yes."""
    (contained.outside / "d").mkdir()
    (contained.outside / "secret").mkdir()

    def swap(_: str) -> Decision:
        os.rename(contained.outside / "d", contained.outside / "t")
        os.symlink("secret", contained.outside / "d")
        return Decision.ONCE

    contained.person.decide_on = swap
    made = contained.run(f"echo a > {contained.outside}/d/x")
    assert made["exit_code"] != 0
    assert list((contained.outside / "secret").iterdir()) == []


def test_sealed_has_no_network_and_asks_nothing(contained: Contained) -> None:
    contained.app.register_task_env_overrides("sealed", cwd=str(contained.work), profile="sealed")
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    command = f"echo a > {contained.outside}/x; echo b > in; cat in; {PYTHON} -c {json.dumps(code)}"
    made = contained.call("terminal", task="sealed", command=command)
    assert "Network is unreachable" in made["output"]
    assert "b\n" in made["output"]
    assert "sealed" in made["note"]
    assert contained.person.asked == []
    assert list(contained.outside.iterdir()) == []


def test_open_writes_everywhere_and_its_calls_say_so(contained: Contained) -> None:
    contained.app.register_task_env_overrides("open", cwd=str(contained.work), profile="open")
    contained.call("terminal", task="open", command=f"echo a > {contained.outside}/x")
    assert contained.person.asked == []
    assert (contained.outside / "x").exists()
    how = contained.app.environments.of("open").coverage.how
    assert how == ("full" if os.geteuid() == 0 else "file tools only")


def test_an_unknown_profile_is_refused(contained: Contained) -> None:
    with pytest.raises(Exception, match="choose contained, open or sealed"):
        contained.app.register_task_env_overrides("x", profile="loose")


def test_a_socket_that_acts_for_others_is_asked_about(
    contained: Contained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as served, tempfile.TemporaryDirectory(dir="/tmp") as place:
        path = f"{place}/agent.sock"
        served.bind(path)
        served.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        contained.app.register_task_env_overrides("agent", cwd=str(contained.work))
        code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{path}'); s.send(b'key?')"
        command = f"{sys.executable} -c {json.dumps(code)}"
        contained.person.decide_on = lambda _: Decision.DENY
        refused = contained.call("terminal", task="agent", command=command)
        assert refused["exit_code"] != 0
        assert "terminal.allow_sockets" in refused["note"], refused
        assert contained.person.asked == [path]
        contained.person.decide_on = lambda _: Decision.ONCE
        assert contained.call("terminal", task="agent", command=command)["exit_code"] == 0
        with served.accept()[0] as accepted:
            assert accepted.recv(9) == b"key?"


def test_what_you_run_yourself_needs_no_answer(contained: Contained) -> None:
    environment = contained.app.environments.of(TASK)
    refused = environment.execute(f"echo a > {contained.outside}/x")
    assert refused.exit_code != 0
    with held_calls(environment).of_person():
        assert environment.execute(f"echo a > {contained.outside}/x").exit_code == 0
    assert (contained.outside / "x").read_text() == "a\n"
    assert contained.person.asked == []


def test_caches_and_what_programs_note_of_their_own_use_are_written_without_a_question(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(contained.outside))
    (contained.outside / ".cache").mkdir()
    quiet = (".cache/tool/download", ".cargo/registry/index", ".python_history", ".viminfo.tmp")
    write = "import os, sys; p = os.path.expanduser('~/' + sys.argv[1]); os.makedirs(os.path.dirname(p), exist_ok=True)"
    for name in (*quiet, "other"):
        contained.run(f"{PYTHON} -c \"{write}; open(p, 'w').write('x')\" {name}")
    assert contained.person.asked == [str(contained.outside / "other")]
    assert [(contained.outside / name).read_text() for name in quiet] == ["x"] * len(quiet)


def test_shells_share_a_fork_server_and_not_their_work_trees(contained: Contained) -> None:
    """Each has mounts of its own, and nothing with which to change them or to enter those of the other."""
    contained.person.decide_on = lambda _: Decision.DENY
    trees = {task: contained.outside / task for task in ("one", "two")}
    for task, tree in trees.items():
        tree.mkdir()
        contained.app.register_task_env_overrides(task, cwd=str(tree))
        assert contained.call("terminal", task=task, command="echo mine > file")["exit_code"] == 0
    links: list[Any] = [contained.app.environments.of(task)._link for task in trees]
    assert links[0]._fork_server is links[1]._fork_server
    assert contained.person.asked == []
    other = trees["two"]
    pids = "$(ls /proc | grep -x '[0-9]*')"
    for attempt in (
        f"echo stolen > {other}/file",
        f"mount -o remount,bind,rw / ; mount --bind {trees['one']} {other}; umount -l /; echo stolen > {other}/file",
        f"for p in {pids}; do nsenter -t $p -m sh -c 'echo stolen > {other}/file'; done",
        f"for p in {pids}; do echo stolen > /proc/$p/root{other}/file; done",
        f"for p in {pids}; do echo stolen > /proc/$p/cwd/file; done; test $PWD = {trees['one']} && echo mine > file",
        f"unshare -m sh -c 'mount -o remount,bind,rw /; echo stolen > {other}/file'",
        f"unshare -Urm sh -c 'mount -o remount,bind,rw /; echo stolen > {other}/file'",
        "for s in STOP KILL TERM; do kill -$s 1; done",
    ):
        contained.call("terminal", task="one", command=f"({attempt}) 2>&1; true")
        assert (other / "file").read_text() == "mine\n", attempt
    assert contained.call("terminal", task="two", command="echo still > file")["exit_code"] == 0
    seen = contained.call("terminal", task="one", command=f"for p in {pids}; do readlink /proc/$p/cwd; done")["output"]
    assert str(trees["one"]) in seen
    assert str(other) not in seen, "the mounts of another shell can be reached"


def test_a_link_in_the_place_of_a_cache_makes_nothing_writable(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, secret = contained.outside / "home", contained.outside / "secret"
    for folder in (home / ".cache", secret):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    contained.person.decide_on = lambda _: Decision.DENY
    contained.run(f"mkdir ~/.cargo; ln -s {secret} ~/.cargo/registry; ln -s {secret} ~/.ccache; echo x > ~/.cache/x")
    assert (home / ".ccache").is_symlink()
    assert contained.person.asked == []
    contained.app.register_task_env_overrides("next", cwd=str(contained.work))
    contained.call("terminal", task="next", command=f"echo x > {secret}/a; echo x > ~/.ccache/b; ls {secret}")
    assert list(secret.iterdir()) == []
    assert (home / ".cache" / "x").exists()
