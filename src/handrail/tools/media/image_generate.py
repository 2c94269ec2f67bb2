"""The tool `image_generate`: make an image."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="image_generate",
    toolset="image_gen",
    schema=tool_schema(
        "Make an image from a description and save it.",
        ("prompt",),
        prompt=text("What the image shows, and in which style.", minLength=1),
        aspect_ratio=text("Its shape.", enum=["square", "landscape", "portrait"], default="square"),
        output_path=text("Where to save it; a new .png in the working directory."),
    ),
    handler="handrail.tools.media.calls:image_generate",
    check_fn="handrail.media:check_image_generation",
    is_async=True,
    emoji="🎨",
    timeout=600,
    resources="handrail.tools.media.calls:file_resources",
    actions="handrail.tools.media.calls:file_actions",
    toolset_description="make images",
    example={
        "prompt": "A brass handrail in the morning sun, as a woodcut",
        "aspect_ratio": "landscape",
        "output_path": "rail.png",
    },
)
