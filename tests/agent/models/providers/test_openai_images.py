"""Images in results reach providers whose tool messages are text alone."""

from __future__ import annotations

from typing import Any

from handrail.agent.models.providers.openai import images_apart

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def _result(name: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "name": name, "content": content}


def test_they_follow_the_last_result_of_an_answer() -> None:
    ask, answer = {"role": "user", "content": "look"}, {"role": "assistant", "content": "", "tool_calls": []}
    seen = _result("vision_analyze", [{"type": "text", "text": "a chart"}, IMAGE])
    other = _result("read_file", "text")
    told = images_apart([ask, answer, seen, other, {"role": "assistant", "content": "I see"}])
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert told[2]["content"] == "a chart"
    assert told[4]["content"] == [{"type": "text", "text": "From the result of vision_analyze:"}, IMAGE]


def test_a_conversation_that_ends_with_an_image_keeps_it() -> None:
    *_, last = images_apart([_result("browser_vision", [IMAGE])])
    assert last["role"] == "user"
    assert IMAGE in last["content"]


def test_a_conversation_without_images_is_the_same() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}, IMAGE]}, _result("todo", "done")]
    assert images_apart(messages) == messages
