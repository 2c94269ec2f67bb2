"""The tool `execute_code`: a model's Python calls the other tools as functions. `script_run` runs a call of the tool: a Python
in the task's environment runs `script_host`, `channel` connects to it."""
