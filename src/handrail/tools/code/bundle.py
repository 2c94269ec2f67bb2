"""What is sent to a Python that is to run a script: our side of it, then the script and its tools."""

from __future__ import annotations

import shlex
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...types import JsonDict

_MODULES = ("script", "supervisor")
# Reads a length and a bundle from its standard input, and makes modules of it. The bundle is written as Python writes
# values: reading JSON would begin with loading for as long as Python itself takes to start.
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
package = sys.modules['handrail_inside'] = Module('handrail_inside')
package.__path__ = []
for name, text in bundle['modules']:
    module = sys.modules['handrail_inside.' + name] = Module('handrail_inside.' + name)
    module.__package__ = 'handrail_inside'
    exec(compile(text, 'handrail_inside/' + name, 'exec'), module.__dict__)
module.main(bundle['hello'])
"""


def command(python: str) -> str:
    """What the shell runs."""
    return f"exec {shlex.quote(python)} -c {shlex.quote(_BOOT)}"


def first_words(hello: JsonDict) -> bytes:
    """What it then reads."""
    content = ascii({"modules": _modules(), "hello": hello}).encode()
    return b"%09d" % len(content) + content


@cache
def _modules() -> list[tuple[str, str]]:
    here = files(__package__) / "inside"
    return [(name, (here / f"{name}.py").read_text("utf-8")) for name in _MODULES]
