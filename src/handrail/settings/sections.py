"""How a setting is declared (its default, text and limits in one place), and the settings of the runtime itself: one frozen
dataclass per section, one documented field per setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import MISSING, FrozenInstanceError, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar, dataclass_transform

MIB = 1024 * 1024
GIB = 1024 * MIB
# Larger values are typos, and would overflow a timer or a date.
MAX_SECONDS = 366 * 24 * 3600
MAX_DAYS = 36_500
MAX_COUNT = 1_000_000
MAX_SIZE = 2**53

T = TypeVar("T")
Texts = tuple[str, ...]


def option(default: T, doc: str, **limits: int) -> T:
    """A setting: its default, what it does, and JSON Schema limits such as `minimum=1`."""
    return field(default=default, metadata={"doc": doc, "limits": limits})


def text(doc: str) -> str:
    """A text, which is empty by default."""
    return option("", doc)


def texts(doc: str) -> Texts:
    """A list of texts, which is empty by default."""
    return option((), doc)


def seconds(default: float, doc: str, *, or_zero: bool = False) -> float:
    """A time in seconds; `or_zero`: 0 has a meaning of its own."""
    return option(default, doc, **{"minimum" if or_zero else "exclusiveMinimum": 0}, maximum=MAX_SECONDS)


def count(default: int, doc: str, *, minimum: int = 1) -> int:
    """How many of something."""
    return option(default, doc, minimum=minimum, maximum=MAX_COUNT)


def size(default: int, doc: str, *, minimum: int = 1) -> int:
    """Bytes, characters or tokens."""
    return option(default, doc, minimum=minimum, maximum=MAX_SIZE)


def named(doc: str) -> dict[str, Any]:
    """Groups of settings under names that the user chooses."""
    return field(default_factory=dict, metadata={"doc": doc})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Section:
    """A frozen dataclass whose methods are written here once: generating them for each of many sections would take a fifth of
    the start-up time."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **given: Any) -> None:
        values = self.__dict__
        for name, item in self.__dataclass_fields__.items():
            if name in given:
                values[name] = given.pop(name)
            else:
                values[name] = item.default if item.default_factory is MISSING else item.default_factory()
        if given:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(given)}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed; use dataclasses.replace")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def settings_of(kind: type) -> list[dataclasses.Field[Any]]:
    """The fields of a section that can be set."""
    return [item for item in dataclasses.fields(kind) if "internal" not in item.metadata]


class ToolsetConfig(Section):
    """A named bundle of tools."""

    description: str = text("What the set is for, in one line.")
    tools: Texts = texts("Names of the tools in the set.")
    includes: Texts = texts("Names of other sets whose tools are in this one too.")


class ToolsConfig(Section):
    """Which tools a model is offered."""

    enabled_toolsets: Texts | None = option(
        None, "Offer only the tools of these sets. null offers every known set, an empty list none."
    )
    disabled_toolsets: Texts = texts("Never offer the tools of these sets.")
    on_collision: Literal["refuse", "replace"] = option(
        "refuse", "What happens when a second toolset registers a tool's name: keep the first, or let the later win."
    )
    max_context_share: float = option(
        0.1,
        "Share of the model's context that the definitions of tools may take, from 0 to 1. What is rarely used is left out "
        "of a longer list, and found with tool_search.",
        minimum=0,
        maximum=1,
    )


class FilesConfig(Section):
    """What the file tools may touch."""

    roots: Texts = texts("Folders that the file tools are kept inside. An empty list sets no limit.")
    max_read_bytes: int = size(
        10 * MIB, "Size of the largest file that is read whole; a larger one is read page by page."
    )
    max_write_bytes: int = size(10 * MIB, "Size of the largest file that is written.")


class TerminalConfig(Section):
    """Where commands run, and what bounds them."""

    backend: str = option(
        "local",
        "Where tasks run that say nothing else: local, docker, ssh, ... `docker:python:3.12` names the image too.",
    )
    cwd: str | None = option(None, "Directory that a task's shell starts in. null is where the runtime was started.")
    timeout: float = seconds(180.0, "Seconds that a command may take when the call does not say.")
    max_timeout: float = seconds(600.0, "Seconds that a command may take at most.")
    idle_seconds: float = seconds(
        1800.0, "Seconds after which an environment that nobody uses is closed. 0 keeps it open.", or_zero=True
    )
    pool: int = option(
        2,
        "How many shells of this machine are started ahead once a second task has wanted one. 0 for none.",
        minimum=0,
        maximum=64,
    )
    env: Mapping[str, str] = named("Environment variables that commands get, by name.")
    allowed_secrets: Texts = texts("Names of secret variables of the runtime that commands may see all the same.")
    profile: Literal["contained", "open", "sealed"] = option(
        "contained",
        "What commands on this machine may do without a question. contained: write in the work tree, folders for temporary files "
        "and caches; other writes wait for your answer. open: all that you may do, with `sudo`; only the gate protects "
        "Handrail's own files, and what commands change cannot be undone. sealed: no network, no writes outside of the work "
        "tree, and no questions.",
    )
    protect: bool = option(
        True,
        "Let the kernel protect Handrail's own files, and sockets that act for others, from commands on this machine, which the "
        "profiles contained and sealed need. `sudo` gains no rights there; choose the profile open if commands need it.",
    )
    allow_sockets: Texts = texts(
        "Sockets that commands may use all the same: ssh-agent, gpg-agent, docker, dbus, tmux, x11, wayland, ..."
    )
    max_output_chars: int = size(
        50_000,
        "Longest output in characters that the model gets whole; of a longer one it gets the head and the tail.",
        minimum=1000,
    )
    max_stored_bytes: int = size(
        4 * MIB, "How much of a long output is kept for read_result, besides its tail.", minimum=0
    )
    backends: Mapping[str, Mapping[str, Any]] = named("The settings of each backend, by its name.")


