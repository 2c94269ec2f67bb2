"""The hooks: each function below is one, and its docstring is its manual.

An implementation is a function of the same name, marked with `@hookimpl`, that takes only the arguments it wants:

    from handrail import hookimpl

    class NoSecrets:
        @hookimpl(policy=True)
        def pre_tool_call(self, tool_name, args):
            if ".env" in str(args.get("path", "")):
                return Block("secrets stay unread")

Order: `tryfirst` ones, then the others as they were registered, then `trylast` ones. Each has a deadline. One that
raises or times out is logged and skipped; if it is marked `policy=True`, the call is blocked instead.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ..types import JsonDict

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Block:
    """The call does not run; the model gets the message."""

    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The user decides. `rule_key` names what is asked, for answers that are valid longer than once; `args` are the
    arguments that the call continues with, if they are to be changed."""

    message: str
    rule_key: str = ""
    args: JsonDict | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The call continues with these arguments; the next hook sees them."""

    args: JsonDict


Messages = list[JsonDict]  # as in OpenAI's API
Verdict = Block | Ask | Change | Mapping[str, Any] | None


class HookSpecs:
    """Every hook that Handrail calls."""

    def pre_tool_call(
        self,
        tool_name: str,
        args: JsonDict,
        task_id: str | None,
        session_id: str | None,
        tool_call_id: str,
        call_number: int,
        original_args: JsonDict,
    ) -> Verdict:
        """Before a call, with valid arguments. Return None to let it pass, or Block, Ask or Change. `original_args` are those
        before any hook changed them.

        It is called again, with the same `call_number`, when a user changes the call instead of allowing it.

        The dictionaries `{"action": "block", "message": ...}`, `{"action": "approve", "message": ..., "rule_key": ...}`
        and `{"action": "modify", "args": {...}}` mean the same.
        """

    def post_tool_call(  # noqa: PLR0913  a hook has the arguments that it is documented with
        self,
        tool_name: str,
        args: JsonDict,
        task_id: str | None,
        session_id: str | None,
        tool_call_id: str,
        call_number: int,
        result: Any,
        status: str,
        error_type: str | None,
        duration_ms: float,
    ) -> None:
        """After a call, whatever came of it. `status` is "ok", "error" or "blocked". `call_number` is that of `pre_tool_call`.

        Return Block to tell the model what is wrong with it: the result stays, and the message is added to it.
        """

    def transform_tool_result(
        self,
        tool_name: str,
        args: JsonDict,
        task_id: str | None,
        session_id: str | None,
        tool_call_id: str,
        result: str,
    ) -> str | None:
        """Return a string to put it in place of the result's text; the next hook sees the new one."""

    def transform_terminal_output(
        self, command: str, output: str, exit_code: int | None, task_id: str | None, session_id: str | None
    ) -> str | None:
        """What a command printed, before it is cut to length. Return a string to put it in place; the next hook sees that.

        Of what runs in the background it gets the part that is about to be shown: a page of the log, the last lines, the
        screen of a terminal. `exit_code` is None as long as it runs.
        """

    def pre_approval_request(
        self, tool_name: str, args: JsonDict, task_id: str | None, session_id: str | None, reason: str, rule_key: str
    ) -> None:
        """The user is about to be asked. For notifications: a hook that wants to decide is a `pre_tool_call`."""

    def post_approval_response(  # noqa: PLR0913  a hook has the arguments that it is documented with
        self,
        tool_name: str,
        args: JsonDict,
        task_id: str | None,
        session_id: str | None,
        reason: str,
        rule_key: str,
        decision: str,
        answered_by: str,
        duration_ms: float,
    ) -> None:
        """A request was answered: "once", "task", "session", "always" or "deny". No answer in time is a "deny"."""

    def on_session_start(self, session_id: str, model: str, platform: str) -> None:
        """A conversation starts, or continues after a restart. `platform` is where its user is: "cli", "matrix"..."""

    def on_session_end(self, session_id: str, model: str, platform: str, reason: str) -> None:
        """The agent has answered and waits, or was stopped. More turns may follow."""

    def on_session_reset(self, session_id: str, new_session_id: str, platform: str) -> None:
        """The user started over: a new conversation in the same place."""

    def on_session_finalize(self, session_id: str, platform: str) -> None:
        """No more turns follow: the last chance to keep something of the session."""

    def pre_llm_call(
        self, session_id: str, model: str, platform: str, user_message: str, messages: Messages, is_first_turn: bool
    ) -> str | None:
        """Before a turn is sent to the model. Return text to add to the user's message for the model."""

    def post_llm_call(
        self,
        session_id: str,
        model: str,
        platform: str,
        user_message: str,
        answer: str,
        messages: Messages,
        usage: JsonDict,
    ) -> None:
        """After a turn: the model's final answer, the conversation, and the tokens used."""

    def pre_verify(
        self, session_id: str, model: str, platform: str, attempt: int, final_response: str, changed_paths: list[str]
    ) -> Mapping[str, Any] | None:
        """The model wants to end a turn in which files were changed. Return `{"action": "continue", "message": ...}` to have it
        go on with that message. `attempt` counts these from 0; the third is the last."""

    def transform_llm_output(self, session_id: str, model: str, platform: str, response_text: str) -> str | None:
        """The final answer of a turn. Return a string to put it in place, in what callers get; users have seen it streamed."""

    def pre_api_request(
        self, session_id: str, model: str, platform: str, provider: str, api_call_count: int, request_messages: Messages
    ) -> None:
        """A request is about to be sent to the model: there are several in a turn with tool calls."""

    def post_api_request(  # noqa: PLR0913  a hook has the arguments that it is documented with
        self,
        session_id: str,
        model: str,
        platform: str,
        provider: str,
        api_call_count: int,
        response_model: str,
        assistant_message: JsonDict,
        api_duration: float,
        usage: JsonDict,
    ) -> None:
        """The model has answered a request. `api_duration` is in seconds."""

    def api_request_error(
        self, session_id: str, model: str, platform: str, provider: str, api_call_count: int, error: str
    ) -> None:
        """No model answered a request."""

    def pre_auxiliary_call(self, session_id: str, platform: str, aux_task: str, request: JsonDict) -> None:
        """A model is about to be asked beside the conversation: `aux_task` is "compression" for a summary of it, "mcp" for the
        question of an MCP server, "plugin" for a plugin's own. Tools that ask a model are calls, and seen as such."""

    def post_auxiliary_call(
        self, session_id: str, platform: str, aux_task: str, request: JsonDict, response: JsonDict, error: str | None
    ) -> None:
        """It has answered, or `error` says why not."""

    def on_stream_start(self, session_id: str, model: str, platform: str, provider: str, api_call_count: int) -> None:
        """A model is about to answer a request. This hook and the next five, like those of auxiliary calls, only observe: they
        are called a little later, in order, on one thread per plugin. Of more than 1,000 events that wait for a slow plugin,
        the oldest are dropped."""

    def on_stream_delta(
        self, session_id: str, model: str, platform: str, provider: str, api_call_count: int, delta: str, kind: str
    ) -> None:
        """A piece of the answer. `kind` is "text": reasoning is not passed on."""

    def on_stream_end(
        self,
        session_id: str,
        model: str,
        platform: str,
        provider: str,
        api_call_count: int,
        final_text: str,
        finished: bool,
        error: str | None,
    ) -> None:
        """The answer is over. If it is not `finished`, `error` says why."""

    def on_interim_message(
        self,
        session_id: str,
        model: str,
        platform: str,
        provider: str,
        api_call_count: int,
        text: str,
        already_streamed: bool,
    ) -> None:
        """What the model says beside its tool calls, before the final answer."""

    def agent_loop_stopped(self, session_id: str, platform: str, reason: str) -> None:
        """A turn was interrupted while it ran."""

    def pre_command(
        self, surface: str, command: str, alias_used: str, args_raw: str, session_id: str, platform: str
    ) -> None:
        """A slash command is about to run. `surface` is "cli", "gateway" or "acp"; `alias_used` is the name as it was typed."""

    def pre_gateway_dispatch(self, event: Any) -> Mapping[str, Any] | None:
        """Somebody wrote to the gateway, paired or not. `event` has `text` and `source` (`platform`, `chat_id`, `user_id` and
        `chat_type`). The first `{"action": "skip"}`, `{"action": "rewrite", "text": ...}` or `{"action": "allow"}` counts."""

    def subagent_start(self, session_id: str, child_session_id: str, goal: str) -> None:
        """The agent handed a task to a child."""

    def subagent_stop(self, session_id: str, child_session_id: str, goal: str, status: str, summary: str) -> None:
        """A child has ended: "completed", "failed", "cancelled" or "timeout"."""


