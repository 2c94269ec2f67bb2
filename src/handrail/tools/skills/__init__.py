"""Skills: folders of instructions in the open SKILL.md format, which a model reads when a task calls for them."""
