"""The tool `execute_code`: a model's Python calls the other tools as functions.

`bundle` is sent to a Python in the task's environment, which runs `script_host`; `channel` connects to it, `script_requests`
serves its calls, and `script_run` runs a call of the tool.
"""
