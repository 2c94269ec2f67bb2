"""The tool `image_generate`: make an image from a description."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="image_generate",
    toolset="image_gen",
    schema={
        "description": "Make an image from a description and save it.",
        "parameters": {
            "type": "object",
            "properties": {
                "prompt": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What the image shows, and in which style.",
                },
                "aspect_ratio": {"type": "string", "enum": ["square", "landscape", "portrait"], "default": "square"},
                "output_path": {
                    "type": "string",
                    "description": "Where to save it; a new .png in the working directory.",
                },
            },
            "required": ["prompt"],
        },
    },
    handler="handrail.tools.media.image_generation:image_generate",
    check_fn="handrail.media.requirements:check_image_generation",
    is_async=True,
    emoji="🎨",
    timeout=600,
    resources="handrail.tools.media.image_generation:resources",
    actions="handrail.tools.media.image_generation:actions",
    toolset_description="make images",
    example={
        "prompt": "A brass handrail in the morning sun, as a woodcut",
        "aspect_ratio": "landscape",
        "output_path": "rail.png",
    },
)
