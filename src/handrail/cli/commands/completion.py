"""Print a script that lets your shell complete what you type.

It completes commands, tools and their arguments, toolsets, settings and sessions.

Nothing is installed: you decide where the script goes.

\b
Examples:
  eval "$(handrail completion bash)"                            in ~/.bashrc
  eval "$(handrail completion zsh)"                             in ~/.zshrc, after compinit
  handrail completion fish > ~/.config/fish/completions/handrail.fish
"""

from __future__ import annotations

import os
from typing import Annotated, Literal

from ..app import COMPLETION_VARIABLE, build
from ..options import argument


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("SHELL", "bash, zsh or fish.")],
) -> None:
    # Typer writes the script when it is asked as a shell would ask.
    os.environ[COMPLETION_VARIABLE] = f"source_{shell}"
    build()([], prog_name="handrail")
