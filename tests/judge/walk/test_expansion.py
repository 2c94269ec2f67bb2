"""What words are worth, against real bash: what we say that a script prints is what it prints."""

from __future__ import annotations

import subprocess

import pytest

from handrail.judge import assess
from handrail.judge.grammar.parser import parse
from handrail.judge.grammar.syntax import SourceMap
from handrail.judge.rules import builtin
from handrail.judge.values.word_values import UNKNOWN
from handrail.judge.walk import program_handlers
from handrail.judge.walk.judgement import Judgement
from handrail.judge.walk.state import State
from handrail.judge.walk.walk import Walk


def printed(script: str) -> str:
    """What we make of it; the unknown is in there as it is."""
    tree, _ = parse(script)
    walk = Walk(Judgement(builtin(), ""), State("."), program_handlers, SourceMap(), None)
    walk.readers = 1
    return walk.script(tree, None).text


KNOWN = (
    "echo a b  c",
    "echo 'a  b' \"c  d\" e\\ f",
    "echo -n a; echo b",
    "echo -e 'a\\tb\\x41\\n'",
    "printf '%s-%s\\n' a b c d",
    "printf '%05d|%-4s|%4s|%x|%o|%c|%b\\n' 42 ab cd 255 8 xyz 'a\\tb'",
    "printf '%.2s|%%|%q\\n' abcdef 'it is'",
    "printf '%d\\n' \"'A\" 0x1f 010",
    "x=1; echo $x ${x} \"$x\" '$x'",
    "x='a b'; printf '<%s>' $x \"$x\"",
    "x=' a  b '; printf '<%s>' $x",
    "IFS=,; x='a,b,,c'; printf '<%s>' $x",
    "IFS=', '; x='a, b ,c'; printf '<%s>' $x",
    "x=abc; echo ${x:1} ${x:0:2} ${x: -1} ${x:1:-1} ${x:5}",
    "x=a/b/c.tar.gz; echo ${x##*/} ${x#*/} ${x%.*} ${x%%.*} ${x%/*}",
    "x=banana; echo ${x/a/o} ${x//a/o} ${x/#b/B} ${x/%a/A} ${x//n} ${x///q}",
    "x=banana; echo ${x//[an]/_} ${x/n?/X} ${x//b*n/Y}",
    "x=Hello; echo ${x^^} ${x,,} ${x^} ${x,} ${x^^[l]}",
    "x='a b'; echo ${x@Q} ${x@U} ${x@u} ${x@L}",
    "x='a\\tb'; echo \"${x@E}\"",
    "echo ${u:-d} ${u-d}",
    'u=; echo "<${u:-d}><${u-d}><${u:+s}><${u+s}>"',
    ": ${u:=v}; echo $u",
    "x=abc; echo ${#x}",
    "x=y; y=z; echo ${!x}",
    "a=(x y 'z w'); printf '<%s>' \"${a[@]}\" ; echo ${#a[@]} ${a[1]} ${a[-1]}",
    'a=(x y z w); printf \'<%s>\' "${a[@]:1:2}" "${a[*]}"',
    'a=(x y); a+=(z); a[5]=w; echo "${a[@]}" ${#a[@]}',
    "a=([2]=x y); echo ${a[2]} ${a[3]}",
    "declare -A m=([k]=v ['a b']=c); echo ${m[k]} ${m['a b']}",
    "declare -A m; m[x]=1; k=x; echo ${m[$k]}",
    "declare -i n=2+3; echo $n",
    "declare -u n=abc; declare -l o=ABC; echo $n $o",
    "declare -n r=x; x=5; echo $r; r=6; echo $x",
    "set -- a 'b c' d; printf '<%s>' \"$@\" $# \"$2\"; shift; echo $1",
    'set -- a b c; IFS=-; echo "$*"',
    "f() { echo $2 $#; }; f x y",
    "f() { local v=in; echo $v; }; v=out; f; echo $v",
    "echo {a,b}{1,2} {1..4} {a..e..2} {3..1} pre{x,y}post {01..03} {a} {a,b",
    "echo $((1 + 2 * 3)) $((2 ** 10)) $((7 / 2)) $((-7 / 2)) $((7 % 3)) $((1 << 4 | 1)) $((0x10 + 010))",
    "x=5; echo $((x++ + ++x)) $x $((x > 3 ? 1 : 0)) $((x = 9, x + 1))",
    "a=(1 2 3); i=1; echo ${a[i]} ${a[i+1]} $((a[0] + 1))",
    "i=0; while [ $i -lt 0 ]; do :; done; echo $i",
    "for i in a b c; do printf %s $i; done",
    "for ((i = 0; i < 4; i++)); do printf $i; done",
    'x=$(echo a; echo b); echo "$x"',
    "echo $(echo a; echo b) `echo c`",
    "echo \"$(printf 'a\\n\\n')\"b",
    "echo $'a\\'b\\\\c\\x41\\101\\u0041'",
    "cat <<E\na $((1+1)) `echo b` \\$x\nE\n",
    "cat <<'E'\na $x `b`\nE\n",
    "cat <<-E\n\ta\n\t\tb\n\tE\n",
    "cat <<< 'a  b'",
    "echo abc | rev; echo abc | tr a-c A-C; echo aabb | tr -d a; echo abcdef | cut -c2-4",
    "echo a:b:c | cut -d: -f2; echo aXb | sed 's/X/-/'; echo abc | base64; echo YWJj | base64 -d",
    "printf 'a\\nb\\nc\\n' | head -n 2; printf 'a\\nb\\nc\\n' | tail -1; printf 'a\\nb\\n' | tac",
    "echo 616263 | xxd -r -p",
    "read a b <<< 'x y z'; echo \"$b|$a\"",
    "IFS=: read -r a b <<< 'x:y z'; echo \"$b|$a\"",
    "read -ra a <<< 'x y z'; echo ${a[2]}",
    "mapfile -t a < <(printf 'x\\ny\\n'); echo ${a[1]}",
    "printf -v x '%s%s' a b; echo $x",
    "eval 'x=1; echo $x'; echo $x",
    "x='echo hi'; $x; eval \"$x there\"",
    "bash -c 'echo $0 $1' a b",
    "echo 'echo $1' > /dev/null; bash -c 'echo \"$@\"' x 'a b' c",
    "(x=2; echo $x); echo ${x:-unset}",
    "x=1; { x=2; }; echo $x",
    "x=1; echo a | read x; echo $x",
    "echo ~+ > /dev/null; echo \"~\" '~' a~b",
    'x=*; echo "$x"',
    'echo "a\\\nb" c\\\nd',
    "x=a; x+=b; echo $x",
    'echo ${x:-${y:-z}} "${x:-\'q\'}" "${x:-"r s"}"',
)


