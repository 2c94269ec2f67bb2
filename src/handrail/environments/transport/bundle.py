"""The shell host as text, to be sent to a Python without a Handrail installation."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from .. import shell_host

# In the order of their imports. A local shell does not need `frame_relay` and its imports, and only a local one is protected.
_COMMON = (
    "proc",
    "wire",
    "events",
    "bash_template",
    "syscall_filter",
    "state",
    "late_output",
    "leftovers",
    "bash",
    "input_wait",
    "job_folder",
    "jobs",
    "child",
    "job_supervisor",
    "shell_supervisor",
    "fork_server",
    "call_page",
    "journal_log",
    "stash",
    "journal",
    "syscall_names",
    "held_calls",
    "outside_writes",
    "deletion_limit",
    "held_connects",
    "effect_watcher",
    "effect_server",
)
LOCAL = (*_COMMON, "mounts", "privileges", "landlock", "protection", "main")
REMOTE = (
    *_COMMON,
    "connection",
    "command_run",
    "live_shell",
    "file_operations",
    "file_journal",
    "operations",
    "messages",
    "journal_undo",
    "journal_conflicts",
    "journal_expiry",
    "path_history",
    "call_effects",
    "journal_recovery",
    "frame_relay",
    "main",
)

# The first bytes of the shell host; the output of start-up files may precede them.
READY = b"\0handrail\0"

# Prints READY, reads a length and a bundle from stdin, and makes modules of it. Old Pythons must be able to parse this much, and
# it must fit into a line of a terminal, which is then switched to raw mode.
BOOT = """
import os, sys
if sys.version_info < (3, 8):
    sys.exit('handrail: python3 is %d.%d here, and 3.8 or newer is needed' % sys.version_info[:2])
def take(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit('handrail: the connection ended early')
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

# -I and -S: no site packages are loaded, and no environment variable can change what runs.
PYTHON_ARGUMENTS = ("-I", "-S", "-c", BOOT)


def shell_words(words: Sequence[str]) -> str:
    """The words for any shell to run: some shells do not allow line breaks in quotes."""
    return " ".join(
        shlex.quote(f"exec(bytes.fromhex('{word.encode().hex()}'))" if "\n" in word else word) for word in words
    )


def bundle(**arguments: Any) -> bytes:
    """What `BOOT` reads: the modules, and the arguments of `shell_host.main.main`."""
    modules = LOCAL if arguments["role"] == "fork_server" else REMOTE
    content = json.dumps({"modules": [[name, _source(name)] for name in modules], "arguments": arguments}).encode()
    return b"%09d" % len(content) + content


@cache
def _source(name: str) -> str:
    return (files(shell_host) / f"{name}.py").read_text(encoding="utf-8")
