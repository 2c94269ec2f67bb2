"""What `rm -rf` is about to delete is moved away whole, if `rm` would have deleted all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.shell_host import call_effects, landlock
from handrail.environments.shell_host import journal_log as log

from .watched_commands import NOBODY, Recorder, snapshot

FILES = 120


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    work = tmp_path / "work"
    for number in range(FILES):
        (work / "big" / str(number % 3) / "deep").mkdir(parents=True, exist_ok=True)
        (work / "big" / str(number % 3) / f"f{number}").write_text(f"{number}\n")
    (work / "big" / "0" / "link").symlink_to("f0")
    (work / "big" / "0" / "hard").hardlink_to(work / "big" / "1" / "f1")
    os.chmod(work / "big" / "2", 0o751)
    os.utime(work / "big" / "2", ns=(1, 2))
    made = Recorder(tmp_path / "journal", work)
    yield made
    made.writer.close()


def is_moved(recorder: Recorder, call: int) -> bool:
    """Whether there is one entry for all of it."""
    kinds = [entry.kind for entry in recorder.entries(call)]
    assert (log.RENAME in kinds) != (kinds.count(log.STASHED) >= FILES), kinds
    return log.RENAME in kinds


@pytest.mark.parametrize(
    "command", ["rm -rf big", "rm -fr -- $PWD/big/ missing", "/bin/rm --recursive --force big", "sh -c 'rm -Rf big'"]
)
def test_a_folder_is_deleted_with_one_entry_and_comes_back_as_it_was(recorder: Recorder, command: str) -> None:
    before = snapshot(recorder.work)
    call = recorder.run(f"echo more >> big/1/f1; {command}; mkdir big; echo new > big/f")
    assert is_moved(recorder, call)
    assert os.listdir(recorder.work / "big") == ["f"]
    after = snapshot(recorder.work)
    assert recorder.undo(call).failed == []
    assert snapshot(recorder.work) == before
    assert recorder.undo(recorder.number).failed == []
    assert snapshot(recorder.work) == after


def test_every_lost_file_is_told_by_name_also_after_the_undo(recorder: Recorder) -> None:
    changed = recorder.run("echo other > big/1/f1")
    call = recorder.run("rm -rf big")
    paths = sorted(str(path) for path in [recorder.work / "big", *_below(recorder.work, recorder)])
    for _ in range(2):
        told = call_effects.describe(recorder.folder, call, diff=True)
        lost = {one["path"]: one for one in told["lost"]}
        assert len(lost) == told["counts"]["lost"] == FILES + 2 + 3 + 3 + 1
        assert sorted(lost) == paths
        assert (lost[f"{recorder.work}/big/0/f3"]["size"], lost[f"{recorder.work}/big/2"]["kind"]) == (2, "folder")
        assert "-other" in lost[f"{recorder.work}/big/1/f1"].get("diff", "-other")
        before = call_effects.describe(recorder.folder, changed, diff=True)["changed"]
        assert ["+other" in one["diff"] for one in before if one["path"].endswith("f1")] == [True]
        recorder.undo(call)


def _below(work: Path, recorder: Recorder) -> list[Path]:
    kept = Path(next(entry.second for entry in recorder.entries(2) if entry.kind == log.RENAME))
    return [work / "big" / path.relative_to(kept) for path in kept.rglob("*")]


def test_a_part_of_it_comes_back_in_folders_as_they_were(recorder: Recorder) -> None:
    mode = (recorder.work / "big" / "2").stat().st_mode
    call = recorder.run("rm -rf big")
    answer = call_effects.undo(recorder.folder, call, 7, only=str(recorder.work / "big/2/f5"))
    assert answer["status"] == "undone"
    assert (recorder.work / "big/2/f5").read_text() == "5\n"
    assert os.listdir(recorder.work / "big") == ["2"]
    assert (recorder.work / "big" / "2").stat().st_mode == mode


LEFT_TO_RM = {
    "it tells what it does": "rm -rfv big",
    "without force": "rm -r big",
    "options come last": "rm big -rf",
    "a library may change it": "LD_DEBUG_OUTPUT=x rm -rf big",
    "a program of another place": "mkdir bin; cp /bin/rm bin; bin/rm -rf big",
    "somebody works there": "cd big/1; rm -rf ../../big",
    "it is small": "mv big/0 big/1 .; rm -rf big; rm -r 0 1",
}


@pytest.mark.parametrize("command", LEFT_TO_RM.values(), ids=LEFT_TO_RM)
def test_what_is_not_plain_is_left_to_rm(recorder: Recorder, command: str) -> None:
    before = snapshot(recorder.work)
    call = recorder.run(command)
    assert not (recorder.work / "big").exists()
    assert recorder.entries(call)[-1].kind in (log.FOLDER, log.STASHED)
    assert sum(entry.kind == log.STASHED for entry in recorder.entries(call)) >= FILES // 3
    recorder.undo(call)
    assert snapshot(recorder.work) == before


def test_a_process_with_fewer_rights_than_the_shell_deletes_nothing_more_than_it_may(recorder: Recorder) -> None:
    if landlock.abi() < landlock.OLDEST_ABI:
        pytest.skip("the kernel has no Landlock")
    held = "restrict(writable=['/dev'], readable=[], hidden=[], network=True)"
    found = f"sys.path.append('{Path(landlock.__file__).parents[1]}'); from shell_host.landlock import restrict"
    code = f"import os, sys; {found}; {held}; os.execvp('rm', ['rm', '-rf', 'big'])"
    call = recorder.run(f'python3 -ISB -c "{code}" 2>&1 | grep -c denied >denied; rm -rf big/0; true')
    assert int((recorder.work / "denied").read_text()) > 0
    assert (recorder.work / "big" / "1" / "f1").exists()
    assert log.RENAME not in [entry.kind for entry in recorder.entries(call)]


def test_what_a_user_may_not_delete_stays(recorder: Recorder, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        os.chmod(recorder.work / "big" / "2", 0o555)
        recorder.run("rm -rf big; true")
    else:
        subprocess.run(["chown", "-R", str(NOBODY), recorder.work], check=True)
        os.chown(recorder.work / "big" / "2", 0, 0)
        for folder in (recorder.work, *tmp_path.parents):
            if folder.stat().st_uid == 0 and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o111)
        recorder.run("rm -rf big; true", user=NOBODY)
    assert len(list((recorder.work / "big" / "2").iterdir())) == FILES // 3 + 1
    assert not (recorder.work / "big" / "1").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file immutable or mount something")
@pytest.mark.parametrize("how", ["immutable", "mount"])
def test_what_root_cannot_delete_stays(recorder: Recorder, how: str) -> None:
    place = recorder.work / "big" / "1"
    if how == "mount":
        begin, end = ["mount", "--bind", recorder.work / "big" / "0", place], ["umount", place]
    else:
        begin, end = ["chattr", "+i", place / "f1"], ["chattr", "-i", place / "f1"]
    if shutil.which(begin[0]) is None or subprocess.run(begin, capture_output=True, check=False).returncode:
        pytest.skip(f"{begin[0]} is not possible here")
    try:
        recorder.run("rm -rf big; true")
        assert place.exists()
        assert how == "mount" or (place / "f1").exists()
    finally:
        subprocess.run(end, check=True)
