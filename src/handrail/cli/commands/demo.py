"""Watch a scripted model use real tools on a small project.

No model and no key are needed. It works in a folder of its own, which is gone afterwards, and takes a second.

\b
Examples:
  handrail demo
  handrail demo --step
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import options
from ..demo.play import play

cli = options.new_cli()


@cli.command()
def demo(
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter after each scene.")] = False,
) -> None:
    play(step=step and sys.stdin.isatty())
