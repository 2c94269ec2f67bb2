"""Ways to write a command so that bash runs the same programs with the same arguments."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from shlex import quote

from handrail.judge.grammar import syntax
from handrail.judge.grammar.lexical import DECLARATIONS
from handrail.judge.grammar.parser import parse

Form = Callable[[str], "str | None"]
_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]{1,40}")


def _encoded(command: str) -> str:
    return base64.b64encode(command.encode()).decode()


def _one_line(command: str, form: str) -> str | None:
    """For forms that read one line, or in which an `echo` might change a backslash."""
    return form if "\n" not in command and "\\" not in command else None


def _python(command: str) -> str:
    return "python3 -c " + quote(f"import os; os.system({command!r})")


WRAPPED: dict[str, Form] = {
    "bash -c": lambda c: f"bash -c {quote(c)}",
    "sh -ec with a name": lambda c: f"sh -c {quote(c)} name",
    "bash -o option -c": lambda c: f"bash -o pipefail -c {quote(c)}",
    "three shells": lambda c: f"sh -c {quote('sh -c ' + quote('sh -c ' + quote(c)))}",
    "eval": lambda c: f"eval {quote(c)}",
    "builtin eval": lambda c: f"builtin eval {quote(c)}",
    "command eval": lambda c: f"command eval {quote(c)}",
    "eval of a variable": lambda c: f's={quote(c)}; eval "$s"',
    "variable for a shell": lambda c: f's={quote(c)}; bash -c "$s"',
    "exported variable": lambda c: f"export s={quote(c)}; bash -c 'eval \"$s\"'",
    "variable before a shell": lambda c: f"s={quote(c)} bash -c 'eval \"$s\"'",
    "positional parameter": lambda c: f"bash -c 'eval \"$1\"' x {quote(c)}",
    "subshell": lambda c: f"({c}\n)",
    "group": lambda c: f"{{ {c}\n}}",
    "after &&": lambda c: f"true && {c}",
    "after ||": lambda c: f"false || {c}",
    "after a comment": lambda c: f"# a note\n{c}",
    "in the background": lambda c: f"( {c}\n) & wait",
    "substitution": lambda c: f"x=$({c}\n)",
    "backquotes": lambda c: "x=`" + re.sub(r"([\\`$])", r"\\\1", c) + "\n`",
    "in a text": lambda c: f'echo "a $({c}\n) b" > /dev/null',
    "in arithmetic": lambda c: f": $(( 0$({c}\n) ))",
    "if": lambda c: f"if true; then {c}\nfi",
    "elif": lambda c: f"if false; then :; elif true; then {c}\nfi",
    "as a condition": lambda c: f"if {c}\nthen :; fi",
    "for": lambda c: f"for i in 1; do {c}\ndone",
    "for over commands": lambda c: f'for s in {quote(c)}; do eval "$s"; done',
    "arithmetic for": lambda c: f"for ((i = 0; i < 1; i++)); do {c}\ndone",
    "while": lambda c: f"while true; do {c}\nbreak; done",
    "case": lambda c: f"case x in *) {c}\n;; esac",
    "function": lambda c: f"wrapped() {{ {c}\n}}; wrapped",
    "function keyword": lambda c: f"function wrapped {{ {c}\n}}\nwrapped",
    "function with an argument": lambda c: f'wrapped() {{ eval "$1"; }}; wrapped {quote(c)}',
    "trap": lambda c: f"trap {quote(c)} EXIT",
    "here-document": lambda c: f"bash <<'__END__'\n{c}\n__END__\n",
    "here-string": lambda c: f"bash <<< {quote(c)}",
    "here-document of a function": lambda c: f"f() {{ bash; }}; f <<'__END__'\n{c}\n__END__\n",
    "pipe": lambda c: f"printf %s {quote(c)} | sh",
    "pipe through cat": lambda c: f"echo {quote(c)} | cat | bash -s",
    "pipe into a loop": lambda c: _one_line(c, f'echo {quote(c)} | while IFS= read -r s; do eval "$s"; done'),
    "read into a variable": lambda c: _one_line(c, f'IFS= read -r s <<< {quote(c)}; eval "$s"'),
    "mapfile": lambda c: _one_line(c, f'mapfile -t s <<< {quote(c)}; eval "${{s[0]}}"'),
    "printf -v": lambda c: f'printf -v s %s {quote(c)}; eval "$s"',
    "base64": lambda c: f"echo {_encoded(c)} | base64 -d | bash",
    "base64 substituted": lambda c: f'eval "$(echo {_encoded(c)} | base64 --decode)"',
    "reversed": lambda c: _one_line(c, f"echo {quote(c[::-1])} | rev | sh"),
    "rotated": lambda c: f"echo {quote(_rotated(c))} | tr a-mn-z n-za-m | sh",
    "hexadecimal": lambda c: f"echo {c.encode().hex()} | xxd -r -p | bash",
    "octal printf": lambda c: (
        "printf '" + "".join(f"\\{ord(char):03o}" for char in c) + "' | bash" if c.isascii() else None
    ),
    "process substitution": lambda c: f"bash <(echo {quote(c)})",
    "source": lambda c: f". <(echo {quote(c)})",
    "file": lambda c: f"echo {quote(c)} > /tmp/a.sh; bash /tmp/a.sh",
    "file by cat": lambda c: f"cat > /tmp/a.sh <<'__END__'\n{c}\n__END__\nchmod +x /tmp/a.sh && /tmp/a.sh",
    "file by tee": lambda c: f"echo {quote(c)} | tee /tmp/b.sh > /dev/null; sh < /tmp/b.sh",
    "file in another directory": lambda c: f"mkdir -p /tmp/d; cd /tmp/d && echo {quote(c)} > x; cd ..; source d/x",
    "descriptor": lambda c: f"bash /dev/fd/3 3<<< {quote(c)}",
    "env": lambda c: f"env -u X A=1 bash -c {quote(c)}",
    "env -i": lambda c: f'env -i LOG="$LOG" PATH="$PATH" HOME="$HOME" bash -c {quote(c)}',
    "env -S": lambda c: f"env -S 'bash -c' {quote(c)}",
    "nohup": lambda c: f"nohup bash -c {quote(c)}",
    "nice": lambda c: f"nice -n 5 bash -c {quote(c)}",
    "timeout": lambda c: f"timeout -k 5 --signal=KILL 10 bash -c {quote(c)}",
    "setsid": lambda c: f"setsid -w bash -c {quote(c)}",
    "stdbuf": lambda c: f"stdbuf -oL -e 0 bash -c {quote(c)}",
    "flock": lambda c: f"flock /tmp/lock -c {quote(c)}",
    "time": lambda c: f"time bash -c {quote(c)}",
    "exec": lambda c: f"exec bash -c {quote(c)}",
    "command": lambda c: f"command bash -c {quote(c)}",
    "chain of wrappers": lambda c: f"nohup nice env A=b timeout 9 setsid -w sh -c {quote(c)}",
    "xargs": lambda c: f"printf '%s\\0' {quote(c)} | xargs -0 -I{{}} sh -c {{}}",
    "xargs -n": lambda c: f"printf '%s\\0' {quote(c)} | xargs -0 -n 1 bash -c",
    "find": lambda c: f"find /tmp -maxdepth 0 -exec sh -c {quote(c)} \\;" if "{}" not in c else None,
    "awk": lambda c: "awk 'BEGIN { system(\"" + _for_awk(c) + "\") }'" if "'" not in c and "\n" not in c else None,
    "sed e": lambda c: _one_line(c, f"echo x | sed {quote('1e ' + c)}"),
    "python": _python,
    "perl": lambda c: "perl -e " + quote("system(q~" + c + "~)") if "~" not in c else None,
    "alternative": lambda c: f's=true; if test -n a; then s={quote(c)}; fi; eval "$s"',
    "array": lambda c: f's=({quote(c)} true); eval "${{s[0]}}"',
    "array by arithmetic": lambda c: f's=(true {quote(c)}); i=0; eval "${{s[i+1]}}"',
    "associative array": lambda c: f'declare -A s=([a]=true [b]={quote(c)}); k=b; eval "${{s[$k]}}"',
    "indirection": lambda c: f's={quote(c)}; r=s; eval "${{!r}}"',
    "name reference": lambda c: f's={quote(c)}; declare -n r=s; eval "$r"',
    "substring": lambda c: f's=xx{quote(c)}; eval "${{s:2}}"',
    "prefix removed": lambda c: f's=x:{quote(c)}; eval "${{s#x:}}"',
    "replaced": lambda c: f's={quote(c)}; t=${{s//@none@/}}; eval "$t"',
    "set --": lambda c: f'set -- {quote(c)}; eval "$1"',
    "shift": lambda c: f'set -- a {quote(c)}; shift; eval "$@"',
    "prompt expansion": lambda c: f"s='$('{quote(c)}')'; : \"${{s@P}}\"",
    "exported function": lambda c: f"wrapped() {{ {c}\n}}; export -f wrapped; bash -c wrapped",
    "coproc": lambda c: f"coproc {{ {c}\n}}; wait",
}
"""Around a whole command."""


def _rotated(text: str) -> str:
    return text.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm"))


def _for_awk(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


SPELLED: dict[str, Callable[[str], str]] = {
    "single quotes": lambda w: f"'{w}'",
    "double quotes": lambda w: f'"{w}"',
    "empty quotes": lambda w: f"{w[0]}''{w[1:]}",
    "quoted end": lambda w: f'{w[0]}"{w[1:]}"',
    "backslash": lambda w: f"\\{w}",
    "every backslash": lambda w: "".join(f"\\{char}" for char in w),
    "hexadecimal": lambda w: "$'" + "".join(f"\\x{ord(char):02x}" for char in w) + "'",
    "octal": lambda w: "$'" + "".join(f"\\{ord(char):03o}" for char in w) + "'",
    "unicode": lambda w: f"$'\\u{ord(w[0]):04x}'{w[1:]}",
    "line continuation": lambda w: f"{w[0]}\\\n{w[1:]}",
    "echo": lambda w: f"$(echo {w})",
    "backquoted echo": lambda w: f"`echo {w}`",
    "printf": lambda w: f"$(printf %s {w})",
    "default": lambda w: f"${{UNSET_NAME:-{w}}}",
    "default without colon": lambda w: f"${{UNSET_NAME-{w}}}",
    "empty substitution": lambda w: f"{w[0]}$(:){w[1:]}",
    "empty double quotes": lambda w: f'{w[0]}""{w[1:]}',
    "locale quotes": lambda w: f'$"{w}"',
}
"""In place of each plain word."""


def respelled(command: str, spell: Callable[[str], str]) -> str | None:
    """The command with each plain word of its outer level spelled otherwise; None when there is none."""
    places = _plain_words(command)
    for start, end in reversed(places):
        command = command[:start] + spell(command[start:end]) + command[end:]
    return command if places else None


def with_variables(command: str) -> str | None:
    """Each plain word as a variable."""
    return _through(command, lambda name, word: f"{name}={word}; ", "${}")


def with_array_elements(command: str) -> str | None:
    return _through(command, lambda name, word: f"{name}=(x {word}); ", "${{{}[1]}}")


def _through(command: str, define: Callable[[str, str], str], use: str) -> str | None:
    places = _plain_words(command)
    definitions = ""
    for number, (start, end) in reversed(list(enumerate(places))):
        definitions += define(f"v{number}", command[start:end])
        command = command[:start] + use.format(f"v{number}") + command[end:]
    return definitions + command if places else None


def _plain_words(command: str) -> list[tuple[int, int]]:
    script, text_map = parse(command)
    if text_map is not None:
        return []
    found: list[tuple[int, int]] = []
    for item in script.items:
        for _, pipeline in item.items:
            for node in pipeline.commands:
                if isinstance(node, syntax.Simple):
                    found += [
                        (word.start, word.end)
                        for word in node.words
                        if isinstance(word, syntax.Word)
                        and (word.literal() or "") not in DECLARATIONS
                        and _WORD.fullmatch(word.literal() or "")
                    ]
    return found


def all_forms() -> dict[str, Form]:
    """Every way, by name."""
    forms: dict[str, Form] = dict(WRAPPED)
    for name, spell in SPELLED.items():
        forms[f"words: {name}"] = lambda command, spell=spell: respelled(command, spell)  # type: ignore[misc]
    forms["words: variables"] = with_variables
    forms["words: array elements"] = with_array_elements
    return forms
