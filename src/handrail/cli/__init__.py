"""The command line: `handrail`, also `python -m handrail`. One file in `commands/` is one command."""

import sys

from .. import __version__
from ..base.own_process import forget_start_folder, hide_process


def main() -> None:
    """Run the command line of this process."""
    if sys.argv[1:] == ["--version"]:  # the answer is here already; building the commands would cost ten times as much
        try:
            sys.stdout.write(f"handrail {__version__}\n")
            sys.stdout.flush()
            return
        except OSError as error:
            from .output import give_up  # imports more than printing a version needs

            sys.exit(give_up(sys.stdout, error))
        except AttributeError:  # there is none; the usual way says so
            pass
    # First of all: nothing is imported from where this was started, and nobody reads our keys meanwhile.
    forget_start_folder()
    hide_process()
    try:
        from .app import run

        run(sys.argv[1:])
    except KeyboardInterrupt:  # before a command began, or a second one while it ended
        sys.exit(130)
