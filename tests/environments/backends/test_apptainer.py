"""What is particular to Apptainer: images of several kinds, overlays, limits, an ordinary user, and what root is not given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import handrail
from handrail.environments.backends.apptainer import ApptainerEnvironment, ApptainerSettings
from handrail.environments.base import ShellState
from handrail.environments.errors import EnvironmentLost, EnvironmentStartError

from ...services.apptainer import Apptainer
from ..conftest import PATIENCE_SECONDS, text
from ..container_kinds import Kind, name_of
from ..held_elsewhere import check_asked_mount, check_pause
from ..image_registry import serve_image
from ..undo_elsewhere import check_undo

# Run by an ordinary user.
_AS_USER = """
import os, sys
from handrail.environments.backends.apptainer import ApptainerEnvironment
from handrail.environments.errors import EnvironmentStartError
limited = ApptainerEnvironment.from_settings({"image": sys.argv[1], "pids": 64}, task_id="t")
try:
    limited.start()
    print("limits held")
except EnvironmentStartError as error:
    print(error)
limited.close()
with ApptainerEnvironment.from_settings({"image": sys.argv[1], "network": "none"}, task_id="t") as shell:
    print(shell.isolated, shell.reaches_host)
    print(shell.execute("id -u; echo x >/new && cat /new", timeout=60).output.head.decode())
    try:
        shell.execute("kill -9 -1; sleep 100", timeout=60)
    except OSError:
        print(shell.execute("cat /new", timeout=60).output.head.decode())
folders = os.walk(os.environ["HOME"] + "/.apptainer/instances")
print(ApptainerEnvironment.prune(dry_run=True), [name for _, _, names in folders for name in names])
"""


@pytest.fixture(scope="module")
def service(apptainer_service: Apptainer) -> Kind:
    return Kind("apptainer", apptainer_service.image, apptainer_service.env, apptainer_service)


@pytest.fixture
def kind(service: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    yield service
    assert service.left() == []


def test_an_overlay_keeps_what_is_written_and_the_image_is_not_changed(kind: Kind, tmp_path: Path) -> None:
    for expected in ("", "kept\nkept\n"):
        with kind.make(overlay=str(tmp_path / "kept")) as shell:
            assert text(shell.execute("cat /file ~/file 2>/dev/null", timeout=PATIENCE_SECONDS)) == expected
            shell.execute("echo kept >/file; echo kept >~/file", timeout=PATIENCE_SECONDS)
    assert not Path(kind.image, "file").exists()


def test_an_instance_with_an_overlay_that_is_ended_comes_back_with_its_files(kind: Kind, tmp_path: Path) -> None:
    with kind.make(overlay=str(tmp_path / "kept")) as shell:
        shell.execute("echo kept >/file", timeout=PATIENCE_SECONDS)
        with pytest.raises(EnvironmentLost):
            shell.execute(
                "echo x; sleep 1000", on_output=lambda _: kind.remove(name_of(shell)), timeout=PATIENCE_SECONDS
            )
        result = shell.execute("cat /file", timeout=PATIENCE_SECONDS)
        assert text(result) == "kept\n"
        assert result.restarted is not None
        assert result.restarted.state is not ShellState.EMPTY


def test_without_a_directory_the_shell_begins_in_a_home_of_its_own(kind: Kind) -> None:
    with kind.make() as shell:
        assert shell.cwd == "/root"
        assert text(shell.execute("ls -A", timeout=PATIENCE_SECONDS)) == ".local\n"  # with the journal of its effects


def test_root_reaches_the_machine_and_that_is_not_hidden(kind: Kind) -> None:
    shell = kind.make(network="none")
    assert not shell.isolated
    assert shell.reaches_host


def test_files_of_the_machine_that_are_there_by_default_cannot_be_changed_by_root(kind: Kind) -> None:
    with kind.make() as shell:
        mounts = text(shell.execute("cat /proc/self/mountinfo", timeout=PATIENCE_SECONDS))
        assert " /etc/hosts " not in mounts
        assert shell.execute("echo x >/proc/sys/kernel/core_pattern", timeout=PATIENCE_SECONDS).exit_code != 0


def test_an_ordinary_user_is_walled_in_and_is_told_when_limits_cannot_be_held(kind: Kind) -> None:
    with tempfile.TemporaryDirectory(
        dir="/tmp"
    ) as home:  # the test's own folder is closed to others, as is this source
        shutil.copytree(Path(handrail.__file__).parent, Path(home, "handrail"))
        os.chown(home, 1000, 1000)
        Path(kind.image).parent.chmod(0o755)
        user = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]
        env = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "HANDRAIL_HOME": f"{home}/state",
        }
        words = [*user, "/usr/bin/python3", "-c", _AS_USER, kind.image]
        done = subprocess.run(words, env=env, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, flags, who, new, again, left = [line for line in done.stdout.splitlines() if line]
    assert first == "limits held" or "limits take root, or cgroups v2" in first
    assert flags == "True False"
    assert (who, new, again) == ("1000", "x", "x")
    assert left == "[] []"


@pytest.mark.parametrize(
    ("image", "said"),
    [("/proc/nowhere/image.sif", "no such file"), ("docker://127.0.0.1:1/nothing", "connection refused")],
    ids=["a file", "a registry"],
)
def test_an_image_that_is_nowhere_is_said(kind: Kind, image: str, said: str) -> None:
    shell = kind.make(image=image)
    with pytest.raises(EnvironmentStartError, match=rf"the image {image} could not be started: .*{said}"):
        shell.start()
    shell.close()


def test_an_image_of_a_registry_is_loaded_and_the_progress_is_told(kind: Kind) -> None:
    told: list[str] = []
    with serve_image() as place:
        settings = ApptainerSettings(image=f"docker://{place}/served:1", start_arguments=("--no-https",))
        with ApptainerEnvironment(settings, on_progress=told.append) as shell:
            assert text(shell.execute("echo here", timeout=PATIENCE_SECONDS)) == "here\n"
    assert any("Creating SIF file" in line for line in told)


def test_a_program_can_be_chosen(kind: Kind) -> None:
    with kind.make(program="singularity") as shell:
        assert text(shell.execute("echo here", timeout=PATIENCE_SECONDS)) == "here\n"
    assert json.loads(kind.service.run("instance", "list", "--json", "handrail-nothing*"))["instances"] == []


def test_what_a_command_changes_in_an_instance_can_be_undone(kind: Kind) -> None:
    with kind.make("undo") as shell:
        check_undo(shell)


def test_writes_to_a_mount_of_an_instance_that_asks_wait_for_an_answer(kind: Kind, tmp_path: Path) -> None:
    check_asked_mount(lambda mounts: kind.make("asked", mounts=mounts), tmp_path)


def test_an_instance_whose_mount_asks_does_not_start_where_nothing_can_wait(kind: Kind, tmp_path: Path) -> None:
    shell = kind.make("asked", mounts=[f"{tmp_path}:/data:ask"])
    shell.effects = None
    with pytest.raises(EnvironmentStartError, match="nothing can wait for an answer"):
        shell.start()
    shell.close()


def test_a_command_that_deletes_much_in_an_instance_waits_for_an_answer(kind: Kind) -> None:
    shell = kind.make("pause")
    try:
        check_pause(shell)
    finally:
        shell.close()
