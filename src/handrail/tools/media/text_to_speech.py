"""The tool `text_to_speech`: turn a text into a sound file."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="text_to_speech",
    toolset="tts",
    schema=tool_schema(
        "Turn a text into speech and save it as a sound file.",
        ("text",),
        text=text("What is to be said."),
        output_path=text("Where to save it; a new .wav in the working directory."),
    ),
    handler="handrail.tools.media.calls:text_to_speech",
    check_fn="handrail.media:check_speech",
    is_async=True,
    emoji="🔊",
    timeout=300,
    resources="handrail.tools.media.calls:file_resources",
    actions="handrail.tools.media.calls:file_actions",
    toolset_description="turn text into speech",
    example={"text": "The build is green.", "output_path": "news.wav"},
)
