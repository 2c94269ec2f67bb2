"""A shell somewhere else: how it starts, and what is said when it cannot."""

from __future__ import annotations

import ast
import os
import sys
import threading
from pathlib import Path

import pytest

from handrail.environments import shell_host
from handrail.environments.errors import EnvironmentStartError
from handrail.environments.handles import RemoteFiles
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.transport import bundle
from handrail.environments.transport.link import Link
from handrail.environments.transport.session import Session, Transport
from handrail.errors import ToolFailed

from ...support import takes_less_than
from ..conftest import PATIENCE_SECONDS, FramedEnvironment, text

SOURCES = sorted(Path(shell_host.__file__).parent.glob("*.py"))


class There(LiveEnvironment):
    name = "there"

    def __init__(self, *prefix: str, python: str = sys.executable) -> None:
        super().__init__()
        self._prefix, self._python = prefix, python

    def connect(self, state: bytes | None) -> Link:
        transport = Transport(argv=lambda words: [*self._prefix, *words], where="the box", python=self._python)
        return Session(transport, env={"GIVEN": "there"}, cwd="/usr", state=state)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_far_side_needs_only_python_3_8_and_itself(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert all(alias.name in sys.stdlib_module_names for alias in node.names)


def test_all_of_the_far_side_is_sent() -> None:
    assert {path.stem for path in SOURCES} - {"__init__"} == {
        name for names in bundle.BY_ROLE.values() for name in names
    }


@pytest.mark.parametrize("sent", bundle.BY_ROLE.values(), ids=bundle.BY_ROLE)
def test_a_module_is_sent_after_all_that_it_imports(sent: tuple[str, ...]) -> None:
    for number, name in enumerate(sent):
        nodes = ast.walk(ast.parse((SOURCES[0].parent / f"{name}.py").read_text()))
        at_the_top = [
            node for node in nodes if isinstance(node, ast.ImportFrom) and node.col_offset == 0 and node.level
        ]
        needed = {word for node in at_the_top for word in ([node.module] if node.module else _names(node))}
        assert needed <= set(sent[:number]), name


def _names(node: ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


def test_a_shell_there_has_its_own_variables_and_those_given() -> None:
    with There("env", "-i", "PATH=/usr/bin:/bin", "OWN=1") as there:
        assert there.cwd == "/usr"
        result = there.execute("echo $GIVEN $OWN; pwd", timeout=PATIENCE_SECONDS)
        assert text(result) == "there 1\n/usr\n"


@pytest.mark.parametrize(
    ("prefix", "python", "said"),
    [
        ((), "python9", r"python9 cannot be run here.*install it"),
        (("env",), "python9", "python3 was not found in the box; install Python 3.8"),
        (
            ("sh", "-c", "echo no route to the box >&2; exit 255", "sh"),
            "python3",
            "ended with code 255: no route to the box",
        ),
        (("sh", "-c", "exit 0", "sh"), "python3", "ended with code 0: it printed nothing"),
        (("env", "-i", "PATH=/proc/nowhere", sys.executable, "-c", "print('noise')"), "x", "ended with code 0"),
    ],
)
def test_what_keeps_a_shell_from_starting_is_said(prefix: tuple[str, ...], python: str, said: str) -> None:
    with takes_less_than(30), pytest.raises(EnvironmentStartError, match=said):
        There(*prefix, python=python).start()


def test_a_place_without_bash_says_so(tmp_path: Path) -> None:
    hide = ["unshare", "--mount", "sh", "-c"]
    script = 'for b in /bin/bash /usr/bin/bash; do [ -e $b ] && mount --bind /dev/null $b; done; exec "$@"'
    with pytest.raises(EnvironmentStartError, match=r"bash was not found; install bash 4.4 or newer there"):
        There(*hide, script, "sh").start()


def test_an_old_bash_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "bash"
    fake.write_text("#!/bin/sh\nsed 's/\\$BASH_VERSION/4.3.1(1)-release/' | exec /bin/bash --norc --noprofile\n")
    fake.chmod(0o755)
    with pytest.raises(EnvironmentStartError, match=r"4.3.1\(1\)-release; 4.4 or newer is needed"):
        There("env", f"PATH={tmp_path}:/usr/bin:/bin").start()


def test_a_bash_that_ends_at_once_is_an_error_and_no_loop(tmp_path: Path) -> None:
    fake = tmp_path / "bash"
    fake.write_text("#!/bin/sh\nexit 42\n")
    fake.chmod(0o755)
    with pytest.raises(EnvironmentStartError, match="bash ended immediately, with code 42"):
        There("env", f"PATH={tmp_path}:/usr/bin:/bin").start()


@pytest.mark.parametrize(("ours", "is_compiled"), [(bundle.COMPILED_FOR, True), (b"00000000", False)])
def test_a_python_of_another_kind_is_sent_the_text(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, ours: bytes, is_compiled: bool
) -> None:
    sent: list[bytes] = []
    original = bundle.bundle
    monkeypatch.setattr(bundle, "COMPILED_FOR", ours)
    monkeypatch.setattr(bundle, "bundle", lambda **given: sent.append(original(**given)) or sent[-1])
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell:
        assert text(shell.execute("echo hi", timeout=PATIENCE_SECONDS)) == "hi\n"
    assert (b"def run_frame_relay" in sent[0]) is not is_compiled


def test_asking_and_running_go_on_at_once(tmp_path: Path, work: Path) -> None:
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell:
        os.mkfifo(work / "gate")
        results = []
        thread = threading.Thread(
            target=lambda: results.append(shell.execute("echo one; read x <gate; seq 100000", timeout=PATIENCE_SECONDS))
        )
        thread.start()
        process = shell.background("echo beside; sleep 1000")
        assert process.read(timeout=PATIENCE_SECONDS).data == b"beside\n"
        answers: list[int] = []

        def ask() -> None:
            for _ in range(50):
                answers.append(len(shell.files.entries("/usr")))

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        (work / "gate").write_bytes(b"")
        for one in (*askers, thread):
            one.join(PATIENCE_SECONDS)
        assert len(answers) == 200
        assert results[0].output.total_bytes == len("one\n") + sum(len(str(n)) + 1 for n in range(1, 100_001))


def test_files_there_are_read_written_listed_and_removed(tmp_path: Path, work: Path) -> None:
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell:
        files = shell.files
        content = os.urandom(3_000_000)
        stat = files.write("new/blob", content, mode=0o750)
        assert (stat.size, stat.is_dir, stat.mode & 0o777) == (3_000_000, False, 0o750)
        assert (work / "new" / "blob").read_bytes() == content
        assert files.read("new/blob", max_bytes=10_000_000) == content
        assert files.read("new/blob", max_bytes=10, offset=2_999_995) == content[-5:]
        assert [entry.name for entry in files.entries("new")] == ["blob"]
        assert files.resolve("new/../new/blob") == str(work / "new" / "blob")
        assert files.stat("nothing") is None
        assert files.host_path("new/blob") is None
        shell.execute("cd new", timeout=PATIENCE_SECONDS)
        assert shell.files.resolve("blob") == str(work / "new" / "blob")
        files.write("/".join([str(work), "new", "blob"]), b"short")
        assert (work / "new" / "blob").stat().st_mode & 0o777 == 0o750
        files.remove(str(work / "new" / "blob"))
        files.remove(str(work / "new"))
        assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda files: files.read("nothing", max_bytes=1), "cannot read nothing: there is no such file"),
        (lambda files: files.read("/dev/null", max_bytes=1), "/dev/null is not a regular file"),
        (lambda files: files.read("/usr", max_bytes=1), "cannot read /usr: it is a folder"),
        (lambda files: files.entries("nothing"), "cannot list nothing: there is no such file"),
        (lambda files: files.write("/proc/nothing/x", b""), "cannot write /proc/nothing/x"),
        (lambda files: files.write("x", b"x" * 11_000_000), "the limit is 10.0 MiB"),
        (lambda files: files.remove("link"), "it is a link, and links are left alone|its links lead in a circle"),
    ],
)
def test_what_is_wrong_with_a_file_there_is_said(tmp_path: Path, work: Path, call, said: str) -> None:  # type: ignore[no-untyped-def]
    (work / "link").symlink_to("/usr")
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell, pytest.raises(ToolFailed, match=said):
        call(shell.files)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, work: Path) -> None:
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell:
        files = shell.files
        assert isinstance(files, RemoteFiles)

        def pieces():  # type: ignore[no-untyped-def]
            yield b"some"
            raise KeyError("no more")

        with pytest.raises(KeyError):
            files.write_pieces("file", pieces())
        assert list(work.iterdir()) == []


def test_files_are_copied_both_ways(shell: LiveEnvironment, tmp_path: Path, work: Path) -> None:
    content = os.urandom(2_500_000)
    (tmp_path / "here").write_bytes(content)
    (tmp_path / "here").chmod(0o711)
    shell.upload(str(tmp_path / "here"), "there")
    assert (work / "there").read_bytes() == content
    assert (work / "there").stat().st_mode & 0o777 == 0o711
    shell.download("there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content
    with pytest.raises(ToolFailed, match="there is no such file"):
        shell.download("nothing", str(tmp_path / "none"))


def test_a_place_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from handrail.environments.transport import channel, session

    monkeypatch.setattr(session, "START_SECONDS", 0.5)
    monkeypatch.setattr(channel, "END_SECONDS", 0.2)
    with takes_less_than(30), pytest.raises(EnvironmentStartError, match="did not answer in time"):
        There("sh", "-c", "exec sleep 1000", "sh").start()
