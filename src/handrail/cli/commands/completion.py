"""Print a script that lets your shell complete what you type.

It completes commands, tools and their arguments, toolsets, settings and sessions.

Nothing is installed: you decide where the script goes.

\b
Examples:
  eval "$(handrail completion bash)"    in ~/.bashrc
  eval "$(handrail completion zsh)"     in ~/.zshrc
  handrail completion fish > ~/.config/fish/completions/handrail.fish
"""

from __future__ import annotations

import os
from typing import Annotated, Literal

from ..app import COMPLETION_VARIABLE, build
from ..options import argument
from ..output import emit

# As Typer's own, but that no space follows `path=`.
_BASH = f"""\
_handrail_completion() {{
    local IFS=$'\\n'
    COMPREPLY=( $(env COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD=$COMP_CWORD {COMPLETION_VARIABLE}=complete_bash $1) )
    [[ "${{COMPREPLY[*]}}" != *= ]] || compopt -o nospace 2>/dev/null
}}
complete -o default -F _handrail_completion handrail"""
_ZSH = f"""\
#compdef handrail
_handrail_completion() {{
    local line; local -a found begun
    for line in "${{(@f)$(env _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" _TYPER_COMPLETE_FISH_ACTION=get-args \\
            {COMPLETION_VARIABLE}=complete_fish handrail)}}"; do
        line=${{${{line//:/\\\\:}}/$'\\t'/:}}
        if [[ ${{line%%:*}} == *= ]]; then begun+=("$line"); elif [[ -n $line ]]; then found+=("$line"); fi
    done
    if (( $#found + $#begun )); then _describe handrail found -- begun -S ''; else _files; fi
}}
compdef _handrail_completion handrail"""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("SHELL", "bash, zsh or fish.")],
) -> None:
    if shell != "fish":
        emit(_BASH if shell == "bash" else _ZSH)
        return
    os.environ[COMPLETION_VARIABLE] = "source_fish"  # Typer writes the script when it is asked as a shell would ask
    build()([], prog_name="handrail")
