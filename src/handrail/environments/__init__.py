"""Where commands run: one environment per task, on this machine, in a container, on another host or in a cloud.

    task -> environment -> link -> shell host -> bash

    task          has one environment, opened at its first use (`TaskEnvironments`, tasks.py) from its settings (task_settings.py)
    backend       a file in backends/, whose class makes environments of one sort; backend_table.py finds it by name
    environment   the protocol `Environment` (base.py). Nearly all are a `LiveEnvironment`, which keeps one shell alive
    link          how an environment reaches its shell (transport/): direct on this machine, otherwise frames over a channel
    shell host    the processes beside the shell (shell_host/): they start bash, save its state, and end what runs in it

Around them: output.py and command_request.py (what is kept of an output and shown, without secrets), clean_env.py (which
variables commands get), handles.py (files and background processes through a link), sandbox.py.

To write a backend, subclass `LiveEnvironment`, implement `connect`, and check it with `handrail.testing.check_environment`.
Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from .backend_table import Backend as Backend
    from .backend_table import Backends as Backends
    from .backend_table import default_backends as default_backends
    from .backends.apptainer import ApptainerEnvironment as ApptainerEnvironment
    from .backends.daytona import DaytonaEnvironment as DaytonaEnvironment
    from .backends.docker import DockerEnvironment as DockerEnvironment
    from .backends.modal import ModalEnvironment as ModalEnvironment
    from .backends.podman import PodmanEnvironment as PodmanEnvironment
    from .backends.ssh import SshEnvironment as SshEnvironment
    from .base import BackgroundProcess as BackgroundProcess
    from .base import CommandResult as CommandResult
    from .base import Environment as Environment
    from .base import LeftRunning as LeftRunning
    from .base import LogPiece as LogPiece
    from .base import ProcessState as ProcessState
    from .base import ProcessStatus as ProcessStatus
    from .base import PtyProcess as PtyProcess
    from .base import RestartReason as RestartReason
    from .base import ShellRestart as ShellRestart
    from .base import ShellState as ShellState
    from .errors import CommandRefused as CommandRefused
    from .errors import EnvironmentBusy as EnvironmentBusy
    from .errors import EnvironmentClosed as EnvironmentClosed
    from .errors import EnvironmentLost as EnvironmentLost
    from .errors import EnvironmentStartError as EnvironmentStartError
    from .errors import HostKeyRefused as HostKeyRefused
    from .errors import InputRefused as InputRefused
    from .errors import LoginRefused as LoginRefused
    from .errors import NoSuchDirectory as NoSuchDirectory
    from .errors import NoSuchProcess as NoSuchProcess
    from .errors import SandboxUnavailable as SandboxUnavailable
    from .errors import UnknownEnvironment as UnknownEnvironment
    from .live_environment import LiveEnvironment as LiveEnvironment
    from .local_environment import LocalEnvironment as LocalEnvironment
    from .output import Output as Output
    from .output import OutputSink as OutputSink
    from .sandbox import SandboxPolicy as SandboxPolicy
    from .tasks import EnvironmentSettings as EnvironmentSettings
    from .tasks import TaskEnvironments as TaskEnvironments
    from .transport.channel import Channel as Channel
    from .transport.link import Command as Command
    from .transport.link import DirectLink as DirectLink
    from .transport.link import Ended as Ended
    from .transport.link import Fatal as Fatal
    from .transport.link import Link as Link
    from .transport.link import Lost as Lost
    from .transport.session import Session as Session
    from .transport.session import Transport as Transport
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            ".backend_table": "Backend Backends default_backends",
            ".backends.apptainer": "ApptainerEnvironment",
            ".backends.daytona": "DaytonaEnvironment",
            ".backends.docker": "DockerEnvironment",
            ".backends.modal": "ModalEnvironment",
            ".backends.podman": "PodmanEnvironment",
            ".backends.ssh": "SshEnvironment",
            ".base": "BackgroundProcess CommandResult Environment LeftRunning LogPiece ProcessState "
            "ProcessStatus PtyProcess RestartReason ShellRestart ShellState",
            ".errors": "CommandRefused EnvironmentBusy EnvironmentClosed EnvironmentLost EnvironmentStartError "
            "HostKeyRefused InputRefused LoginRefused NoSuchDirectory NoSuchProcess "
            "SandboxUnavailable UnknownEnvironment",
            ".live_environment": "LiveEnvironment",
            ".local_environment": "LocalEnvironment",
            ".output": "Output OutputSink",
            ".sandbox": "SandboxPolicy",
            ".tasks": "EnvironmentSettings TaskEnvironments",
            ".transport.channel": "Channel",
            ".transport.link": "Command DirectLink Ended Fatal Link Lost",
            ".transport.session": "Session Transport",
        },
    )
