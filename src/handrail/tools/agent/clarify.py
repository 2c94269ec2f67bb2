"""The tool `clarify`: ask the user."""

from collections.abc import Awaitable

from ...core.builtin import registry, text, texts, tool_schema
from ...core.registry import tool_result
from ...errors import ToolFailed
from ...types import JsonDict, ToolContext


def clarify(args: JsonDict, *, context: ToolContext, **_: object) -> str | Awaitable[str]:
    if not (question := args["question"].strip()):
        raise ToolFailed("the question is empty")
    choices = [choice.strip() for choice in args.get("choices", ()) if choice.strip()]
    answer = context.person.ask(question, choices) if context.person is not None else None
    return _result(question, answer) if answer is None or isinstance(answer, str) else _result_later(question, answer)


async def _result_later(question: str, answer: Awaitable[str | None]) -> str:
    return _result(question, await answer)


def _result(question: str, answer: str | None) -> str:
    if answer is None:
        raise ToolFailed(
            "nobody answered. Go on with the most sensible assumption, and say which one you made.",
            question=question,
            answered=False,
        )
    return tool_result(question=question, answer=answer, answered=True)


registry.register(
    name="clarify",
    toolset="clarify",
    schema=tool_schema(
        "Ask the user one question and wait for the answer. For decisions that are theirs; not for what you can find "
        "out yourself.",
        ("question",),
        question=text("The question."),
        choices=texts("Answers to offer; the user may still write another.", maxItems=8),
    ),
    handler=clarify,
    emoji="❓",
    toolset_description="ask the user a question",
    example={"question": "Which colour should the rail have?", "choices": ["green", "brass"]},
)
