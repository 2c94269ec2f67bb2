"""Where commands run: one environment per task, on this machine, in a container, on another host or in a cloud.

    task -> environment -> link -> shell host -> bash

    task          has one environment, opened at its first use (`TaskEnvironments`, tasks.py) from its settings (task_settings.py)
    backend       a file in backends/, whose class makes environments of one sort; backend_table.py finds it by name
    environment   the protocol `Environment` (base.py). Nearly all are a `LiveEnvironment`, which keeps one shell alive
    link          how an environment reaches its shell (transport/): direct on this machine, otherwise frames over a channel
    shell host    the processes beside the shell (shell_host/): they start bash, save its state, and end what runs in it

Around them: output.py and command_request.py (what is kept of an output and shown, without secrets), clean_env.py (which
variables commands get), remote_files.py and process_handles.py (files and background processes through a link), sandbox.py.

To write a backend, subclass `LiveEnvironment`, implement `connect`, and check it with `handrail.testing.check_environment`.
Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend_table import Backend, Backends
    from .backend_table import backends as default_backends
    from .backends.apptainer import ApptainerEnvironment
    from .backends.daytona import DaytonaEnvironment
    from .backends.docker import DockerEnvironment
    from .backends.modal import ModalEnvironment
    from .backends.podman import PodmanEnvironment
    from .backends.ssh import SshEnvironment
    from .base import (
        BackgroundProcess,
        CommandResult,
        Environment,
        LeftRunning,
        LogPiece,
        ProcessState,
        ProcessStatus,
        PtyProcess,
        RestartReason,
        ShellRestart,
        ShellState,
    )
    from .errors import (
        CommandRefused,
        EnvironmentBusy,
        EnvironmentClosed,
        EnvironmentLost,
        EnvironmentStartError,
        HostKeyRefused,
        InputRefused,
        LoginRefused,
        NoSuchDirectory,
        NoSuchProcess,
        SandboxUnavailable,
        UnknownEnvironment,
    )
    from .live_environment import LiveEnvironment
    from .local_environment import LocalEnvironment
    from .output import Output, OutputSink
    from .sandbox import SandboxPolicy
    from .tasks import EnvironmentSettings, TaskEnvironments
    from .transport.channel import Channel
    from .transport.link import Command, DirectLink, Ended, Fatal, Link, Lost
    from .transport.session import Session, Transport

_HOMES = {
    ".backend_table": "Backend Backends",
    ".backends.apptainer": "ApptainerEnvironment",
    ".backends.daytona": "DaytonaEnvironment",
    ".backends.docker": "DockerEnvironment",
    ".backends.modal": "ModalEnvironment",
    ".backends.podman": "PodmanEnvironment",
    ".backends.ssh": "SshEnvironment",
    ".base": "BackgroundProcess CommandResult Environment LeftRunning LogPiece "
    "ProcessState ProcessStatus PtyProcess RestartReason ShellRestart ShellState",
    ".errors": "CommandRefused EnvironmentBusy EnvironmentClosed EnvironmentLost EnvironmentStartError HostKeyRefused "
    "InputRefused LoginRefused NoSuchDirectory NoSuchProcess SandboxUnavailable UnknownEnvironment",
    ".live_environment": "LiveEnvironment",
    ".local_environment": "LocalEnvironment",
    ".output": "Output OutputSink",
    ".sandbox": "SandboxPolicy",
    ".tasks": "EnvironmentSettings TaskEnvironments",
    ".transport.channel": "Channel",
    ".transport.link": "Command DirectLink Ended Fatal Link Lost",
    ".transport.session": "Session Transport",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "ApptainerEnvironment",
    "Backend",
    "Backends",
    "BackgroundProcess",
    "Channel",
    "Command",
    "CommandRefused",
    "CommandResult",
    "DaytonaEnvironment",
    "DirectLink",
    "DockerEnvironment",
    "Ended",
    "Environment",
    "EnvironmentBusy",
    "EnvironmentClosed",
    "EnvironmentLost",
    "EnvironmentSettings",
    "EnvironmentStartError",
    "Fatal",
    "HostKeyRefused",
    "InputRefused",
    "LeftRunning",
    "Link",
    "LiveEnvironment",
    "LocalEnvironment",
    "LogPiece",
    "LoginRefused",
    "Lost",
    "ModalEnvironment",
    "NoSuchDirectory",
    "NoSuchProcess",
    "Output",
    "OutputSink",
    "PodmanEnvironment",
    "ProcessState",
    "ProcessStatus",
    "PtyProcess",
    "RestartReason",
    "SandboxPolicy",
    "SandboxUnavailable",
    "Session",
    "ShellRestart",
    "ShellState",
    "SshEnvironment",
    "TaskEnvironments",
    "Transport",
    "UnknownEnvironment",
    "default_backends",
]


def __getattr__(name: str) -> Any:
    if name == "default_backends":  # `backends` is the package of the built-in ones
        return import_module(".backend_table", __name__).backends
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