class ProtectConfig(Section):
    """What is protected from commands besides Handrail's configuration, state and cache (terminal.protect)."""

    package: bool = option(
        True,
        "The Python environment and source folder that Handrail runs from. Turn it off to let agents work on Handrail itself.",
    )


class PauseConfig(Section):
    """When a running command has to wait until you have answered. With nobody to ask it is stopped, and undone."""

    files: int = count(
        100,
        "Files that it may delete which are in no commit and are not made again by a tool; 0 for any number.",
        minimum=0,
    )
    megabytes: int = count(500, "Megabytes that it may delete of such files; 0 for any size.", minimum=0)


class EffectsConfig(Section):
    """The journal of what calls change, by which each can be shown and undone."""

    enabled: bool = option(
        True,
        "Write down what commands and file tools change before they change it, where the kernel allows it. `sudo` gains no "
        "rights in a shell that is watched; turn this off if commands need it.",
    )
    on_crash: Literal["undo", "keep"] = option(
        "undo",
        "What becomes of a call that was interrupted by a crash: its changes are undone at the next start, or kept.",
    )
    keep_days: float = option(7.0, "Days for which calls can be undone.", minimum=0, maximum=MAX_DAYS)
    keep_bytes: int = size(2 * GIB, "How much the journal and what it keeps may take; the oldest calls go first.")
    max_copy: int = size(
        GIB, "Size of the largest file that is copied before it is overwritten. Files that are deleted are not copied."
    )
    durable: Literal["call", "power"] = option(
        "call",
        "Whether the journal survives a crash of Handrail (call), or a loss of power as well (power), which is slower.",
    )
    tries: Literal["in place", "isolated"] = option(
        "in place",
        "Where a command runs that is tried: in place, where others see what it does until you take it back; or isolated, "
        "where nobody sees it before you keep it, without network, and with changes to the work tree alone.",
    )
    pause: PauseConfig = field(default_factory=PauseConfig)
    witness: str = text(
        "A file, or an http address, that is given each signature over the receipts of calls; or tsa+ and the http address of a "
        "timestamp authority (RFC 3161). See `handrail audit verify`."
    )


class CodeConfig(Section):
    """What bounds the scripts that call tools. They run where commands run."""

    python: str = option("python3", "The Python that runs them, as the shell there finds it; 3.8 or newer.")
    timeout: float = seconds(
        300.0, "Seconds that a script may take when the call does not say, without those that its tools take."
    )
    max_timeout: float = seconds(1800.0, "Seconds that a script may take at most.")
    max_tool_calls: int = count(500, "Tools that one script may call.", minimum=0)


class ProcessesConfig(Section):
    """How many background processes there may be, and how long one is remembered."""

    max_running: int = count(128, "Background processes that may run at once, of all tasks together.")
    max_running_per_task: int = count(32, "Background processes of one task that may run at once.")
    max_finished: int = count(64, "Ended processes that are remembered, with their logs.", minimum=0)
    keep_finished_hours: float = option(
        24.0, "Hours that an ended process is remembered, with its log.", minimum=0, maximum=MAX_DAYS * 24
    )


class ResultsConfig(Section):
    """How much of a tool's output the model gets, and how long the rest is kept."""

    max_chars: int = size(
        100_000, "Longest result in characters that the model gets whole, for tools that set no length of their own."
    )
    turn_max_chars: int = size(200_000, "Characters that all results of one turn may have together.")
    keep_days: int = option(7, "Days that a stored result is kept.", minimum=0, maximum=MAX_DAYS)
    max_total_bytes: int = size(GIB, "Size of all stored results together; the oldest go first.", minimum=0)


class CallsConfig(Section):
    """What bounds the calls that run."""

    batch_timeout: float = seconds(600.0, "Seconds that the calls of one model message may take together.")
    hook_timeout: float = seconds(5.0, "Seconds that one plugin hook may take.")
    plugin_timeout: float = seconds(
        20.0, "Seconds that loading one plugin may take; one that takes longer is left out."
    )
    max_argument_chars: int = size(5_000_000, "Length of the longest arguments that a call may have.")
    max_threads: int = count(128, "Threads that run calls in this process, without those that only wait.")
    max_waiting: int = count(4096, "Calls that wait for a command, a page or a person at once in this process.")
    max_threads_per_session: int = count(100, "Threads that run calls of one session.")
    max_async: int = count(10_000, "Async calls that run at once in this process.")


