"""The chat gateway: users talk with this machine's agents on chat platforms, and answer their questions there.

`gateway` connects the accounts and pairs users; `chat_session` is one chat and its agent, `chat_commands` the slash
commands; `questions` the approval questions; `texts` what the gateway writes; `store` what it keeps.
"""
