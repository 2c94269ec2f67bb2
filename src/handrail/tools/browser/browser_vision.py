"""The tool `browser_vision`: answer a question about what the page looks like."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="browser_vision",
    toolset="browser",
    schema={
        "description": "Take a picture of the page in the browser and answer a question about what it looks like.",
        "parameters": {
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "What to find out."},
                "full_page": {
                    "type": "boolean",
                    "default": False,
                    "description": "All of the page, not only what is seen.",
                },
            },
            "required": ["question"],
        },
    },
    handler="handrail.tools.browser.calls:browser_vision",
    check_fn="handrail.tools.browser.installed_browsers:check_vision",
    is_async=True,
    emoji="🔭",
    timeout=300,
    resources="handrail.tools.browser.task_session:resources",
    example=["browser_navigate", {"question": "Is the button green?"}],
)