HOOK_NAMES = tuple(name for name in vars(HookSpecs) if not name.startswith("_"))


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The options of one implementation, as `hookimpl` takes them."""

    policy: bool = False
    timeout: float | None = None
    inline: bool = False
    tryfirst: bool = False
    trylast: bool = False
    specname: str | None = None


@overload
def hookimpl(function: Function) -> Function: ...
@overload
def hookimpl(
    function: None = None,
    *,
    policy: bool = ...,
    timeout: float | None = ...,
    inline: bool = ...,
    tryfirst: bool = ...,
    trylast: bool = ...,
    specname: str | None = ...,
) -> Callable[[Function], Function]: ...
def hookimpl(function: Function | None = None, **options: Any) -> Function | Callable[[Function], Function]:
    """Mark a function as the implementation of a hook.

    `policy`: if it fails, the call is blocked. `timeout`: its own deadline in seconds instead of the configured one.
    `inline`: it is trusted to return immediately, and runs in the caller's thread without a deadline. `tryfirst` and `trylast`
    put it before or after the others; `specname` is the hook, if the function has another name.
    """

    def mark(implementation: Function) -> Function:
        implementation.handrail_hook = HookOptions(**options)  # type: ignore[attr-defined]
        return implementation

    return mark if function is None else mark(function)


def marked_hooks(target: Any, *, named: bool = False) -> Iterator[tuple[str, Callable[..., Any], HookOptions]]:
    """The functions of an object that are marked; with `named` also those that carry a hook's name."""
    for name in dir(target):
        if isinstance(inspect.getattr_static(target, name, None), property):
            continue  # reading it runs code
        try:
            function = getattr(target, name, None)
        except TypeError:  # Python 3.11.2 cannot read the slot for weak references of a dataclass
            continue
        options = getattr(function, "handrail_hook", None)
        if callable(function) and (options is not None or (named and name in HOOK_NAMES)):
            options = options or HookOptions()
            yield options.specname or name, function, options
