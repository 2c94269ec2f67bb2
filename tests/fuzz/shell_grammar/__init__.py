"""Our parser of bash against two others: shfmt's trees, and what bash itself prints of what it has read.

`python -m tests.fuzz.shell_grammar --mutations 1000000` runs it at length; the tests run a bounded number.
"""
