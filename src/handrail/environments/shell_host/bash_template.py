r"""The script that bash runs, in one line: wait for a word, run a command, report how it ended.

bash reads it as a single line: it is parsed once, so that no alias set later can affect it, error messages keep saying `line 1`,
and `ps` does not show it. bash needs no descriptor of ours: it can open each channel by its path, `/proc/<supervisor>/fd/<n>`, so
that a command can close or redirect whatever it likes and its children inherit nothing. Those that are as the loop left them
(`__hr_kept`) are used as they are, which after a command with the flag k needs no look.

The channels:

    GO        one byte is the order: C run the command, W run it in its working directory, S and D write the state,
              H let go of OUT, which is kept for the next command
    TEXT      number, flags, stdin, working directory, what to evaluate, and what that may refer to: each terminated by NUL
    OUT       what the command prints
    DONE      `; number code $! pipe-status ;`, the last only if requested
    STATE     reports, `kind head\n\0 variables\0 options\0 functions\0`: R ready (the version, and the options that it has
              by itself, as commands), S and D the state on request (the number of the last command, a blank, the working
              directory; of the options the names of those that are on), E the same when bash exits
    RESTORE   the state to start with
    FAREWELL  what to do on exit
    PAGE      whether to say that the command is over, by a signal to nobody
    MEMO      where bash reads its own output back without forking

Everything runs at top level and not in a function, where `declare` would make locals. Each word that is not part of the
grammar has `command` before it, so that a function of the same name does not matter; one named `command` is detected and
removed. While bash waits, its stdout is OUT if it is kept, else DONE, where the client accepts only what has the form above.
"""

from __future__ import annotations

SNAPSHOT, DUMP, RUN, RUN_ELSEWHERE, CLOSE_OUT = b"S", b"D", b"C", b"W", b"H"
FLAG_TRAP, FLAG_KEEPS = b"t", b"k"
CODE_NO_DIRECTORY = b"cd"

_VARIABLES = "__hr __hr_number __hr_code __hr_pipe __hr_from __hr_memo"
_OPTIONS = "command shopt -p; command set +o; "

# Our own traps are removed first. Functions and aliases come last, as they could shadow the words that restore the rest;
# shopt before functions, which may need extglob to parse. Arguments inside a function are the function's: an earlier state
# has the shell's.
_STATE = (
    "command printf '%s ' \"${__hr_number:-0}\"; command pwd; command printf '\\0'; "
    f"command unset -v {_VARIABLES}; "
    "command trap - EXIT RTMAX; command declare -p; command trap -p; command umask -p; "
    "[[ ${FUNCNAME-} ]] || { command printf 'set --'; (( $# )) && command printf ' %q' \"$@\"; command printf '\\n'; }; "
    # One line instead of a system call for each of eighty options.
    'command printf \'\\0%s:%s\\0\' "$BASHOPTS" "$SHELLOPTS"; '
    "command declare -f; command declare -Fx; command alias -p; command printf '\\0'; "
)

_DUMP = f"command printf '%s' \"$__hr\"; {_STATE}"

# First the user's own EXIT trap of an earlier command. Unlike the loop, this is parsed when it runs, so aliases are off.
_FAREWELL = (
    '\\command eval "${__hr_exit[2]-}" 2>&1\n\\command shopt -u expand_aliases\n'
    f"command unset -v __hr_exit; __hr=E; if [[ /dev/fd/11 -ef @STATE ]]; then {{ {_DUMP} }} >&11 2>&-; "
    f"else {{ {_DUMP} }} >@STATE 2>/dev/null; fi"
)
_TRAPS = (
    'command trap \'\\command mapfile -d "" -t __hr <@FAREWELL; \\command eval "$__hr"\' EXIT; '
    "command trap '\\command exit 124' RTMAX"
)

_WORDS = '\'%s \' \';\' "${__hr_number-}" "${__hr_code#-}" "${!:-0}" "${__hr_pipe[@]}" \';\''
_SAY = f"command printf -v __hr_memo {_WORDS}"

# The effect watcher asks for it: see CallPage.
_OVER = "if [[ -N '@PAGE' ]]; then command kill -0 @NOBODY; fi; "

_FINISH = (
    "if [[ ${__hr_code-} ]]; then "
    f"if [[ ${{__hr_kept-}} && ${{__hr[1]-}} == k ]]; then {_OVER}command printf {_WORDS} >&10; else "
    'if [[ ${__hr_from-} ]]; then command cd -- "$__hr_from" >/dev/null; OLDPWD=${__hr_from[1]-}; __hr_from=; fi; '
    # In posix mode `unset` is found before functions are.
    f"__hr_memo=; {_SAY}; [[ ${{__hr_memo-}} ]] || {{ "
    f"POSIXLY_CORRECT=1; unset -f command; unset POSIXLY_CORRECT; command shopt -s expand_aliases; {_SAY}; }}; "
    f"{_OVER}"
    # OUT is kept for the next command if bash has started nothing that may hold it as well, and may have enough descriptors.
    "if [[ ! ${!-} && /dev/fd/1 -ef @OUT && /dev/fd/10 -ef @DONE && /dev/fd/12 -ef @GO ]] "
    "&& command exec </dev/null && { :; } 13</dev/null; then "
    '__hr_kept=1; command printf %s "$__hr_memo" >&10; '
    # `builtin exec` would undo its redirections again; `command exec` does not.
    "else __hr_kept=; if [[ /dev/fd/10 -ef @DONE ]]; then command exec >&10; else command exec >@DONE; fi; "
    'command printf %s "$__hr_memo"; fi; '
    "if [[ ${__hr[1]-} == t ]]; then command trap -p EXIT >@MEMO; command mapfile -d '' -t __hr_memo <@MEMO; "
    'command eval "__hr_memo=(${__hr_memo-})"; '
    f'[[ ${{__hr_memo[2]-}} == *@FAREWELL* ]] || __hr_exit=("${{__hr_memo[@]}}"); {_TRAPS}; fi; fi; '
    "__hr_code=; fi; "
)
_READ = "if [[ ${__hr_kept-} ]]; then command read -rN1 -u 12 __hr; else command read -rN1 __hr <@GO; fi"

