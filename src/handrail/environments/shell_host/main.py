"""The entry point of the shell host, once it is loaded."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
from typing import Callable  # noqa: UP035  Python 3.8 knows no other place

from . import jobs, proc, protection, wire
from .effect_server import EffectServer, pair, probe
from .fork_server import ForkServer, open_pidfd
from .syscall_filter import watch_messages
from .wire import Packet

_NOT_CONTAINED = "commands cannot be contained there: {}; choose the profile open for it"


def main(arguments: Packet) -> None:
    """Role `fork_server`: serve a client on this machine, through its socket. `remote`: serve the client at stdin and stdout."""
    if arguments["role"] == "fork_server":
        _serve_here(arguments)
        return
    mine, theirs = wire.packet_pair()
    relay, effects = os.getpid(), arguments["effects"]
    journal = jobs.journal_folder(effects["name"]) if effects is not None else ""
    effects = {**effects, "journal": journal} if journal else None
    hello, report = os.pipe()
    if os.fork() == 0:
        try:
            os.setsid()
            client = os.dup(theirs.fileno())
            wire.keep_only((2, client, report))
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            outside = _Outside(effects, socket.socket(fileno=client))
            entered = _Entered(_contained(journal) if arguments["contained"] is not None else None, outside)
            is_refused = arguments["contained"] is not None and not entered.contains
            refused = _NOT_CONTAINED.format(entered.report.get("why", "")) if is_refused else ""
            uncovered = outside.probe()
            if uncovered and arguments["asked_mounts"]:
                refused = f"nothing can wait for an answer before it writes to a mount there: {uncovered}"
            os.write(report, json.dumps({"uncovered": uncovered, "refused": refused}).encode())
            os.close(report)
            if not refused:
                server = outside.for_fork_server()
                ForkServer(server, open_pidfd(relay), entered.alive, outside.to_watcher, entered.confine).run()
        finally:
            os._exit(0)
    theirs.close()
    os.close(report)
    with open(hello, "rb") as file:
        found = json.loads(file.read() or b'{"uncovered": "", "refused": "the fork server ended"}')
    if arguments["effects"] is not None and not journal:
        found["uncovered"] = "no folder for the journal can be made there"
    proc.set_title("handrail-relay")
    from .frame_relay import run_frame_relay  # not sent along when the shell is local

    run_frame_relay(mine, {**arguments, **found, "env": {**os.environ, **arguments["env"]}, "journal": journal})


def _serve_here(arguments: Packet) -> None:
    served = socket.socket(fileno=arguments["socket"])
    owner, policy = open_pidfd(arguments["owner"]), arguments["protection"]
    effects = arguments["effects"]
    if effects is not None and policy is not None:
        effects = {**effects, "private": [*policy["covered"], *policy["hidden"]]}
    outside = _Outside(effects, served, policy["jobs_root"] if policy is not None else "")
    entered = _Entered(policy, outside)
    wire.send(served, {**entered.report, "uncovered": outside.probe(), "can_hold": outside.can_hold})
    ForkServer(outside.for_fork_server(), owner, entered.alive, outside.to_watcher, entered.confine).run()


class _Entered:
    """This process, the future fork server, where `policy` protects it: as protection.enter reports."""

    def __init__(self, policy: Packet | None, outside: _Outside) -> None:
        self.report: Packet = {}
        self.alive: int | None = None
        self.confine: Callable[[Packet], bool] = lambda _: False
        if policy is not None:
            self.report = protection.enter(policy, outside.stay)
            self.alive = self.report.pop("alive", None)
            self.confine = protection.ShellMounts(policy, self.report, outside.holds_connects).confine
        if self.alive is None and outside.to_watcher is not None:
            self.alive = _fork_inside(outside.stay)

    @property
    def contains(self) -> bool:
        return self.report["by"] == protection.NAMESPACES and protection.CONTAINED not in self.report["missing"]


def _contained(journal: str) -> Packet:
    """The policy for shells elsewhere: their commands see everything, and write where a shell's own mounts let them."""
    nothing: Packet = {name: [] for name in ("hidden", "shown", "writable", "covered", "kept")}
    read_only = [journal] if journal else []
    return {
        **nothing,
        "read_only": read_only,
        "isolated": None,
        "pids": False,
        "contained": True,
        "network": True,
        "is_nested": False,
    }


class _Outside:
    """What the process does that stays outside of what protects commands: it is the effect watcher, and cleans up."""

    def __init__(self, effects: Packet | None, client: socket.socket, jobs_root: str = "") -> None:
        """Without `effects` nothing is watched. Otherwise `client` talks to the effect watcher, which passes on what is for the
        fork server: to end a call takes one process less that way."""
        self._effects, self._client, self._jobs_root = effects, client, jobs_root
        self._from_shells: socket.socket | None = None
        self.can_hold = False  # connections, once probed
        self.to_watcher: socket.socket | None = None
        if effects is not None:
            if effects.get("holds_network"):
                watch_messages()
            self._from_shells, self.to_watcher = pair()
            self._to_fork_server, self._from_watcher = wire.packet_pair()

    def stay(self, alive: int) -> None:
        """Until the other end of `alive` is closed, and everything that is watched has ended."""
        proc.set_title("handrail-fork")
        kept = [alive, self._client.fileno()]
        if self._from_shells is not None:
            kept += [self._from_shells.fileno(), self._to_fork_server.fileno()]
        wire.keep_only(kept)
        null = os.open("/dev/null", os.O_RDWR)  # not a socket in place of stderr, which Python would write a failure to
        for fd in (0, 1, 2):
            if fd not in kept:
                os.dup2(null, fd)
        if self._from_shells is None or self._effects is None:
            while os.read(alive, 1):
                pass
            self._clean_up(False)
            return
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)  # it ends with the fork server, and not before
        proc.run_in_short_slices()
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # three per shell
        sockets = (self._from_shells, self._client, self._to_fork_server)
        EffectServer(sockets, alive, self._effects).run(self._clean_up)

    def probe(self) -> str:
        """In the fork server: why nothing is watched, or nothing. In the latter case the watcher works."""
        if self.to_watcher is None or self._from_shells is None:
            return "effects are switched off"
        self._from_shells.close()
        self._to_fork_server.close()
        why, self.can_hold = probe(self.to_watcher)
        if why:
            self.to_watcher.close()
            self.to_watcher = None
        return why

    def holds_connects(self) -> bool:
        """Once probed: whether the watcher connects the sockets of commands, so that nobody else need be able to."""
        return self.can_hold and self._effects is not None and bool(self._effects.get("holds_network"))

    def for_fork_server(self) -> socket.socket:
        """In the fork server: where requests come from."""
        if self._effects is None:
            return self._client
        self._client.close()
        return self._from_watcher

    def _clean_up(self, is_needed: bool) -> None:
        """The fork server has ended. `is_needed`: background processes go on that this process watches."""
        if self._jobs_root:
            jobs.prune(self._jobs_root)  # out of reach for what has ended
        with self._client, contextlib.suppress(OSError):  # the client is gone too
            if is_needed:
                wire.send(self._client, {"stays": True})


def _fork_inside(stay_outside: Callable[[int], None]) -> int:
    """Returns in a fork of this process, with a descriptor that it closes at its end."""
    proc.become_subreaper()
    alive, theirs = os.pipe()
    if os.fork():
        os.close(theirs)
        stay_outside(alive)
        os._exit(0)
    os.close(alive)
    return theirs
