"""The tool `web_extract`: read web pages and documents."""

from __future__ import annotations

from ...core.availability import missing, usable_unless
from ...core.builtin import registry

registry.register(
    name="web_extract",
    toolset="web",
    schema={
        "description": (
            "Read web pages, PDFs and office files as Markdown, several at once. Only public addresses. For pages that need "
            "clicks or scripts use `browser_navigate`."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "urls": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": 20,
                    "description": "The addresses, in full.",
                },
                "max_chars": {
                    "type": "integer",
                    "minimum": 100,
                    "maximum": 1_000_000,
                    "description": "Characters of each page at most (20000).",
                },
            },
            "required": ["urls"],
        },
    },
    handler="handrail.tools.web.calls:web_extract",
    is_async=True,
    check_fn=lambda: usable_unless(missing("web", "httpx", "trafilatura")),
    emoji="📄",
    timeout=180,
    read_only=True,
    example={"urls": ["https://rails.example/handrails", "https://rails.example/manual.pdf"], "max_chars": 5000},
)
