"""What is sent to a Python that runs a script: our modules, then the script and its tools."""

from __future__ import annotations

import marshal
import shlex
import zlib
from functools import cache
from importlib.resources import files
from importlib.util import MAGIC_NUMBER

from ...types import JsonDict

_MODULES = ("script", "supervisor")
# Reads a length and a bundle from its standard input and makes modules of it. The bundle is a Python literal: importing json
# would take as long as Python itself takes to start. For a Python of the runtime's own version the modules are compiled
# already, which halves the rest.
_BOOT = """
import os, sys
if sys.version_info < (3, 8):
    sys.exit('python3 is %d.%d here, and 3.8 or newer is needed' % sys.version_info[:2])
def take(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit('the connection ended before all had come')
        b += c
    return b
Module = type(sys)
bundle = eval(take(int(take(9))))
try:
    import marshal, zlib
    compiled = bundle['compiled'][sys.modules['_frozen_importlib_external'].MAGIC_NUMBER]
    modules = marshal.loads(zlib.decompress(bytes.fromhex(compiled)))
except (KeyError, ImportError):
    modules = [(name, compile(text, 'handrail_script_host/' + name, 'exec')) for name, text in bundle['modules']]
package = sys.modules['handrail_script_host'] = Module('handrail_script_host')
package.__path__ = []
for name, code in modules:
    module = sys.modules['handrail_script_host.' + name] = Module('handrail_script_host.' + name)
    module.__package__ = 'handrail_script_host'
    exec(code, module.__dict__)
module.main(bundle['hello'])
"""


def command(python: str) -> str:
    """What the shell runs."""
    return f"exec {shlex.quote(python)} -c {shlex.quote(_BOOT)}"


def payload(hello: JsonDict) -> bytes:
    """What it then reads from its standard input."""
    modules, compiled = _modules()
    content = ascii({"modules": modules, "compiled": {MAGIC_NUMBER: compiled}, "hello": hello}).encode()
    return b"%09d" % len(content) + content


@cache
def _modules() -> tuple[list[tuple[str, str]], str]:
    """Our modules as text, and compiled by this Python."""
    here = files(__package__) / "script_host"
    texts = [(name, (here / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    codes = [(name, compile(text, f"handrail_script_host/{name}", "exec", dont_inherit=True)) for name, text in texts]
    return texts, zlib.compress(marshal.dumps(codes)).hex()
