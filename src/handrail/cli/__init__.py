"""The command line: `handrail`, also `python -m handrail`. One file in `commands/` is one command."""

from __future__ import annotations

import sys

from .. import __version__


def main() -> None:
    """Run the command line of this process."""
    if sys.argv[1:] == ["--version"]:  # the answer is here already; building the commands would cost ten times as much
        sys.stdout.write(f"handrail {__version__}\n")
        return
    try:
        from .app import run

        run(sys.argv[1:])
    except KeyboardInterrupt:  # before a command began, or a second one while it ended
        sys.exit(130)