class ApprovalsConfig(Section):
    """Who decides about dangerous actions, and what needs no decision."""

    mode: Literal["manual", "smart", "off"] = option(
        "manual",
        "manual asks you; smart lets a small model decide about what stays in the project, and asks you about the rest; "
        "off asks nobody. What can never run, and your deny list, apply in every mode.",
    )
    timeout: float = seconds(300.0, "Seconds to wait for an answer; without one the action is denied.")
    headless: Literal["deny", "queue"] = option(
        "deny",
        "Where nobody can be asked: deny immediately, or queue the request for `handrail approvals answer` in another "
        "terminal.",
    )
    approver: str = text("Who is asked where nobody is at the terminal: the name of a plugin's approver.")
    task_minutes: float = option(
        30.0, "Minutes that the answer 'task' is valid.", exclusiveMinimum=0, maximum=MAX_SECONDS
    )
    task_uses: int = count(20, "How many times the answer 'task' is valid.")
    allow: Texts = texts(
        "Commands that need no asking, by their first words: `git push origin`, `docker compose down`. `*` is any word."
    )
    deny: Texts = texts("Commands that never run, in the same form; also `tool:NAME` for a tool's name.")
    ask_tools: Texts = texts("Names of tools whose every call asks, such as `mcp__mail__*`.")
    smart_url: str = text("Address of an OpenAI-compatible API for the mode smart, such as http://127.0.0.1:11434/v1.")
    smart_model: str = text("The model to ask there.")
    smart_key_env: str = text("Environment variable that holds the key for it.")
    smart_timeout: float = option(
        15.0, "Seconds that the model may take; then you are asked.", exclusiveMinimum=0, maximum=600
    )
    history_max_bytes: int = size(
        16 * MIB,
        "Size of the record of all actions, for `handrail approvals simulate`; the oldest go first. 0 keeps none.",
        minimum=0,
    )


class PluginConfig(Section):
    """What one plugin may do."""

    enabled: bool = option(True, "Load the plugin.")
    allow_override: bool = option(False, "Let the plugin replace or remove built-in tools.")
    settings: Mapping[str, Any] = named("What the plugin itself wants to know, by its own names.")


class HookCommandConfig(Section):
    """A command that gets events, and may stop what happens."""

    command: str = text("What the shell runs. It gets the event as JSON on its standard input.")
    matcher: str = text("Only for tools whose whole name fits this pattern, such as `terminal|write_.*`.")
    timeout: float = seconds(60.0, "Seconds that the command may take.")
    policy: bool = option(False, "Block the call when the command fails or takes too long, instead of continuing.")


class ApprovalRuleConfig(Section):
    """A rule of your own about commands, beside the built-in ones; how to write one is in the documentation."""

    severity: Literal["block", "ask", "note"] = option("ask", "Whether the command never runs, asks, or is only noted.")
    why: str = text("Why it matters, in a few words; shown when the rule asks.")
    uses: Texts = texts("Uses of programs, such as `make deploy|release !-n`.")
    pattern: str = text("Instead of uses, a regular expression for the words of a command line.")
    match: Texts = texts("Commands that the rule must find; checked when the configuration is read.")
    not_match: Texts = texts("Commands like those that it must not find.")
    spare: Texts = texts("An older name for `not_match`.")


class SkillsConfig(Section):
    """Which skills a model is offered."""

    folders: Texts = texts("Folders with skills of yours, besides `skills` beside config.yaml.")
    disabled: Texts = texts("Names of skills that no model is offered.")
    of_plugins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})  # their folders, by name


class ScheduleConfig(Section):
    """What scheduled jobs may take, and what is kept of them."""

    timezone: str = text("Time zone of jobs that name none, such as Europe/Berlin. Empty is the machine's own.")
    max_parallel: int = count(3, "Jobs that run at once.")
    timeout: float = seconds(1800.0, "Seconds that one run may take when the job does not say.")
    max_output_chars: int = size(100_000, "Characters of a run's output that are kept.", minimum=1000)
    keep_runs: int = count(20, "Runs of each job that are remembered.")
    max_jobs: int = count(200, "Jobs that there may be.")
    jobs_may_schedule: bool = option(False, "Give the runs of jobs the tool cronjob, so that jobs can make jobs.")


class RolloutsConfig(Section):
    """Where agents are tried on tasks (`rl_*`), and what bounds that."""

    folder: str = text("Where your environments are, a Python file each; rl_environments beside config.yaml if empty.")
    backend: str = option(
        "local",
        "Where rollouts run that say nothing else. local: each in a folder of its own that is thrown away, in a sandbox; "
        "docker, modal, ...: each in a container of its own.",
    )
    max_parallel: int = count(8, "Rollouts of one run that may run at once.")
    max_rollouts: int = count(1000, "Rollouts that one run may have.")
    reward_timeout: float = seconds(60.0, "Seconds that a reward function may take.")
