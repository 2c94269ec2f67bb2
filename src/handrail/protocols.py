"""The roles that others fill. Nothing here is inherited from: having the methods is enough."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol


class Decision(Enum):
    """The closed set of answers to an approval request. Silence is not among them: no answer is a denial."""

    ONCE = "once"
    TRY = "try"  # it runs with every connection held, and is kept or taken back when its effect was seen
    TASK = "task"  # for a while, and a number of times, in this task
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"

    @property
    def allows(self) -> bool:
        return self is not Decision.DENY


class ActionKind(Enum):
    """What sort of thing is about to happen: each is judged in its own way."""

    COMMAND = "command"  # a shell runs the text
    INPUT = "input"  # the text is typed to a program that runs
    CODE = "code"  # an interpreter runs the text
    FILE_WRITE = "file_write"  # the text is a path, and what is there is written or removed
    FILE_READ = "file_read"  # the text is a path, and what is there is read or searched
    CONNECT = "connect"  # a program wants to reach a host; the text says which
    TOOL = "tool"  # somebody else's tool is called; the text says what it is
    HELD = "held"  # a program that runs waits; the text is the path or host that it wants


class Preview(NamedTuple):
    """What a call would write: the content, or a unified diff against what is there now. `base` identifies what is there now."""

    text: str
    base: str = ""


# `ApprovalRequest.editable` of a call that was tried: an answer may name the lines of the text that are kept, and no others.
PICKED = "kept paths"


class Action(NamedTuple):
    """One thing that a call is about to do, told before it is done. A tool says so with `actions` at registration.

    `preview` is called when a person has to be asked, and once more after their yes, which holds only if nothing has changed.
    A ToolError that it raises ends the call before anybody is asked.
    """

    kind: ActionKind
    text: str
    cwd: str = ""
    environment: str = "local"  # for people; what it can do is in the next two
    isolated: bool = False
    reaches_host: bool = True
    details: Mapping[str, Any] = {}
    preview: Callable[[], Preview] | None = None


class Concern(NamedTuple):
    """One reason to ask: the rule that found it, the part of the text that it is about, and what a lasting yes covers."""

    rule: str
    why: str
    start: int = 0
    end: int = 0
    key: str = ""  # what a grant for it is kept under: the rule and how far its effect goes
    covers: str = ""  # the same for people


class ApprovalRequest(NamedTuple):
    """What a person is asked before something happens. `id` is what an answer from elsewhere names."""

    tool: str
    arguments: Mapping[str, Any]
    reason: str
    rule_key: str = ""
    task_id: str | None = None
    session_id: str | None = None
    id: str = ""
    kind: ActionKind = ActionKind.TOOL
    text: str = ""
    cwd: str = ""
    environment: str = ""
    concerns: tuple[Concern, ...] = ()
    offers: tuple[Decision, ...] = (Decision.ONCE, Decision.DENY)
    expires_at: float = 0.0  # as `time.time()`: no answer by then is a denial
    asker: str = ""  # the task of the child agent that wants it; empty for the agent that the person talks to
    # What would be written: its content, or a unified diff against what was there when this was asked.
    preview: str = ""
    tool_call_id: str = ""  # the model's call that it is about
    fingerprint: str = ""  # equal for the same question of the same session; an answer given in advance is bound to it
    editable: str = ""  # the argument that is the text, where an answer may give another text for it; or PICKED

    def as_offered(self, answer: Answer) -> Answer:
        """Of what was not offered, a longer yes counts once, and what cannot be tried is denied. What was edited does not run
        as it was asked about."""
        if answer.edited:
            return answer._replace(decision=Decision.DENY)
        if answer.decision in (*self.offers, Decision.DENY):
            return answer
        is_tried = answer.decision is Decision.TRY
        return answer._replace(decision=Decision.DENY if is_tried else Decision.ONCE)

    def answer(self, decision: Decision, *, by: str = "", why: str = "") -> Answer:
        """An answer to this question and to no other, for a call that is made later."""
        return Answer(decision, by, why, fingerprint=self.fingerprint)


class Answer(NamedTuple):
    """A decision and who made it. `seconds` and `uses` bound one that holds for a task. `edited` is what is to run instead of the
    text that was asked about, which does not run then; it is judged like any other."""

    decision: Decision
    by: str = ""
    why: str = ""
    seconds: float | None = None
    uses: int | None = None
    fingerprint: str = ""  # of the request that it answers; needed only where the answer comes before the question
    edited: str = ""


Reply = Decision | Answer | None


class Approver(Protocol):
    """Whoever may say yes. None passes the question on to the next, if there is one; raising or not answering is a no.

    An `async def` holds no thread while it waits, and is cancelled when somebody else was faster.
    """

    def decide(self, request: ApprovalRequest) -> Reply | Awaitable[Reply]: ...


class FileStat(NamedTuple):
    """What the file tools need to know of a path. `version` changes whenever the content may have."""

    size: int
    is_dir: bool
    version: str
    mode: int  # as `st_mode`: the kind of file and its permissions


class FileEntry(NamedTuple):
    """One name in a folder. A link is neither file nor folder: whoever walks a tree does not follow it."""

    name: str
    is_dir: bool
    is_file: bool


class Files(Protocol):
    """The file system of a task's environment. What goes wrong is a ToolError with a message for the model."""

    @property
    def max_read_bytes(self) -> int:
        """The most that one `read` gives; a longer file is read in pieces."""

    def resolve(self, path: str) -> str:
        """The absolute path with links followed, relative to the task's working directory."""

    def stat(self, path: str) -> FileStat | None:
        """None when there is nothing at that path."""

    def entries(self, path: str) -> Sequence[FileEntry]:
        """What a folder holds, in no particular order."""

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        """`max_bytes`, but not over `max_read_bytes`, of a regular file from `offset`; fewer only where it ends."""

    def write(self, path: str, data: bytes, *, mode: int | None = None, call: int = 0) -> FileStat:
        """Replace the whole file at once, keeping its mode; a reader sees the old content or the new.

        Missing folders are made. `mode` is for a file that is new. `call` is given only where `host_path` gives None: what was
        there is to be kept in the journal for that call.
        """

    def remove(self, path: str, *, call: int = 0) -> None:
        """Take away a file or an empty folder. A link is refused."""

    def host_path(self, path: str) -> str | None:
        """Where this process finds the same file; None when it is on another machine."""


