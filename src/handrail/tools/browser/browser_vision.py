"""The tool `browser_vision`: answer a question about what the page looks like."""

from ...core.builtin import flag, registry, text, tool_schema

registry.register(
    name="browser_vision",
    toolset="browser",
    schema=tool_schema(
        "Take a picture of the page in the browser and answer a question about what it looks like.",
        ("question",),
        question=text("What to find out."),
        full_page=flag("All of the page, not only what is seen."),
    ),
    handler="handrail.tools.browser.calls:browser_vision",
    check_fn="handrail.tools.browser.installed_browsers:check_vision",
    is_async=True,
    emoji="🔭",
    timeout=300,
    resources="handrail.tools.browser.task_session:resources",
    example=["browser_navigate", {"question": "Is the button green?"}],
)
