"""What can go wrong with an environment.

ToolError
├── UnknownEnvironment        (InvalidArguments) no backend of that name, or its settings cannot be used
├── EnvironmentStartError     there is no shell to run commands in, and why
│   ├── SandboxUnavailable    a sandbox was requested and is unavailable: nothing runs without it
│   ├── HostKeyRefused        the host's key is unknown, or has changed
│   └── LoginRefused          the host or the cloud refused the login
├── EnvironmentLost           (also ConnectionError) it was lost; the next command starts it again
├── EnvironmentClosed         it was closed by its owner
├── EnvironmentBusy           (also TimeoutError) another command of the same environment runs too long
├── NoSuchDirectory           (also NotADirectoryError) the working directory asked for cannot be entered
├── CommandRefused            (InvalidArguments) text that no shell accepts
├── NoSuchProcess             (also LookupError) an unknown background process
└── InputRefused              the process takes no input: it has ended, has none, or does not read

A command that fails, times out or is cancelled is not an error: it has a `CommandResult`.
"""

from ..errors import InvalidArguments, ToolError


class UnknownEnvironment(InvalidArguments):
    error_type = "unknown_environment"


class EnvironmentStartError(ToolError):
    error_type = "environment_start"


class SandboxUnavailable(EnvironmentStartError):
    error_type = "sandbox_unavailable"


class HostKeyRefused(EnvironmentStartError):
    error_type = "host_key_refused"


class LoginRefused(EnvironmentStartError):
    error_type = "login_refused"


class EnvironmentLost(ToolError, ConnectionError):
    error_type = "environment_lost"


class EnvironmentClosed(ToolError):
    error_type = "environment_closed"


class EnvironmentBusy(ToolError, TimeoutError):
    error_type = "environment_busy"


class NoSuchDirectory(ToolError, NotADirectoryError):
    error_type = "no_such_directory"


class CommandRefused(InvalidArguments):
    pass


class NoSuchProcess(ToolError, LookupError):
    error_type = "no_such_process"


class InputRefused(ToolError):
    error_type = "input_refused"
