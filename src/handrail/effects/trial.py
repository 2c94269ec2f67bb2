"""A command that was allowed to be tried: it has run, and what it did is shown, to be kept or taken back. It can also be tried
where nobody sees what it changes: with an overlay over the work tree, for this call alone. The kernel puts what the command
changes into a folder of ours: new and changed files as they are, and for what it deletes a mark. To keep that is to bring it to
the work tree, written to the journal like every other change; not to keep it is to remove it."""

from __future__ import annotations

import difflib
import errno
import os
import shlex
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from ..base.workers import run_async
from ..environments.shell_host.bash import OF_BASH
from ..environments.shell_host.journal_log import lstat
from ..errors import CallNotFound, Denied, Edited
from ..protocols import PICKED, Action, ActionKind, Preview

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..environments.local_environment import LocalEnvironment
    from ..environments.shell_host.journal import CallJournal
    from ..types import JsonDict, ToolContext

TRIED, FOLDER = "effect.tried", "tried"
_SIGNS = {"lost": "-", "changed": "~", "created": "+", "moved": ">"}
_MAX_LINES, _MAX_DIFF_BYTES = 40, 256 << 10
_WHY = "it was tried and has run; this is what it did: a yes keeps it, a no takes it back"
_OPAQUE, _OWN = "user.overlay.opaque", "user.overlay."
# Without the variables of the loop that runs commands.
_STATE = '(unset -v "${!__hr@}"; declare -p; umask -p; shopt -p; set +o; declare -f; declare -Fx; alias -p)'
_STATE_SECONDS = 30.0


def settle(context: ToolContext, number: int, end_left: Callable[[], object]) -> list[str]:
    """What the model has to be told if the call, which was tried, is not kept. `end_left` ends what the command left running."""
    effects = context.effects
    if effects is None or effects.calls.tries_isolated or not number:
        return []
    effects.end()
    try:
        told = effects.calls.describe(number, diff=True)
    except CallNotFound:  # it has changed nothing
        return []
    diffs = [one.get("diff") or _diff("", one["path"]) for kind in _SIGNS for one in told.get(kind, ())[:_MAX_LINES]]
    why, kept = _reviewed(context, told, diffs, number)
    if kept:
        return [why, *(effects.take_back(number, path) for path in _listed(told).values() if path not in kept)]
    if why:
        end_left()
        return [why, effects.take_back(number)]
    return []


def isolated(context: ToolContext, environment: Environment) -> IsolatedTrial | None:
    """Where a command that is to be tried runs, if nobody may see what it does until it is kept."""
    if context.effects is None or not context.effects.calls.tries_isolated:
        return None
    folder = Path(context.effects.calls.recorder.journal_folder).parent / FOLDER / str(context.effects.number)
    return IsolatedTrial(cast("LocalEnvironment", environment), folder)


def settle_isolated(context: ToolContext, trial: IsolatedTrial) -> list[str]:
    """As `settle`. What is kept is done in the work tree now."""
    effects, changes = context.effects, trial.changes()
    assert effects is not None
    if not changes:
        return []
    told: JsonDict = {kind: [{"path": one.path} for one in changes if one.kind == kind] for kind in _SIGNS}
    told["counts"] = {kind: len(found) for kind, found in told.items()}
    diffs = [_diff("" if one.kind == "created" else one.path, one.source, one.path) for one in changes[:_MAX_LINES]]
    why, kept = _reviewed(context, told, diffs)
    if why and not kept:
        return [why, "nothing has changed"]
    conflicts = trial.conflicts(changes)
    if conflicts:
        named = ", ".join(conflicts[:_MAX_LINES])
        return [f"It was tried, and is not kept: meanwhile somebody else has changed {named}", "nothing has changed"]
    effects.has_run(trial.environment, changed=True)
    if kept:  # without the removal of folders in which something stays
        left = {folder for change in changes if change.path not in kept for folder in _above(change.path, kept)}
        changes = [each for each in changes if each.path in kept and not (each.kind == "lost" and each.path in left)]
    try:
        with effects.calls.recorder.files.writing(effects.number) as record:
            for change in changes:
                _keep(change, record)
    except OSError as error:
        return [f"It was tried, and cannot be kept: {error}", effects.take_back(effects.number)]
    return [why] if why else []


