"""Print a script that lets your shell complete what you type.

It completes commands, tools and their arguments, toolsets, settings and sessions.

Nothing is installed: you decide where the script goes.

Examples:
  eval "$(handrail completion bash)"    in ~/.bashrc
  eval "$(handrail completion zsh)"     in ~/.zshrc
  handrail completion fish > ~/.config/fish/completions/handrail.fish
"""

from pathlib import Path
from typing import Annotated, Literal

from ..options import argument
from ..output import emit


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], argument("SHELL", "bash, zsh or fish.")]) -> None:
    emit(Path(__file__).parents[1].joinpath(f"completion.{shell}").read_text("utf-8"), end="")
