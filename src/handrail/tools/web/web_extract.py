"""The tool `web_extract`: read pages and documents."""

from ...core.availability import missing, usable_unless
from ...core.builtin import family, integer, registry, texts

_tool = family("web", "handrail.tools.web.calls", is_async=True, read_only=True)

registry.register(
    **_tool(
        "web_extract",
        "Read web pages, PDFs and office files as Markdown, several at once. Only public addresses. For pages that need "
        "clicks or scripts use `browser_navigate`.",
        ("urls",),
        urls=texts("The addresses, in full.", min_chars=1, minItems=1, maxItems=20),
        max_chars=integer("Characters of each page at most (20000).", minimum=100, maximum=1000000),
    ),
    check_fn=lambda: usable_unless(missing("web", "httpx", "trafilatura")),
    emoji="📄",
    timeout=180,
    example={"urls": ["https://rails.example/handrails", "https://rails.example/manual.pdf"], "max_chars": 5000},
)
