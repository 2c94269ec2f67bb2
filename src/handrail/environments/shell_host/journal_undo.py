"""Take a call back: its entries, last first. An undo is a call of its own and written to the journal like any other, so that it
can be taken back in turn (a redo). After a crash, what was not finished is rolled back without entries; every step can be
repeated, and tolerates that its change never happened. Nothing is overwritten: what an undo moves out of the way is kept in the
stash, or beside its old place by `force`."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import time
from typing import Any, Callable, Iterable, Iterator, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import journal_log as log
from .journal import CallJournal, NotRecorded, Stash, copy, copy_content, extended_attributes
from .journal_expiry import locked, unnamed
from .journal_log import OPEN_SUFFIX, SUFFIX, Entry, Journal, Meta, is_any_alive, lstat, meta_of, names_in, writer_name

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_BEFORE_SUFFIX = ".before-undo-"
_END_SECONDS, _POLL_SECONDS = 3.0, 0.01
JOB_MARK = ".job"


class Undone(NamedTuple):
    """What was put back, and what could not be, with the reason."""

    restored: int
    failed: list[tuple[str, str]]


class Undo:
    """Takes entries back. Without a `record` nothing is written to the journal."""

    def __init__(self, journal: Journal, stash: Stash, record: CallJournal | None = None) -> None:
        self._journal, self._stash, self._record = journal, stash, record or NotRecorded()
        self._remade = journal.remade()
        self._steps: dict[bytes, Callable[[Entry, os.stat_result | None], None]] = {
            log.ABSENT: self._absent,
            log.STASHED: self._stashed,
            log.SYMLINK: self._symlink,
            log.CONTENT: self._content,
            log.GROWN: self._grown,
            log.ATTRIBUTES: self._attributes,
            log.FOLDER: self._folder,
            log.RENAME: self._rename,
            log.EXCHANGE: self._exchange,
            log.TIMES: self._times,
        }

    def run(self, entries: Iterable[Entry], *, keep_beside: frozenset[str] = frozenset()) -> Undone:
        """`keep_beside` are paths that somebody has changed since: what is there now stays, under another name."""
        count, failed = 0, []
        for path in sorted(keep_beside):
            try:
                self._put_beside(path)
            except OSError as error:
                failed.append((path, error.strerror or str(error)))
        for entry in reversed(list(entries)):
            step = self._steps.get(entry.kind)
            if step is None:
                continue
            try:
                step(entry, lstat(entry.path))
                count += entry.kind != log.TIMES
            except OSError as error:
                failed.append((entry.path, error.strerror or str(error)))
        return Undone(count, failed)

    # One entry each. Guard against a change that never happened, or that was taken back already.
    def _absent(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is not None:
            self._move(entry.path, self._stash.new_name(entry.path), found)

    def _stashed(self, entry: Entry, found: os.stat_result | None) -> None:
        kept = lstat(entry.second)
        if kept is None:
            return
        if found is not None and os.path.samestat(found, kept):  # the removal failed
            self._record.attributes(entry.path, found)  # its link count, and with it the time of its last change
            os.unlink(entry.second)
            return
        if found is not None:
            self._move(entry.path, self._stash.new_name(entry.path), found)
        else:
            self._make_parents(entry.path)
        self._move(entry.second, entry.path, kept)

    def _symlink(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is None:
            self._create(entry.path)
            os.symlink(os.fsdecode(entry.data), entry.path)

    def _content(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is not None and not stat.S_ISREG(found.st_mode):
            return
        if found is None:
            self._create(entry.path)
        else:
            self._before_overwriting(entry.path, found)
        if found is not None and not os.access(entry.path, os.W_OK):
            os.chmod(entry.path, 0o600)
        with open(entry.path, "r+b" if found is not None else "xb", 0) as file:
            if entry.second:
                with open(entry.second, "rb") as kept:
                    copy_content(kept.fileno(), file.fileno(), entry.meta.size)
            else:
                view = memoryview(entry.content())
                while view:
                    view = view[file.write(view) :]
            file.truncate(entry.meta.size)
        if found is None:
            self._made_anew(entry)
        _put_attributes(entry.path, entry.meta, entry.extended)

    def _grown(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is None or not self._is_same(entry.meta.inode, found):
            return
        self._before_overwriting(entry.path, found)
        if found.st_size > entry.meta.size:
            os.truncate(entry.path, entry.meta.size)
        os.utime(entry.path, ns=(entry.meta.atime, entry.meta.mtime))

    def _attributes(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is None or not self._is_same(entry.meta.inode, found):
            return
        self._record.attributes(entry.path, found)
        _put_attributes(entry.path, entry.meta, entry.extended)

    def _folder(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is None:
            self._create(entry.path, is_folder=True)
            os.mkdir(entry.path)
            self._made_anew(entry)
        elif not stat.S_ISDIR(found.st_mode):
            return
        else:
            self._record.attributes(entry.path, found)
        _put_attributes(entry.path, entry.meta, entry.extended)

    def _rename(self, entry: Entry, found: os.stat_result | None) -> None:
        there = lstat(entry.second)
        if there is None or found is not None or not self._is_same(entry.meta.inode, there):
            return
        self._make_parents(entry.path)
        self._move(entry.second, entry.path, there)

    def _exchange(self, entry: Entry, found: os.stat_result | None) -> None:
        there = lstat(entry.second)
        if there is None or found is None or not self._is_same(entry.meta.inode, there):
            return
        self._record.rename(entry.second, there, entry.path, found, exchange=True)
        rename(entry.second, entry.path, _EXCHANGE)

    def _times(self, entry: Entry, found: os.stat_result | None) -> None:
        if found is not None and stat.S_ISDIR(found.st_mode):
            self._record.folder_times(entry.path)
            with contextlib.suppress(PermissionError):  # a folder of another user, such as /tmp
                os.utime(entry.path, ns=(entry.meta.atime, entry.meta.mtime))

    def _create(self, path: str, *, is_folder: bool = False) -> None:
        self._make_parents(path)
        self._record.create(path, is_folder=is_folder)

    def _make_parents(self, path: str) -> None:
        """A folder that is gone since: an older entry takes it away again."""
        parent = os.path.dirname(path)
        if lstat(parent) is None:
            self._create(parent, is_folder=True)  # which makes the one above
            os.mkdir(parent)

    def _move(self, path: str, to: str, found: os.stat_result) -> None:
        self._record.rename(path, found, to, None)
        try:
            rename(path, to, _NOREPLACE)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.move(path, to)

    def _put_beside(self, path: str) -> None:
        found = lstat(path)
        if found is None:
            return
        to = f"{path}{_BEFORE_SUFFIX}{self._record.call}"
        if stat.S_ISREG(found.st_mode):
            # A copy: the file itself may be what the undo goes on from.
            self._record.create(to)
            shutil.copy2(path, to)
        else:
            self._move(path, to, found)

    def _before_overwriting(self, path: str, found: os.stat_result) -> None:
        """After a crash it may be somebody's by now: it stays in the stash for as long as calls are kept."""
        self._record.change(path, found)
        if isinstance(self._record, NotRecorded):
            with contextlib.suppress(PermissionError):
                copy(path, self._stash.new_name(path), found.st_size)

    def _made_anew(self, entry: Entry) -> None:
        new = os.lstat(entry.path).st_ino
        self._remade.setdefault(entry.meta.inode, set()).add(new)
        self._record.remade(entry.meta.inode, entry.path)

    def _is_same(self, inode: int, found: os.stat_result) -> bool:
        """Whether it is the file that the entry is about, or what an undo has made in its place."""
        known, todo = set(), [inode]
        while todo and found.st_ino not in known:
            known.add(todo[-1])
            todo += self._remade.get(todo.pop(), set()) - known
        return found.st_ino in known


