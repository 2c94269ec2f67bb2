"""The tool `vision_analyze`: ask a model about an image."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="vision_analyze",
    toolset="vision",
    schema=tool_schema(
        "Look at an image and answer a question about it.",
        ("image_url",),
        image_url=text("A path, an http(s) URL, or a data: URL."),
        question=text("What to find out. Without it: describe the image."),
    ),
    handler="handrail.tools.media.calls:vision_analyze",
    check_fn="handrail.media:check_vision",
    is_async=True,
    emoji="👁️",
    timeout=300,
    read_only=True,
    resources="handrail.tools.media.calls:resources",
    toolset_description="look at images",
    example={"image_url": "plan.png", "question": "How many stairs does the plan show?"},
)
