"""Commands under an effect watcher, without a live shell around them, and trees to compare."""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path
from typing import Any

from handrail.environments.shell_host import syscall_filter, wire
from handrail.environments.shell_host.effect_watcher import EffectWatcher
from handrail.environments.shell_host.journal import CallJournal, Stash
from handrail.environments.shell_host.journal_conflicts import Conflict, conflicts
from handrail.environments.shell_host.journal_log import Journal, LogWriter
from handrail.environments.shell_host.journal_undo import Undo, Undone
from handrail.environments.shell_host.journal_undo import select as select_entries

NOBODY = 65534


class Recorder:
    """Runs commands as calls 1, 2, ... in a folder, with a journal beside it."""

    def __init__(self, journal: Path, work: Path) -> None:
        self.work, self.folder = work, str(journal)
        self.writer, self.stash = LogWriter(self.folder, "test"), Stash(self.folder, "test")
        self.journal = Journal(self.folder)
        self.number = 0

    def run(self, command: str, *, user: int | None = None) -> int:
        """The number of the call."""
        call = self.next_call()
        code = watched(command, self.work, call, self.stash, user=user)
        call.end()
        assert code == 0, f"{command} ended with {code}"
        return call.call

    def next_call(self) -> CallJournal:
        self.number += 1
        return CallJournal(self.writer, self.stash, self.number)

    def conflicts(self, call: int, only: str = "") -> list[Conflict]:
        self.journal.refresh()
        return conflicts(self.journal, call, self.entries(call, only), {})

    def entries(self, call: int, only: str = "") -> list[Any]:
        self.journal.refresh()
        found = self.journal.entries(call)
        return select_entries(found, only) if only else found

    def undo(self, call: int, only: str = "", keep_beside: frozenset[str] = frozenset()) -> Undone:
        entries = self.entries(call, only)
        record = self.next_call()
        record.undoes(call, only)
        undone = Undo(self.journal, self.stash, record).run(entries, keep_beside=keep_beside)
        record.end()
        self.journal.refresh()
        return undone


def watched(command: str, cwd: Path, call: CallJournal, stash: Stash, *, user: int | None = None) -> int:
    ours, theirs = wire.packet_pair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            os.chdir(cwd)
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            syscall_filter.install_and_send(syscall_filter.Watch(theirs, {}))
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-c", command])
        finally:
            os._exit(127)
    theirs.close()
    _, fds = wire.receive(ours)
    ours.close()
    watcher = EffectWatcher(fds[0], lambda _: call, stash.holds)
    watcher.take_folders_over(pid)
    poll = select.poll()
    poll.register(fds[0], select.POLLIN)
    while watcher.serve(poll.poll()[0][1]):
        pass
    watcher.close()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def snapshot(folder: Path) -> dict[str, Any]:
    """Everything about a tree that an undo has to bring back. In a folder that is closed to this user nothing can change."""
    found: dict[str, Any] = {}
    groups: dict[int, list[str]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        try:
            info = path.lstat()
        except PermissionError:
            continue
        content: Any = None
        if not stat.S_ISDIR(info.st_mode):
            groups.setdefault(info.st_ino, []).append(str(path))
        if stat.S_ISREG(info.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(info.st_mode):
            content = os.readlink(path)
        attributes = {n: os.getxattr(path, n, follow_symlinks=False) for n in os.listxattr(path, follow_symlinks=False)}
        found[str(path)] = (info.st_mode, info.st_uid, info.st_gid, info.st_mtime_ns, content, attributes)
    found["groups"] = sorted(groups.values())
    return found