def select(entries: list[Entry], only: str) -> list[Entry]:
    """Those about a path, and about what is below it. A path that came or went with its folder gets an entry of its own."""
    prefix = only + "/"
    chosen = [entry for entry in entries if _concerns(entry, only, prefix)]
    above = [entry for entry in entries if only.startswith(entry.path + "/")] if not chosen else []
    if any(entry.kind == log.ABSENT for entry in above):
        return [Entry(entries[0].call, log.ABSENT, only)]
    for entry in above:
        if entry.kind == log.RENAME and lstat(entry.second + only[len(entry.path) :]) is not None:
            return list(_part_of_tree(entry, only))
    return chosen


def without(entries: list[Entry], parts: Iterable[str]) -> list[Entry]:
    """Those that are not about these paths, or what is below them: they were taken back before. The times of folders are kept."""
    for part in parts:
        rest = [entry for entry in entries if entry.kind == log.TIMES or not _concerns(entry, part, part + "/")]
        entries = []
        for entry in rest:
            is_opened = entry.kind == log.RENAME and part.startswith(entry.path + "/") and lstat(entry.path) is not None
            entries += [entry._replace(kind=log.ABSENT, path=entry.second)] if is_opened else [entry]
            entries += _rest_of_tree(entry) if is_opened else ()
    return entries


