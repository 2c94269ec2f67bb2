"""The shell host, to be sent to a Python without a Handrail installation: as text, or compiled for one that is like ours."""

import base64
import json
import marshal
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from importlib.resources import files
from importlib.util import MAGIC_NUMBER
from typing import Any, cast

from .. import shell_host

# In the order of their imports; the last one has the function `main`.
_SHELL = """proc wire bash_template syscall_filter leftovers jobs bash job_supervisor shell_supervisor fork_server journal_log
    journal syscall_names held_calls""".split()
_WATCHER = "outside_writes deletion_limit held_connects effect_takeover effect_watcher effect_server".split()
_PROTECTION = ("mounts", "landlock", "protection")
_RELAY = "work_tree connection command_run live_shell operations messages".split()
_EFFECTS = "journal_expiry journal_undo journal_conflicts call_effects".split()
BY_ROLE = {
    "fork_server": (*_SHELL, *_WATCHER, *_PROTECTION, "main"),
    "remote": (*_SHELL, *_WATCHER, *_PROTECTION, *_RELAY, *_EFFECTS, "frame_relay", "main"),
    "sandbox_server": (*_SHELL, *_PROTECTION, *_RELAY, "frame_relay", "sandbox_server"),
}

# The first bytes of the shell host; the output of start-up files may precede them. A word that says which compiled code it can
# run follows.
READY = b"\0handrail\0"
COMPILED_FOR = MAGIC_NUMBER.hex().encode()
LOADED = b"loaded".ljust(len(COMPILED_FOR))

_HEAD = """
import gc, os, sys
gc.disable()
if sys.version_info < (3, 8):
    sys.exit('handrail: python3 is %d.%d here, and 3.8 or newer is needed' % sys.version_info[:2])
def take(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit('handrail: the connection ended early')
        b += c
    return b
magic = sys.modules['_frozen_importlib_external'].MAGIC_NUMBER
"""
_LOAD = """
Module = type(sys)
package = sys.modules['NAME'] = Module('NAME')
package.__path__ = []
for name, code in modules:
    module = sys.modules['NAME.' + name] = Module('NAME.' + name)
    module.__package__ = 'NAME'
    setattr(package, name, module)
    exec(code, module.__dict__)
gc.freeze()  # forks share these pages
gc.enable()
module.main(bundle['arguments'])
"""


def boot(package: str, read: str) -> str:
    """A program that makes a package out of what comes on its stdin, and calls the `main` of its last module. `read` sets the
    `bundle`, which has its `arguments`, and the `modules`, each with its code. Old Pythons must be able to parse this much, and
    it must fit into a line of a terminal."""
    return _HEAD + read.lstrip() + _LOAD.lstrip().replace("NAME", package)


# Prints READY and that word, in a terminal after switching that to raw mode, and reads a length and a bundle.
BOOT = boot(
    "handrail_shell_host",
    """
if os.isatty(0):
    import tty
    tty.setraw(0)
os.write(1, b'\\0handrail\\0' + magic.hex().encode())
import binascii, json, marshal
bundle = json.loads(take(int(take(9))))
def code_of(name, text):
    if bundle['compiled']: return marshal.loads(binascii.a2b_base64(text))
    return compile(text, '<handrail %s>' % name, 'exec')
modules = ((name, code_of(name, text)) for name, text in bundle['modules'])
""",
)

# -I and -S: no site packages are loaded, and no environment variable can change what runs.
PYTHON_ARGUMENTS = ("-I", "-S", "-c", BOOT)


def shell_words(words: Sequence[str]) -> str:
    """The words for any shell to run: some shells do not allow line breaks in quotes."""
    return shlex.join(f"exec(bytes.fromhex('{word.encode().hex()}'))" if "\n" in word else word for word in words)


def bundle(*, compiled: bool, is_loaded: bool, **arguments: Any) -> bytes:
    """What `BOOT` reads: the modules, and the arguments of `shell_host.main.main`. `compiled` is for a Python that runs our code
    without compiling it first, which is most of the work of a start; one that `is_loaded` has the modules."""
    names = () if is_loaded else BY_ROLE[arguments["role"]]
    modules = [[name, _compiled(name) if compiled else _source(name)] for name in names]
    content = json.dumps({"modules": modules, "compiled": compiled, "arguments": arguments}).encode()
    return b"%09d" % len(content) + content


@cache
def _source(name: str) -> str:
    return (files(shell_host) / f"{name}.py").read_text(encoding="utf-8")


@cache
def _compiled(name: str) -> str:
    """As it was compiled when it was installed, or first imported."""
    full_name = f"{shell_host.__name__}.{name}"
    spec = PathFinder.find_spec(full_name, shell_host.__path__)
    assert spec is not None
    code = cast("InspectLoader", spec.loader).get_code(full_name)
    return base64.b64encode(marshal.dumps(code)).decode()
