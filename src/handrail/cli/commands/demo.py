"""`handrail demo`: watch a scripted model use the tools."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter after each scene.")] = False,
) -> None:
    """Watch a scripted model use real tools on a small project.

    No model and no key are needed. It works in a folder of its own, which is gone afterwards, and takes a second.

    \b
    Examples:
      handrail demo
      handrail demo --step
    """
    from ..demo.play import play

    play(step=step and sys.stdin.isatty())