def _reviewed(context: ToolContext, told: JsonDict, diffs: list[str], number: int = 0) -> tuple[str, set[str]]:
    """Show what a command did. What the model is told if not all of it is kept, and the paths that are kept then."""
    details: JsonDict = {"why": _WHY, "rule": TRIED, "path": "", "project": "", "once": True}
    details["arguments"], listed = {"call": number}, _listed(told)
    if len(listed) <= _MAX_LINES:
        details["argument"] = PICKED
    shown = Preview("\n".join(filter(None, diffs)))
    text = "\n".join(_lines(told)) or "nothing is different"
    action = Action(ActionKind.HELD, text, details=details, preview=lambda: shown)
    try:
        if context.gate is None:
            raise Denied("nobody can be asked", decided_by="policy")
        waiting = context.gate.review([action], context)
        if waiting is not None:
            run_async(waiting, cancel=context.cancel)
    except Edited as answer:
        kept = {listed[line] for line in answer.text.splitlines() if line in listed}
        created = [one["path"] for one in told.get("created", ())]
        kept |= {folder for path in kept for folder in _above(path, created)}
        # With a folder, everything below it is taken back.
        dropped = [path for path in listed.values() if not kept.issuperset({path, *_above(path, listed.values())})]
        kept -= set(dropped)
        if not dropped:
            return "", set()
        return f"It was tried, and not all of it is kept. Not kept: {', '.join(dropped)}", kept
    except Denied as error:
        return f"It was tried, and is not kept: {str(error).removeprefix('Not run: ')}", set()
    return "", set()


def _above(path: str, paths: Iterable[str]) -> set[str]:
    return {str(folder) for folder in Path(path).parents}.intersection(paths)


def _listed(told: JsonDict) -> dict[str, str]:
    """The paths, by the lines that show them."""
    listed = {}
    for kind, sign in _SIGNS.items():
        for one in told.get(kind, ()):
            files = one.get("files", 1)
            more = f" -> {one['to']}" if "to" in one else f"/ ({files:,} files)" if files > 1 else ""
            listed[f"{sign} {one['path']}{more}"] = one["path"]
    return listed


def _lines(told: JsonDict) -> Iterator[str]:
    found = list(_listed(told))
    yield from found[:_MAX_LINES]
    if len(found) > _MAX_LINES:
        yield f"and {sum(told['counts'].values()) - _MAX_LINES:,} more"
    for host in told.get("hosts", ()):
        yield f"! contacted {host}, which cannot be taken back"
    for one in told.get("unsaved", ()):
        yield f"! not saved: {one['path'] or 'something'}: {one['reason']}"


def _diff(before: str, after: str, name: str = "") -> str:
    """Of two text files, either of which may be missing (an empty path). Empty for what is no text, or too long."""
    try:
        old, new = (_text_lines(path) if path else [] for path in (before, after))
    except (OSError, ValueError):
        return ""
    was, now = (name or path if path else "/dev/null" for path in (before, after))
    return "\n".join(difflib.unified_diff(old, new, was, now, lineterm=""))


def _text_lines(path: str) -> list[str]:
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_DIFF_BYTES:
        raise ValueError(path)
    return Path(path).read_text().splitlines()


class Change(NamedTuple):
    """`kind` is as in `call_effects.describe`; `source` is what the path gets, or nothing if it is lost."""

    kind: str
    path: str
    source: str = ""


