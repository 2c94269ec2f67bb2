"""Decide whether a command may run: judge it as the shell will run it, and ask a person well.

`detect` is the judge (`assess`, `detect_dangerous_command`); `shell/` reads and follows a command without running it,
`rules/` says what is dangerous, `embedded/` judges other languages inside a command.
"""
