"""Every exception that Handrail raises, drawn as one tree.

HandrailError
├── ToolError                 a call ended without a result; becomes the model's answer
│   ├── UnknownTool
│   ├── InvalidArguments      (also ValueError)
│   ├── ToolUnavailable
│   ├── NeedsAgent
│   ├── Denied                (also PermissionError)
│   ├── CallTimeout           (also TimeoutError)
│   ├── CallCancelled
│   ├── TooManyCalls
│   ├── UnknownOutcome        it was begun before, and nobody knows whether it was done
│   ├── Fenced                another worker has the task of this call now
│   ├── ResultContract        a handler gave back what is not a result
│   └── ToolFailed            the tool ran and reports a failure of its own
│       ├── FileMissing       (also FileNotFoundError)
│       ├── IsFolder          (also IsADirectoryError)
│       ├── FileDenied        (also PermissionError)
│       └── FileTooLarge
├── RegistrationError         (also ValueError) a tool that cannot be registered
├── UnknownToolset            (also ValueError)
├── RuleError                 (also ValueError) a rule about commands that cannot be used
├── SkillError                (also ValueError) a skill that cannot be used
├── ResultNotFound            (also LookupError)
├── RequestNotFound           (also LookupError)
├── CallNotFound              (also LookupError)
├── JobNotFound               (also LookupError)
├── SessionNotFound           (also LookupError)
├── RunNotFound               (also LookupError)
├── StoreError                what is kept on disk cannot be read or written
├── SchedulerRuns             another process is the scheduler already
├── ModelError                a model cannot be reached, or answers with an error; says whether trying again could help
└── ConfigError               (also ValueError) names the file, the line and the key

`ToolError.error_type` is part of the public contract: programs react to it, so a value never changes its meaning.
"""

from typing import Any, ClassVar


class HandrailError(Exception):
    """The root of everything raised here on purpose."""


class ToolError(HandrailError):
    """A call that ended without a result. `details` are added to the JSON that the model gets."""

    error_type: ClassVar[str] = "tool_failed"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class UnknownTool(ToolError):
    error_type = "unknown_tool"


class InvalidArguments(ToolError, ValueError):
    error_type = "invalid_arguments"


class ToolUnavailable(ToolError):
    error_type = "unavailable"


class NeedsAgent(ToolError):
    error_type = "needs_agent"


class Denied(ToolError, PermissionError):
    error_type = "denied"


class Edited(Denied):
    """The user does not want this call, but the same with another text for one argument."""

    def __init__(self, argument: str, text: str, by: str) -> None:
        super().__init__(f"Not run: {by} changed {argument} to: {text}", decided_by=by)
        self.argument, self.text, self.by = argument, text, by


class CallTimeout(ToolError, TimeoutError):
    error_type = "timeout"


class CallCancelled(ToolError):
    error_type = "cancelled"


class TooManyCalls(ToolError):
    error_type = "too_many_calls"


class UnknownOutcome(ToolError):
    error_type = "unknown_outcome"


class Fenced(ToolError):
    error_type = "fenced"


class ResultContract(ToolError):
    error_type = "tool_result_contract"


class ToolFailed(ToolError):
    error_type = "tool_failed"


class FileMissing(ToolFailed, FileNotFoundError):
    error_type = "not_found"


class IsFolder(ToolFailed, IsADirectoryError):
    error_type = "is_a_directory"


class FileDenied(ToolFailed, PermissionError):
    error_type = "permission_denied"


class FileTooLarge(ToolFailed):
    error_type = "too_large"


class RegistrationError(HandrailError, ValueError):
    """A tool that cannot be registered: the message names the tool and the place in its schema."""


class RuleError(HandrailError, ValueError):
    """A rule about commands that cannot be used: the message names the rule and what is wrong with it."""

    rule: str = ""
    """Its id, where one rule is to blame."""


class UnknownToolset(HandrailError, ValueError):
    """No toolset, alias or old name of that spelling."""


class SkillError(HandrailError, ValueError):
    """A skill that is not there or cannot be used: the message says what to change."""


class ResultNotFound(HandrailError, LookupError):
    """No stored result has that id."""


class RequestNotFound(HandrailError, LookupError):
    """No approval request, or more than one, has that id."""


class CallNotFound(HandrailError, LookupError):
    """No call with that number has changed anything, as far as is known."""


class SessionNotFound(HandrailError, LookupError):
    """No session, or more than one, has that id."""


class JobNotFound(HandrailError, LookupError):
    """No scheduled job, or more than one, has that id or name."""


class RunNotFound(HandrailError, LookupError):
    """No run of rollouts has that id."""


class StoreError(HandrailError):
    """A database of ours that cannot be used: the message names the file and what to do."""


class SchedulerRuns(HandrailError):
    """There is one scheduler at a time; the message names its process."""


class ModelError(HandrailError):
    """What a model's server said instead of an answer. `retryable`: the same request may work later; `too_long`: a shorter
    one may work."""

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None, too_long: bool = False
    ) -> None:
        super().__init__(message)
        self.retryable, self.retry_after, self.too_long = retryable, retry_after, too_long


class ConfigError(HandrailError, ValueError):
    """A configuration that cannot be used. Nothing falls back to a default behind the user's back."""

    def __init__(self, message: str, *, path: str = "", line: int | None = None, key: str = "") -> None:
        place = f"{path}:{line}" if path and line else path
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.path, self.line, self.key = path, line, key