HOOK = "hook"  # in place of the tool's name, for what a hook that is a command has changed


class CallEffects(Protocol):
    """What a call changes, kept so that it can be taken back: see `handrail.effects.open_call`."""

    @property
    def calls(self) -> Any:
        """All calls of the state folder."""

    @property
    def number(self) -> int:
        """The call's number; 0 as long as nothing was about to change."""

    @property
    def is_tried(self) -> bool:
        """Whether it was only allowed to be tried."""

    def begin(self, head: str, *, folder: str = "", environment: Any = None) -> int: ...
    def has_run(self, environment: Any, *, changed: bool, left: Sequence[str] = ()) -> int: ...
    def uncovered(self, head: str, reason: str) -> None: ...
    def approved(self, request: ApprovalRequest, answer: Answer) -> None: ...
    def journaled(self, files: Files) -> Files: ...
    def take_back(self, number: int, only: str = "") -> str: ...
    def end(self) -> None: ...


class StoredResult(NamedTuple):
    """A result that was too long for the model's context."""

    id: str
    tool: str
    chars: int
    lines: int


class ResultWriter(Protocol):
    """Takes a long result while it is still being made. Ended by one of `finish` and `discard`; until then nobody can read it."""

    def write(self, text: str) -> None: ...
    def finish(self) -> StoredResult: ...
    def discard(self) -> None: ...


class ResultStore(Protocol):
    """Keeps long results whole, so that paging them runs nothing again. Raises OSError for what cannot be kept."""

    def put(self, tool: str, text: str) -> StoredResult: ...
    def writer(self, tool: str) -> ResultWriter: ...
    def get(self, result_id: str) -> str:
        """Raises ResultNotFound."""


class TodoItem(NamedTuple):
    id: str
    content: str
    status: str


class TodoList(Protocol):
    def items(self) -> Sequence[TodoItem]: ...
    def replace(self, items: Sequence[TodoItem]) -> None: ...
    def merge(self, changes: Sequence[Mapping[str, str]]) -> None: ...


class Person(Protocol):
    """Someone who can be asked a question."""

    def ask(self, question: str, choices: Sequence[str]) -> str | Awaitable[str | None] | None:
        """Their answer; None when they are not there or do not answer. An `async def` holds no thread, and can be cancelled."""


class CallingClient(Protocol):
    """The MCP client that made a call, for a tool that needs something of it."""

    def supports(self, method: str) -> bool:
        """Whether it answers `elicitation/create`, `sampling/createMessage` or `roots/list`."""

    def request(self, requests: Mapping[str, Mapping[str, Any]]) -> Awaitable[Mapping[str, Any]]:
        """Ask it, under keys of your own: `{"name": {"method": "elicitation/create", "params": {...}}}`. Returns the results
        under the same keys. Raises ToolUnavailable if it does not support a method."""

    def log(self, level: str, message: object) -> None:
        """Send it a log message; dropped below the level that it asked for. Any thread may call this."""


class ModelReply(NamedTuple):
    """One message of a model: text, and the calls it asks for in OpenAI's shape."""

    content: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()


class Model(Protocol):
    """Anything that answers a conversation."""

    def reply(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply: ...


class Environments(Protocol):
    """Where the commands and files of each task live. The built-in one is `handrail.environments.TaskEnvironments`."""

    def files(self, task_id: str | None) -> Files:
        """The files of the task's environment."""

    def cwd(self, task_id: str | None) -> str:
        """The directory in which the task's next command starts."""

    def of(self, task_id: str | None) -> Any:
        """The task's environment; not started before its first command."""

    def has_host_paths(self, task_id: str | None) -> bool:
        """Whether a path means the same in the task's environment as on this machine."""

    def companion(self, kind: type[Any], make: Callable[[], Any]) -> Any:
        """The one object of that type that lives and ends with these environments, made at its first use."""


class Processes(Protocol):
    """The background processes of all tasks. The built-in one is `handrail.processes.ProcessTable`."""

    def close(self) -> None:
        """Stop watching them; those that were started to live on go on."""