class IsolatedTrial:
    """Of one call; `folder` is its own. A context manager, which removes everything that is not kept."""

    def __init__(self, environment: LocalEnvironment, folder: Path) -> None:
        self._folder, self.environment, self.shell = folder, environment, environment

    def __enter__(self) -> IsolatedTrial:
        self._folder.mkdir(mode=0o700, parents=True)
        self._begun = os.stat(self._folder).st_ctime_ns
        self._trees = self.environment.work_trees
        self.shell = self.environment.isolated_in(str(self._folder))
        mark = f".{uuid.uuid4().hex}"
        (self._folder / "0" / "changes" / mark).touch()
        try:
            if self.shell.execute(f"rm {shlex.quote(self._trees[0])}/{mark}").exit_code:
                raise Denied("Not run: it cannot be tried isolated here, without mount namespaces", decided_by="policy")
            state: list[bytes] = []
            self.environment.execute(_STATE, timeout=_STATE_SECONDS, on_output=state.append)
        except BaseException:
            self.__exit__()
            raise
        self.shell.execute(os.fsdecode(OF_BASH.sub(b"", b"".join(state))), timeout=_STATE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.shell.close()
        remove(self._folder)

    def changes(self) -> list[Change]:
        """What the command has changed, in an order in which it can be done."""
        folders = (str(self._folder / str(number) / "changes") for number in range(len(self._trees)))
        return [change for found in map(_changes, folders, self._trees) for change in found]

    def conflicts(self, changes: list[Change]) -> list[str]:
        """The paths that somebody else has changed meanwhile, also since these changes were listed."""
        found = {change.path for change in set(self.changes()).symmetric_difference(changes)}
        for change in changes:
            now = lstat(change.path)
            if now is not None and now.st_ctime_ns > self._begun and not stat.S_ISDIR(now.st_mode):
                found.add(change.path)
        return sorted(found)


def remove(folder: Path) -> None:
    """Remove what a trial has left, also one that was killed."""
    for place in folder.glob("*/kernel/work"):
        place.chmod(0o700)  # the kernel makes it without any right
    shutil.rmtree(folder, ignore_errors=True)


def _changes(folder: str, tree: str, *, is_new: bool = False) -> Iterator[Change]:
    """`is_new`: nothing is left of what was in the tree."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = os.path.join(tree, entry.name)
        new, old = entry.stat(follow_symlinks=False), None if is_new else lstat(path)
        if stat.S_ISCHR(new.st_mode) and new.st_rdev == 0:
            yield from () if is_new else _lost(path)
            continue
        is_folder = stat.S_ISDIR(new.st_mode)
        is_opaque = is_folder and old is not None and _OPAQUE in os.listxattr(entry.path)
        if old is not None and (is_opaque or stat.S_ISDIR(old.st_mode) != is_folder):
            yield from _lost(path)
            old = None
        if old is None:
            yield Change("created", path, entry.path)
        elif not _is_same(new, old) or _extended(entry.path) != _extended(path):
            yield Change("changed", path, entry.path)
        if is_folder:
            yield from _changes(entry.path, path, is_new=old is None)


def _lost(path: str) -> Iterator[Change]:
    found = lstat(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        for name in sorted(os.listdir(path)):
            yield from _lost(os.path.join(path, name))
    if found is not None:
        yield Change("lost", path)


def _keep(change: Change, record: CallJournal) -> None:
    """Do in the work tree what the command did, written down before."""
    path, found = change.path, lstat(change.path)
    if not change.source:
        if found is not None:
            record.remove(path, found)
            (os.rmdir if stat.S_ISDIR(found.st_mode) else os.unlink)(path)
        return
    new = os.lstat(change.source)
    if stat.S_ISDIR(new.st_mode):
        if found is None:
            record.create(path, is_folder=True)
            os.mkdir(path)
        else:
            record.attributes(path, found)
        os.chown(path, new.st_uid, new.st_gid)
        shutil.copystat(change.source, path)
        return
    record.replace(path)
    for name in os.listxattr(change.source, follow_symlinks=False):
        if name.startswith(_OWN):
            os.removexattr(change.source, name, follow_symlinks=False)
    try:
        os.rename(change.source, path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = f"{path}.{uuid.uuid4().hex}"
        shutil.copy2(change.source, beside, follow_symlinks=False)
        os.chown(beside, new.st_uid, new.st_gid, follow_symlinks=False)
        os.rename(beside, path)


def _is_same(new: os.stat_result, old: os.stat_result) -> bool:
    """Whether it was only opened to be changed. The time of a folder comes by what is in it."""
    if (new.st_mode, new.st_uid, new.st_gid) != (old.st_mode, old.st_uid, old.st_gid):
        return False
    return stat.S_ISDIR(new.st_mode) or (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns)


def _extended(path: str) -> dict[str, bytes]:
    names = os.listxattr(path, follow_symlinks=False)
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names if not name.startswith(_OWN)}
