"""Who may approve: `terminal.TerminalApprover`, with its text in `prompt`, and `smart.SmartApprover`, which asks a model.

Those that need no dialog (which deny, wait for the store, send the request somewhere, or try several) are in `requests`.
"""
