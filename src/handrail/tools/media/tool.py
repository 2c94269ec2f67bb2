"""The tools that ask models beside the agent's own: for images, speech, a look at a picture, or a merged answer."""

from ...core.builtin import family, registry, text

_CALLS = "handrail.tools.media.calls"
registry.register(
    **family("image_gen", _CALLS, is_async=True)(
        "image_generate",
        "Make an image from a description and save it.",
        ("prompt",),
        prompt=text("What the image shows, and in which style.", minLength=1),
        aspect_ratio=text("Its shape.", enum=["square", "landscape", "portrait"], default="square"),
        output_path=text("Where to save it; a new .png in the working directory."),
    ),
    check_fn="handrail.media:check_image_generation",
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
registry.register(
    **family("moa", _CALLS, is_async=True)(
        "mixture_of_agents",
        "Put a hard question to several models at once and get one merged answer. Slow and costly: for what one model alone "
        "gets wrong.",
        ("user_prompt",),
        user_prompt=text("The question, with all that is needed to answer it: they see nothing else.", minLength=1),
    ),
    check_fn="handrail.media:check_mixture",
    emoji="🧠",
    timeout=900,
    read_only=True,
    toolset_description="ask several models",
    example={"user_prompt": "Which of two sorted lists has the larger median? Give an algorithm and prove its bound."},
)
registry.register(
    **family("tts", _CALLS, is_async=True)(
        "text_to_speech",
        "Turn a text into speech and save it as a sound file.",
        ("text",),
        text=text("What is to be said."),
        output_path=text("Where to save it; a new .wav in the working directory."),
    ),
    check_fn="handrail.media:check_speech",
    emoji="🔊",
    timeout=300,
    resources="handrail.tools.media.calls:file_resources",
    actions="handrail.tools.media.calls:file_actions",
    toolset_description="turn text into speech",
    example={"text": "The build is green.", "output_path": "news.wav"},
)
registry.register(
    **family("vision", _CALLS, is_async=True)(
        "vision_analyze",
        "Look at an image and answer a question about it.",
        ("image_url",),
        image_url=text("A path, an http(s) URL, or a data: URL."),
        question=text("What to find out. Without it: describe the image."),
    ),
    check_fn="handrail.media:check_vision",
    emoji="👁️",
    timeout=300,
    read_only=True,
    resources="handrail.tools.media.calls:resources",
    toolset_description="look at images",
    example={"image_url": "plan.png", "question": "How many stairs does the plan show?"},
)