def _rest_of_tree(moved: Entry) -> Iterator[Entry]:
    """As if what is left of a moved folder, a part of which is back, had been moved one by one."""
    yield _as_folder(moved, moved.path, moved.path)
    for name in os.listdir(moved.second) if os.path.isdir(moved.second) else ():
        path, kept = f"{moved.path}/{name}", f"{moved.second}/{name}"
        one = moved._replace(path=path, second=kept, meta=meta_of(os.lstat(kept)))
        is_merged = all(stat.S_ISDIR(found.st_mode) for found in (lstat(path), lstat(kept)) if found is not None)
        yield from _rest_of_tree(one) if is_merged and lstat(path) is not None else (one,)


def _part_of_tree(moved: Entry, only: str) -> Iterator[Entry]:
    """As if the folders above, and the path itself, had been moved one by one."""
    for end in [at for at, letter in enumerate(only) if letter == "/" and at >= len(moved.path)]:
        yield _as_folder(moved, only[:end], moved.second + only[len(moved.path) : end])
    kept = moved.second + only[len(moved.path) :]
    yield moved._replace(path=only, second=kept, meta=meta_of(os.lstat(kept)))


def _as_folder(moved: Entry, path: str, now: str) -> Entry:
    """As if the folder at `path` had been deleted, with the attributes of the one at `now`."""
    folder = moved._replace(kind=log.FOLDER, path=path, second="", meta=meta_of(os.lstat(now)))
    return folder._replace(extended=extended_attributes(now))


def _concerns(entry: Entry, only: str, prefix: str) -> bool:
    names = (entry.path, entry.second) if entry.kind in (log.RENAME, log.EXCHANGE) else (entry.path,)
    if entry.kind == log.TIMES:
        return os.path.dirname(only) == entry.path or entry.path == only or entry.path.startswith(prefix)
    return any(name == only or name.startswith(prefix) for name in names)


def rename(path: str, to: str, flags: int) -> None:
    if _libc.renameat2(_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(to), flags) < 0:
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS) or flags == _EXCHANGE:
            raise OSError(code, os.strerror(code), path)
        if os.path.lexists(to):  # a file system that knows no flags
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), to)
        os.rename(path, to)


def _put_attributes(path: str, meta: Meta, extended: bytes) -> None:
    found = os.lstat(path)
    is_other = (found.st_uid, found.st_gid) != (meta.owner, meta.group)
    if is_other:
        os.chown(path, meta.owner, meta.group, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):
        is_other = _put_extended(path, extended) or is_other
        mode = os.lstat(path).st_mode if is_other else found.st_mode  # either may change it
        if stat.S_IMODE(mode) != stat.S_IMODE(meta.mode):
            os.chmod(path, stat.S_IMODE(meta.mode))
    os.utime(path, ns=(meta.atime, meta.mtime), follow_symlinks=False)