_TAKE = (
    "command mapfile -d '' -t -n 6 __hr <@TEXT || command exit; "
    "__hr_number=${__hr-} __hr_code=-0 __hr_pipe=(); "
    "if [[ ! ${__hr_kept-} || ${__hr[2]-} != /dev/null ]]; then "
    # bash reports a background job that died meanwhile as soon as it can: here, and not in the command's output.
    "[[ ${!-} ]] && command jobs; "
    # After `ulimit -n 5` there are too few descriptors to continue: the next shell, which has more, runs the command.
    'if [[ ${__hr_kept-} ]]; then command exec <"${__hr[2]-}"; else command exec <"${__hr[2]-}" >@OUT; fi '
    "|| { command printf C >@GO; command exit; }; fi; "
)
# The loop's own stderr is /dev/null, so that `set -x` shows the command alone.
_EVAL = 'command eval "${__hr[4]-}" 2>&1; __hr_code=${__hr_pipe:-$?}'
_GO_THERE = (
    '__hr_from=("$PWD" "${OLDPWD-}"); [[ ${__hr[3]}/ == "~/"* ]] && __hr[3]=${HOME-}${__hr[3]:1}; '
    'command cd -- "${__hr[3]}" 2>&1 || __hr_code=cd; '
)

# `break` and `continue` typed as a command act on these loops: either way the inner condition comes next, and finishes.
# bash begins with DONE as its stdout, and with STATE and GO open, but not as its stderr: it may print warnings when it starts.
# The redirections around everything make it keep those as 10, 11 and 12, closed on exec. Nothing has to be opened for writing
# then, which the effect watcher would have to be asked for: that takes half as long again as a short command.
_LOOP = (
    f"{{ {{ command printf 'R%s\\n\\0\\0' \"$BASH_VERSION\"; {_OPTIONS} }} >@STATE; "
    "command . @RESTORE 2>/dev/null; [[ ${PWD-} -ef . ]] || command cd .; command shopt -s expand_aliases; "
    f"{_TRAPS}; command printf '\\0\\0' >@STATE; "
    f"while :; do while {_FINISH} {_READ} || command exit; do case $__hr in "
    "H) if [[ ${__hr_kept-} ]]; then __hr_kept=; command exec >&10; fi;; "
    f"S|D) if [[ /dev/fd/11 -ef @STATE ]]; then {{ {_DUMP} }} >&11; else {{ {_DUMP} }} >@STATE; fi; {_TRAPS};; "
    f"C) {_TAKE}{_EVAL};; W) {_TAKE}{_GO_THERE}if [[ $__hr_code != cd ]]; then {_EVAL}; fi;; esac; done; done; }} "
    ">/dev/null @OPEN>&- @WAITS<&-"
)


def loop(channels: dict[str, str], state: int, go: int) -> str:
    """The script, for channels at these paths. `state` and `go` are descriptors with which bash begins."""
    return _at(_LOOP, {**channels, "OPEN": str(state), "WAITS": str(go)})


def farewell(channels: dict[str, str]) -> str:
    return _at(_FAREWELL, channels)


def job(restore: str, text: str) -> str:
    """The script of a bash that starts with a copy of the shell's state and runs one command."""
    return (
        f"command . {restore} 2>/dev/null; command shopt -s expand_aliases; command mapfile -d '' -t __hr <{text}; "
        'command unset -v __hr_exit; command eval "command unset -v __hr; ${__hr-}"'
    )


def with_pipe_status(text: bytes) -> bytes:
    """The command, which then saves the status of each part of its last pipeline: after `eval` bash has forgotten it."""
    return text + b'\n{ __hr_pipe=("$?" "${PIPESTATUS[@]}"); } 2>/dev/null'


def after_status(codes: tuple[int, ...]) -> bytes:
    """A command that evaluates the last field of TEXT as if a pipeline with these exit codes had just ended."""
    pipeline = b"|".join(b"(command exit %d)" % code for code in codes)
    run = b'command eval "${__hr[5]-}"'
    # A condition, so that `set -e` and ERR traps leave it alone.
    return b"if " + pipeline + b"; then " + run + b"; else " + run + b"; fi"


def with_stderr_in(path: str, text: bytes, refers_to: bytes) -> tuple[bytes, bytes]:
    """The command and what it refers to, with stderr in a file instead of where stdout goes."""
    if not refers_to:
        text, refers_to = b'command eval "${__hr[5]-}"', text
    return b"{ " + text + b"; } 2>>" + path.encode(), refers_to


def _at(text: str, channels: dict[str, str]) -> str:
    for name, path in channels.items():
        text = text.replace("@" + name, path)
    return text
