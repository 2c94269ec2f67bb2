"""The far side as text: what is sent to a Python that has nothing of ours installed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from .. import shell_host

# In the order of their imports. `frame_relay` and what only it needs come last, and stay here when the shell is local.
LOCAL = (
    "proc",
    "wire",
    "events",
    "bash_template",
    "state",
    "late_output",
    "leftovers",
    "bash",
    "input_wait",
    "job_log",
    "job_status",
    "child",
    "job_supervisor",
    "shell_supervisor",
    "fork_server",
    "main",
)
REMOTE = (
    *LOCAL[:-1],
    "connection",
    "command_run",
    "live_shell",
    "jobs",
    "file_operations",
    "operations",
    "messages",
    "frame_relay",
    "main",
)

# The first word of ours; before it may come what start-up files print.
READY = b"\0handrail\0"

# Says the word, reads a length and a bundle from stdin, and makes modules of it. Also old Pythons must be able to read this
# much, and it must fit into the line of a terminal, which keeps its hands off the bytes from here on.
BOOT = """
import os, sys
if sys.version_info < (3, 8):
    sys.exit('handrail: python3 is %d.%d here, and 3.8 or newer is needed' % sys.version_info[:2])
def take(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit('handrail: the connection ended before all had come')
        b += c
    return b
if os.isatty(0):
    import tty
    tty.setraw(0)
os.write(1, b'\\0handrail\\0')
import json, types
bundle = json.loads(take(int(take(9))))
package = sys.modules['handrail_shell_host'] = types.ModuleType('handrail_shell_host')
package.__path__ = []
for name, text in bundle['modules']:
    module = types.ModuleType('handrail_shell_host.' + name)
    module.__package__ = 'handrail_shell_host'
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(text, '<handrail %s>' % name, 'exec'), module.__dict__)
package.main.main(bundle['arguments'])
"""

# -I and -S: nothing of the place's own Python set-up is loaded, and nothing in its environment can change what runs.
PYTHON_ARGUMENTS = ("-I", "-S", "-c", BOOT)


def shell_words(words: Sequence[str]) -> str:
    """What a shell is given to run them, whichever it is: some know no line breaks in quotes."""
    return " ".join(
        shlex.quote(f"exec(bytes.fromhex('{word.encode().hex()}'))" if "\n" in word else word) for word in words
    )


def bundle(**arguments: Any) -> bytes:
    """What `BOOT` reads, with the arguments of `shell_host.main.main`."""
    modules = LOCAL if arguments["role"] == "fork_server" else REMOTE
    content = json.dumps({"modules": [[name, _source(name)] for name in modules], "arguments": arguments}).encode()
    return b"%09d" % len(content) + content


@cache
def _source(name: str) -> str:
    return (files(shell_host) / f"{name}.py").read_text(encoding="utf-8")
