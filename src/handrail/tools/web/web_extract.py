"""The tool `web_extract`: read web pages and documents."""

from ...core.availability import missing, usable_unless
from ...core.builtin import integer, registry, tool_schema

registry.register(
    name="web_extract",
    toolset="web",
    schema=tool_schema(
        "Read web pages, PDFs and office files as Markdown, several at once. Only public addresses. For pages that need "
        "clicks or scripts use `browser_navigate`.",
        ("urls",),
        urls={
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": 20,
            "description": "The addresses, in full.",
        },
        max_chars=integer("Characters of each page at most (20000).", minimum=100, maximum=1000000),
    ),
    handler="handrail.tools.web.calls:web_extract",
    is_async=True,
    check_fn=lambda: usable_unless(missing("web", "httpx", "trafilatura")),
    emoji="📄",
    timeout=180,
    read_only=True,
    example={"urls": ["https://rails.example/handrails", "https://rails.example/manual.pdf"], "max_chars": 5000},
)
