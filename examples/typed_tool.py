"""A typed function becomes a tool: the schema comes from its signature and docstring."""

import json

from handrail import registry
from handrail.model_tools import handle_function_call


@registry.tool(toolset="games", emoji="🎲", read_only=True)
def count_words(text: str, longest: int | None = None) -> dict[str, int]:
    """Count how often each word stands in a text.

    Args:
        text: The text.
        longest: Leave out words longer than this.
    """
    words = [word for word in text.lower().split() if longest is None or len(word) <= longest]
    return {word: words.count(word) for word in sorted(set(words))}


print(json.dumps(registry.get_schema("count_words"), indent=1))
print(handle_function_call("count_words", '{"text": "to be or not to be", "longest": "2"}'))
