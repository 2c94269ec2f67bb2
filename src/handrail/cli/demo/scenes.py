"""What the scripted model and user do, scene by scene. A scene is a function; its place in `SCENES` is when it plays."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...approval.approvers.prompt import question
from ...protocols import ApprovalRequest, Decision
from ...testing import ModelReply, Reply, call
from ..output import colours, emit

TASK = "Customers say that some totals are wrong. Find out why, and fix it."


@dataclass(frozen=True, slots=True)
class Scene:
    """Replies that belong together. `look` says what there is to see."""

    title: str
    look: str
    replies: list[Reply]
    on_slow_disk: bool = False
    notice_before: int | None = None  # the reply before which the model gets notices of background processes
    needs: str = ""  # a package without which it cannot be played


def a_plan() -> Scene:
    todos = [
        {"id": "look", "content": "Read the project", "status": "in_progress"},
        {"id": "find", "content": "Find the wrong totals"},
        {"id": "fix", "content": "Fix the bug and check again"},
    ]
    return Scene(
        "A plan",
        "The list belongs to the agent; the tool only reaches it.",
        [ModelReply("I make a list first.", [call("todo", todos=todos)])],
    )


def reading_together() -> Scene:
    paths = ("README.md", "shop/prices.py", "shop/orders.py")
    return Scene(
        "Reads run together",
        "Each read takes 150 ms here. Nothing is written, so none waits for another.",
        [ModelReply("I read what there is.", [call("read_file", path=path) for path in paths])],
        on_slow_disk=True,
    )


def a_long_result() -> Scene:
    def grep(messages: Messages, _: Messages) -> ModelReply:
        stored = last_result(messages)["stored"]["output"]["id"]
        calls = [
            call("read_result", id=stored, pattern="WRONG", limit=4),
            call("read_result", id=stored, offset=4000),
        ]
        return ModelReply("Too long to read. I look for what is wrong in it, and at its end.", calls)

    return Scene(
        "A long result is kept whole",
        "The model gets head, tail and an id; nothing runs again to see the rest.",
        [ModelReply("I run the check.", [call("run_check")]), grep],
    )


def an_unknown_tool() -> Scene:
    return Scene(
        "A tool that does not exist",
        "The answer is an error with a type, and the name that was probably meant.",
        [
            ModelReply("All wrong ones have 10 pieces. Where is that decided?", [call("serch_files", pattern="DISC")]),
            ModelReply("Again, spelled right.", [call("search_files", pattern="DISCOUNT_FROM")]),
        ],
    )


def a_bad_argument() -> Scene:
    return Scene(
        "An argument that does not fit",
        'The first is refused before anything runs; in the second, "4" becomes 4.',
        [
            ModelReply("I look at that place.", [call("read_file", path="shop/orders.py", offset="nine")]),
            ModelReply("As a number, then.", [call("read_file", path="shop/orders.py", offset=9, limit="4")]),
        ],
    )


def a_patch() -> Scene:
    change = call(
        "patch", path="shop/orders.py", old_string="pieces > DISCOUNT_FROM", new_string="pieces >= DISCOUNT_FROM"
    )
    return Scene(
        "A change, and its diff",
        "The check afterwards waits for the change, though both come in one message.",
        [
            ModelReply(
                "“From 10 on” includes 10: it must be >=. I change it and check.",
                [change, call("run_check", summary=True)],
            )
        ],
    )


def a_shell_that_stays() -> Scene:
    return Scene(
        "A shell that stays",
        "Directory, variables and functions are those of the call before, also when a command ends the shell.",
        [
            ModelReply(
                "How much code is it?",
                [call("terminal", command="cd shop; KIND=py; count() { cat *.$KIND | wc -l; }; exit 3")],
            ),
            ModelReply("Was that the end of it?", [call("terminal", command='echo "in ${PWD##*/}: $(count) lines"')]),
        ],
    )


def a_server_in_the_background() -> Scene:
    serve = "python3 -u -m http.server --bind 127.0.0.1 0"

    def fetch(messages: Messages, _: Messages) -> ModelReply:
        port = str(messages[-1]["content"]).partition(" port ")[2].split()[0]
        script = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/prices.py').readline())"
        return ModelReply("It is up. I try it.", [call("terminal", command=f'python3 -c "{script}"')])

    return Scene(
        "A server in the background",
        "The call returns immediately; the model is notified when the server prints that it listens.",
        [
            ModelReply(
                "I serve the folder, to look at it from outside.",
                [call("terminal", command=serve, background=True, watch_patterns=["Serving HTTP"])],
            ),
            fetch,
            _to_process("That works. I end it.", action="kill"),
        ],
        notice_before=1,
    )


def a_program_that_asks() -> Scene:
    order = "from shop.orders import total; total('cheese', 10)"
    return Scene(
        "A program that asks",
        "A terminal of its own: the runtime sees that the program waits, and shows its screen.",
        [
            ModelReply("One order by hand.", [call("terminal", command="cd ..; python3 -q", pty=True)]),
            _to_process("Ten pieces of cheese:", action="submit", data=order),
            _to_process("89.10, as it should be. I leave with Ctrl-D.", action="write", keys=["C-d"]),
        ],
    )


def a_tool_of_an_mcp_server() -> Scene:
    return Scene(
        "A tool of an MCP server",
        "A program of its own, started by the first call. Its tools keep to the same rules: see the second.",
        [
            ModelReply("What does it cost to send such an order?", [call("mcp__carrier__quote", kg=3)]),
            ModelReply("And a heavy one?", [call("mcp__carrier__quote", kg="heavy")]),
        ],
        needs="mcp",
    )


def an_unavailable_tool() -> Scene:
    return Scene(
        "A tool that cannot be used now",
        "Not in the model's list; called all the same, it says why, and what helps.",
        [ModelReply("All totals are right. I put it on the server.", [call("deploy")])],
    )


def the_end() -> Scene:
    done = [{"id": name, "status": "completed"} for name in ("look", "find", "fix")]
    open_item = {"id": "deploy", "content": "Deploy (a person: SHOP_TOKEN is missing)", "status": "pending"}
    return Scene(
        "The end",
        "A reply without calls ends the turn.",
        [
            ModelReply(
                "That is for a person. I bring the list up to date.",
                [call("todo", todos=[*done, open_item], merge=True)],
            ),
            ModelReply("The discount began at 11 pieces instead of 10. It is fixed, and all 4000 orders are right."),
        ],
    )


Messages = Sequence[Mapping[str, Any]]


def last_result(messages: Messages) -> dict[str, Any]:
    """The last result."""
    result: dict[str, Any] = json.loads(messages[-1]["content"])
    return result


def _to_process(text: str, **arguments: Any) -> Reply:
    """A reply that does something with the latest process."""

    def reply(messages: Messages, _: Messages) -> ModelReply:
        results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
        session_id = next(result["session_id"] for result in reversed(results) if "session_id" in result)
        return ModelReply(text, [call("process", **arguments, session_id=session_id)])

    return reply


_MAX_WIDTH = 100
# The one command that is approved. The tool runs no other: a demonstration must not depend on the gate alone.
APPROVED = "rm -rf build"


def a_question() -> Scene:
    return Scene(
        "You are asked",
        "Deleting needs approval. You see what would run; `shop` is the program itself.",
        [
            ModelReply("Something old may be left. I clean up.", [call("shell", command="rm -rf build shop")]),
            ModelReply("Only what can be made again, then.", [call("shell", command=APPROVED)]),
        ],
    )


def what_nobody_can_allow() -> Scene:
    return Scene(
        "What nobody can allow",
        "No question, no setting and no --yolo lets this run.",
        [ModelReply("Shall I make more room?", [call("shell", command="cd / && rm -rf ./*")])],
    )


class ScriptedUser:
    """Answers from a list, at the prompt that you would get."""

    name = "person"

    def __init__(self, answers: list[Decision]) -> None:
        self._answers = answers

    def decide(self, request: ApprovalRequest) -> Decision:
        answer = self._answers.pop(0)
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 1
        emit(question(request._replace(id=""), width=width, painted=colours(sys.stdout)), end="")
        emit(f"  {', '.join(decision.value for decision in request.offers)}? {answer.value}")
        return answer


# In the order in which they play.
SCENES: tuple[Callable[[], Scene], ...] = (
    a_plan,
    reading_together,
    a_long_result,
    an_unknown_tool,
    a_bad_argument,
    a_patch,
    a_shell_that_stays,
    a_server_in_the_background,
    a_program_that_asks,
    a_tool_of_an_mcp_server,
    a_question,
    what_nobody_can_allow,
    an_unavailable_tool,
    the_end,
)
