"""The tool `text_to_speech`: turn a text into a sound file."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="text_to_speech",
    toolset="tts",
    schema={
        "description": "Turn a text into speech and save it as a sound file.",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What is to be said."},
                "output_path": {
                    "type": "string",
                    "description": "Where to save it; a new .wav in the working directory.",
                },
            },
            "required": ["text"],
        },
    },
    handler="handrail.tools.media.speech:text_to_speech",
    check_fn="handrail.media.requirements:check_speech",
    is_async=True,
    emoji="🔊",
    timeout=300,
    resources="handrail.tools.media.speech:resources",
    actions="handrail.tools.media.speech:actions",
    toolset_description="turn text into speech",
    example={"text": "The build is green.", "output_path": "news.wav"},
)