@pytest.mark.parametrize("script", KNOWN)
def test_what_is_known_is_what_bash_prints(script: str) -> None:
    ran = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.stderr == ""
    assert printed(script) == ran.stdout


@pytest.mark.parametrize(
    "script",
    [
        "echo $never_set_here",
        "x=$RANDOM; echo $x",
        'x=$(date); echo "$x"',
        "read x; echo $x",
        "echo $(<file)",
        "x=1; f; echo $((y + 1))",
        "echo ${never:1:2}",
        "for x in $list; do echo $x; done",
    ],
)
def test_what_only_shows_when_it_runs_is_unknown(script: str) -> None:
    assert UNKNOWN in printed(script)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("if a; then x=one; else x=two; fi; run $x", {("run", "one"), ("run", "two")}),
        ("x=one; a && x=two; run $x", {("run", "one"), ("run", "two")}),
        ("x=one; a || x=two; run $x", {("run", "one"), ("run", "two")}),
        ("case $a in 1) x=one;; 2) x=two;; esac; run ${x:-three}", {("run", "one"), ("run", "two"), ("run", "three")}),
        ("x=one; y=1; if a; then x=two; y=2; fi; run $x $y", {("run", "one", "1"), ("run", "two", "2")}),
        ("(x=one); x=two; run $x", {("run", "two")}),
        ("x=one; if a; then x=one; fi; run $x", {("run", "one")}),
        ("a && x=one && run $x", {("run", "one")}),
        ("if a; then f() { run one; }; else f() { run two; }; fi; f", {("run", "one"), ("run", "two")}),
        ("echo 'run one' > s; a && echo 'run two' > s; sh s", {("run", "one"), ("run", "two")}),
    ],
)
def test_every_value_that_a_variable_may_have_is_followed(command: str, lines: set[tuple[str, ...]]) -> None:
    found = {segment.argv for segment in assess(command).segments if segment.argv[0] == "run"}
    assert lines <= found
    assert not any("?" in argument for line in found for argument in line)


def test_too_many_possible_worlds_are_one_unknown_one() -> None:
    branches = "".join(f"if a; then x{number}=1; else x{number}=2; fi; " for number in range(12))
    words = " ".join(f"$x{number}" for number in range(12))
    found = [segment.argv for segment in assess(f"{branches} run {words}").segments if segment.argv[0] == "run"]
    assert len(found) < 20
    assert ("run", *["?"] * 12) in found