def _put_extended(path: str, extended: bytes) -> bool:
    """Whether there was something to do."""
    try:
        present = os.listxattr(path)
    except OSError:  # a file system without them
        return False
    if not present and not extended:
        return False
    wanted = {name: bytes.fromhex(value) for name, value in json.loads(extended or b"{}").items()}
    with contextlib.suppress(OSError):  # some belong to the system, and only root may change them
        for name in set(present) - set(wanted):
            os.removexattr(path, name)
        for name, value in wanted.items():
            if name not in present or os.getxattr(path, name) != value:
                os.setxattr(path, name, value)
    return True


def recover(journal_folder: str, on_crash: str = "undo") -> list[dict[str, Any]]:
    """Finish every call that its writer did not finish. Each gets its `call`, `outcome` ("rolled back" or "kept"), how many
    `changes` it had made, and the paths that `failed`. Can be repeated if it is interrupted itself."""
    if not any(name.endswith(OPEN_SUFFIX) for name in names_in(journal_folder)):
        return []
    with locked(journal_folder):
        left = [name[: -len(OPEN_SUFFIX)] + SUFFIX for name in names_in(journal_folder) if name.endswith(OPEN_SUFFIX)]
        dead = [name for name in left if not _is_written_to(os.path.join(journal_folder, name[: -len(SUFFIX)]))]
        if not dead:
            return []
        journal = Journal(journal_folder)
        journal.refresh()
        mine, alive = writer_name(), {name for name in left if name not in dead}
        answers = _finish(journal, dead, alive, on_crash, Stash(journal_folder, mine))
        _drop_further_names(journal, [mine, *(name.partition("-")[2][: -len(SUFFIX)] for name in dead)])
        return answers


def _finish(journal: Journal, dead: list[str], alive: set[str], on_crash: str, stash: Stash) -> list[dict[str, Any]]:
    unfinished: dict[int, list[str]] = {}  # logs by call
    for name in dead:
        for call in journal.unended_in(name):
            unfinished.setdefault(call, []).append(name)
    answers = []
    busy = {call for name in alive for call in journal.calls_in(name)}
    for call in sorted(set(unfinished) - busy, reverse=True):
        logs, entries = unfinished[call], journal.entries(call)
        changes = sum(entry.kind not in (log.TIMES, log.HOST, log.UNSAVED) for entry in entries)
        answer: dict[str, Any] = {"call": call, "outcome": "kept", "changes": changes, "failed": []}
        ending = [log.END]
        if on_crash == "undo" and not all(JOB_MARK in name for name in logs):
            undone = Undo(journal, stash).run(entries)
            answer.update(outcome="rolled back", failed=[path for path, _ in undone.failed])
            ending.insert(0, log.ROLLED_BACK)
        now = Meta(mtime=time.time_ns())
        for name in logs:
            journal.complete(name, [log.encode(call, kind, "", meta=now) for kind in ending])
        answers.append(answer)
    for name in dead:
        if not busy.intersection(journal.calls_in(name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(journal.folder, name[: -len(SUFFIX)] + OPEN_SUFFIX))
    return answers


def _drop_further_names(journal: Journal, writers: list[str]) -> None:
    """What writers that are gone, and the rolling back itself, have left in a stash although the file has another name: programs
    such as `cp -a` and `gzip` do otherwise with a file of several names."""
    for path, found in unnamed(journal):
        if os.path.basename(path).rpartition("-")[0] in writers:
            below = (f"{parent}/{name}" for parent, _, names in os.walk(path) for name in names)
            for one in below if stat.S_ISDIR(found.st_mode) else (path,):
                if os.lstat(one).st_nlink > 1:
                    os.unlink(one)


def _is_written_to(base: str) -> bool:
    """Whether somebody holds the lock of a writer. A log that its writer had not yet made is not there. If the writer was killed,
    a change that it had let through may still be about to happen: the end of whoever makes it is waited for."""
    try:
        with open(base + SUFFIX, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(base + OPEN_SUFFIX, "rb") as file:
            makers = b"" if JOB_MARK in base else file.read()  # a background process goes on, and is not rolled back
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    end = time.monotonic() + _END_SECONDS
    while is_any_alive(makers) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
    return is_any_alive(makers)
