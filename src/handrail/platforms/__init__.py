"""Chat platforms and message services, one file each.

A platform is a file here and nothing else. It has one or both of:

- `Target`, a frozen dataclass that fills `base.SendTarget`: an entry of `messages.targets`, for `send_message`;
- `Adapter(Settings)`, which fills `base.ChatAdapter`: an entry of `gateway.accounts`, for the chat gateway.

The rest: `base` (the two protocols, and what platforms share), `table` (configured targets and accounts by name, and
questions to a user at a target).
"""
