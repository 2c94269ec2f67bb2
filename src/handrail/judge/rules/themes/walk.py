"""What the walk through a command finds by itself: what it cannot know, read or follow."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "dynamic.command",
        ASK,
        "which program runs is not known before it runs",
        match=("$X -rf y", "$(cat cmd.txt) now"),
        not_match=("echo $X", "$EDITOR file"),
    ),
    Rule(
        "dynamic.script",
        ASK,
        "the script that runs is not known before it runs",
        match=("cat x | bash", 'eval "$X"'),
        not_match=('eval "$(pyenv init -)"', "bash script.sh"),
    ),
    Rule(
        "parse.error",
        ASK,
        "the command cannot be read",
        match=("echo 'x", "if true; then ls"),
        not_match=("echo x",),
    ),
    Rule(
        "limit.exceeded",
        ASK,
        "the command is too long, too deep or does too much to be judged",
        match=("( " * 200 + "ls" + " )" * 200,),
        not_match=("ls", "( ( ls ) )"),
    ),
    Rule(
        "text.hidden",
        ASK,
        "holds characters that are invisible or change the displayed order",
        match=("ls \u200b # \u202e safe",),
        not_match=("echo '\u2192 \u2190'", "rg '\u00fcn\u00efcode' src"),
    ),
    Rule(
        "env.path",
        ASK,
        "looks for programs in a directory to which anyone can write",
        match=("PATH=/tmp/x:$PATH ls", "export PATH=.:$PATH; ls"),
        not_match=('export PATH="$HOME/.local/bin:$PATH"', "PATH=$PWD/node_modules/.bin:$PATH eslint ."),
    ),
    Rule(
        "code.exec_computed",
        ASK,
        "runs code or a command that it computes",
        match=("python3 -c 'import sys;exec(sys.stdin.read())'",),
        not_match=("python3 -c 'print(1)'",),
    ),
    Rule(
        "code.unreadable",
        ASK,
        "holds code that cannot be read and names something dangerous",
        match=("python3 -c 'import os; os.system('",),
        not_match=("python3 -c 'print(1)'",),
    ),
)
