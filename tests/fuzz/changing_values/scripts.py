"""Make scripts that set, change and pass on values by every means of the shell, and run what came out.

The words are such that some scripts end in `rm -rf`, most in nothing that matters: bash says which. What decides between two
ways is only known to bash (`test -e` of files that are there or not), so that the judge has to follow both.
"""

from __future__ import annotations

import random

_WORDS = ("ls", "cat", "rm", "r", "m", "s", "true", "echo rm", "rm -rf", "ls\nrm", "rm\nls", "x rm", "smr")
_PLAIN = ("ls", "cat", "rm", "r", "m", "l")
_NAMES = ("a", "b", "c", "d")
_FILES = ("one.sh", "two.sh")
_CONDITIONS = (
    "true",
    "false",
    "test -e here",
    "test -e there",
    '[ "$a" = rm ]',
    "[[ $b == r* ]]",
    "((n > 1))",
    '[ -n "$c" ]',
)
END = ' -rf "$HOME/work"'


class Scripts:
    """Makes scripts by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._depth = 0
        self._functions = 0

    def script(self) -> str:
        self._functions = 0
        count = self._chance.randint(2, 6)
        lines = ["touch here; n=0", *(self.statement() for _ in range(count)), *(self.use() for _ in range(2))]
        return "\n".join(lines)

    def use(self) -> str:
        """Run something that a value says."""
        name, other = self._name(), self._name()
        return self._one(
            f"${name}{END}",
            f'"${name}"{END}',
            f"${name}${other}{END}",
            f'eval "${name}{END}"'.replace('"$HOME/work"', "~/work"),
            f"${{{name}[0]}}{END}",
            f"${{{name}[1]}}{END}",
            f'"${{{name}[@]}}"{END}',
            f"${{!{name}}}{END}",
            f"sh {self._file()}",
            f". ./{self._file()}",
            f"bash -c '${name}{END}'",
            f"export {name}; bash -c '${name}{END}'",
            f'f{self._chance.randint(1, 3)} "${name}"',
            f"for x in ${name}; do $x{END}; done",
            f'set -- ${name}{END}; "$@"',
            f"$(echo ${name}){END}",
            f"echo ${name}' -rf ~/work' | sh",
            f'sh <<< "${name} -rf ~/work"',
            f"${{{name}:-rm}}{END}",
            f"${{{name}#x }}{END}",
            f"${{{name}/s/}}{END}",
        )

    def statement(self) -> str:
        if self._depth < 3 and self._chance.random() < 0.45:
            self._depth += 1
            text = self._compound()
            self._depth -= 1
            return text
        return self._simple()

    def _simple(self) -> str:
        name, other, word = self._name(), self._name(), self._quoted(self._one(*_WORDS))
        plain, plainer = self._one(*_PLAIN), self._one(*_PLAIN)
        file, number = self._file(), self._chance.randint(0, 2)
        return self._one(
            f"{name}={word}",
            f"{name}={word}",
            f"{name}+={plain}",
            f"{name}=${other}",
            f'{name}="${other}"{plain}',
            f"{name}=({plain} {plainer})",
            f"{name}+=({plain})",
            f"{name}[{number}]={plain}",
            f"{name}[n]={plain}",
            f"unset {name}",
            f"unset '{name}[0]'",
            f"read {name} <<< {word}",
            f"read -r {name} {other} <<< {word}",
            f"{{ read {name}; read {other}; }} <<< {word}",
            f"read -ra {name} <<< {word}",
            f"mapfile -t {name} <<< {word}",
            f"printf -v {name} %s {plain}",
            f"printf -v {name} '%s%s' {plain} {plainer}",
            f"declare {name}={word}",
            f"declare -n ref={name}; ref={plain}; unset -n ref",
            f'x={name}; declare "$x={plain}"',
            f"eval {name}={plain}",
            f"declare -l {name}; {name}={plain.upper()}",
            f"export {name}={plain}",
            f"{name}=$(echo {plain})",
            f"{name}=`printf {plain}`",
            f"{name}=${{{other}#?}}",
            f"{name}=${{{other}/l/r}}",
            f"{name}=${{{other}:0:{number}}}",
            f"{name}=${{{other}:-{plain}}}",
            f": ${{{name}:={plain}}}",
            f"set -- {plain} {plainer}; {name}=$1",
            f"set -- {plain} {plainer}; shift; {name}=$1",
            "((n++))",
            f"n={number}",
            f"n=$((n + {number}))",
            f"((n && (n = {number})))",
            f"{name}=({plain} {plainer}); {other}=${{{name}[n]}}",
            f"{name}={other}; {other}={plain}",
            f"trap '{name}={plain}' DEBUG",
            f"echo '{plain} -rf ~/work' > {file}",
            f"echo '{plain} -rf ~/work' >> {file}",
            f"echo '{plain} -rf ~/work' | tee -a {file} > /dev/null",
            f"sed -i s/{plain}/{plainer}/ {file}",
            f"perl -pi -e s/{plain}/{plainer}/ {file}",
            f"cp {file} {self._file()}",
            f"mv {file} {self._file()}",
            f"sort -o {file} {self._file()}",
            f"sed s/{plain}/{plainer}/ {file} > {self._file()}x; mv {self._file()}x {file}",
            f"exec 3> {file}; echo '{plain} -rf ~/work' >&3; exec 3>&-",
            f"exec 4<<< {word}; read -u 4 {name}",
            f"f{self._chance.randint(1, 3)} {plain}",
            f"alias al='{plain}'",
            f"shopt -s lastpipe; echo {plain} | read {name}",
            f"IFS=x; {name}=${other}; unset IFS",
            f"[[ {plain} =~ (.*) ]] && {name}=${{BASH_REMATCH[1]}}",
            f"readonly {name}",
        )

    def _compound(self) -> str:
        name, condition = self._name(), self._one(*_CONDITIONS)
        plain, plainer = self._one(*_PLAIN), self._one(*_PLAIN)
        body, other = self._body(), self._body()
        leaving = self._one("break", "continue", f"{condition} && break", f"{condition} && continue", ":")
        number = self._chance.randint(1, 3)
        return self._one(
            f"if {condition}; then {body}; fi",
            f"if {condition}; then {body}; else {other}; fi",
            f"if {condition}; then {body}; elif {name}={plain}; then {other}; else {self._body()}; fi",
            f"{condition} && {{ {body}; }}",
            f"{condition} || {{ {body}; }}",
            f"for {name} in {plain} {plainer}; do {leaving}; {body}; done",
            f"for {name} in {plain} {plainer}; do {body}; {leaving}; done",
            f"for i in 1 2 3; do {body}; {leaving}; {other}; done",
            f"for ((i = 0; i < {number}; i++)); do {body}; done",
            f"i=0; while ((i++ < {number})); do {body}; {leaving}; done",
            f"i=0; until ((i++ >= {number})); do {leaving}; {body}; done",
            f"while read -r {name}; do {body}; done <<< {self._quoted(self._one(*_WORDS))}",
            f"printf '%s\\n' {plain} {plainer} | while read -r {name}; do {body}; ${name}{END}; done",
            f"case ${name} in r*) {body};; *) {other};; esac",
            f"case ${name} in rm) {body};& l*) {other};; esac",
            f"( {body} )",
            f"{{ {body}; }}",
            f"f{number}() {{ {body}; }}",
            f"f{number}() {{ {name}=$1; {condition} && return; {body}; }}",
            f"f{number}() {{ local {name}={plain}; {body}; }}",
            f"f{number}() {{ $1{END}; {condition} && return; {body}; }}; f{number} {plain}",
            f'f{number}() {{ {body}; [ -n "$2" ] && f{number} $2; $1{END}; }}; f{number} {plain} {plainer}',
            f"f{number}() {{ declare -g {name}={plain}; }}; f{number}",
            f"f{number}() {{ local -n ref=$1; ref={plain}; }}; f{number} {name}",
        )

    def _body(self) -> str:
        return "; ".join(self.statement() for _ in range(self._chance.randint(1, 2)))

    def _name(self) -> str:
        return self._one(*_NAMES)

    def _file(self) -> str:
        return self._one(*_FILES)

    def _one(self, *choices: str) -> str:
        return self._chance.choice(choices)

    def _quoted(self, word: str) -> str:
        return "$'" + word.replace("\n", "\\n") + "'" if "\n" in word else f"'{word}'"
