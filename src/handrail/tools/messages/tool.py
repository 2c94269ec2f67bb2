"""The tool `send_message`: write to a configured target."""

from ...core.builtin import family, registry, text, texts
from ...settings.schema import Config
from ...types import JsonDict, Unavailable


def _check(config: Config) -> object:
    if not (targets := config.messages.targets):
        return Unavailable("no target is configured", "add one under messages.targets in config.yaml")
    from ...platforms.table import first_usable  # most users have no target

    return first_usable(targets)


def _fields(config: Config) -> JsonDict:
    """The description with the names of the targets."""
    if not (targets := sorted(config.messages.targets.items())):
        return {}
    named = ", ".join(f"{name} ({settings.get('kind')})" for name, settings in targets)
    return {"description": f"Send a message. Targets: {named}."}


registry.register(
    **family("messaging", "handrail.tools.messages.delivery")(
        "send_message",
        "Send a message to one of the configured targets.",
        ("target", "message"),
        target=text("The target's name."),
        message=text("The text, as the reader is to see it."),
        subject=text("A line above it; the subject of an email."),
        attachments=texts("Paths of files to send along.", maxItems=10),
    ),
    check_fn=_check,
    dynamic_schema_overrides=_fields,
    is_async=True,
    emoji="📨",
    timeout=120,
    resources="handrail.tools.messages.delivery:resources",
    actions="handrail.tools.messages.delivery:actions",
    toolset_description="send messages",
    example={"target": "team", "subject": "Build", "message": "It is green again."},
)
