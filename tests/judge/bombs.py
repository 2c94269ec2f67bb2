"""Short commands that stand for very much text, very many words or very many ways."""

from __future__ import annotations


def _doubled(times: int, end: str) -> str:
    return "a0=x; " + "; ".join(f"a{i + 1}=$a{i}$a{i}" for i in range(times)) + end


_BIG = "x" * 4_000
BOMBS = {
    "doubling": _doubled(40, '; eval "$a40"'),
    "doubling echo": _doubled(40, "; echo $a40"),
    "doubling quoted": "a0=x; " + "; ".join(f'a{i + 1}="$a{i}$a{i}"' for i in range(40)) + "; $a40",
    "doubling append": "a=x; " + "a+=$a; " * 60 + "$a",
    "doubling array": "a=(x); " + 'a=("${a[@]}" "${a[@]}"); ' * 40 + '"${a[@]}"',
    "array append": "a=(x); " + 'a+=("${a[@]}"); ' * 40 + '"${a[@]}"',
    "words": _doubled(18, '; x="' + "a " * 50 + '"')
    + "; "
    + "; ".join("y=$x$x; x=$y$y" for _ in range(10))
    + "; $x $x $x $x",
    "split": 'a0="a "; '
    + "; ".join(f'a{i + 1}="$a{i}$a{i}"' for i in range(19))
    + "; "
    + "echo $a19 $a19 $a19; " * 200,
    "set --": "set -- a; " + 'set -- "$@" "$@"; ' * 40 + '"$@"',
    "set -- star": "set -- a; " + 'set -- "$*$*"; ' * 40 + '"$@"',
    "braces": "echo " + "{a,b,c,d,e,f,g,h}" * 9,
    "braces long": "echo " + "{1..256}{1..256}" + "y" * 1900,
    "brace ranges": "echo " + "{1..1000000} " * 500,
    "brace wide": "echo {" + "0" * 900 + "1..9999999}",
    "printf width": "x=$(printf %1000000000d 1); $x",
    "printf star": "printf -v x '%*d' 1000000000 1; $x",
    "printf precision": "printf -v x '%.1000000000s' a; $x",
    "printf repeat": "printf -v x '" + "%s" + _BIG + "' " + "a " * 4000 + "; $x",
    "replace": f"x={_BIG}; y={_BIG}; z=${{x//x/$y}}; w=${{z//x/$y}}; v=${{w//x/$y}}; $v",
    "replace chain": f"x={_BIG}; " + "x=${x//x/xx}; " * 40 + "$x",
    "case ops": f"x={_BIG * 10}; " + "x=${x^^}; " * 400 + "$x",
    "strip ops": f"x={_BIG}; " + ": ${x##*y*}; " * 400,
    "subst": "x=$(echo " + _BIG + "); " + "x=$(echo $x $x); " * 40 + "$x",
    "files": "echo " + _BIG + " > f; " + "cat f f > g; cat g g > f; " * 100 + "sh f",
    "many _BIG values": _doubled(19, "; ") + "; ".join(f"b{i}=y$a19" for i in range(400)),
    "tee": "echo " + _BIG + " | " + "tee a b c | " * 300 + "sh",
    "rev": "x=" + _BIG * 20 + "; echo $x | " + "rev | " * 1000 + "sh",
    "base64": "echo " + _BIG + " | " + "base64 | " * 300 + "sh",
    "sed chain": "echo " + _BIG + " | sed '" + "s/x/xx/g;" * 300 + "' | sh",
    "tr": "echo " + _BIG * 10 + " | " + "tr a-z A-Z | " * 500 + "sh",
    "arith": "x=2; " + "x=$((x**x)); " * 300 + "echo $x",
    "arith deep": "echo $((" + "(" * 1900 + "1" + ")" * 1900 + "))",
    "arith chain": "; ".join(f'v{i}="v{i + 1}+v{i + 1}"' for i in range(200)) + "; echo $((v0))",
    "loops": "".join(f"for {name} in {{1..99}}; do " for name in "abcd") + "ls $a $b $c $d; " + "done; " * 4,
    "while": "while a; do " * 10 + "x=$x$x; ls; " + "done; " * 10,
    "while vars": "while a; do " + "; ".join(f"a{i + 1}=$a{i}" for i in range(50)) + "; $a50; done",
    "functions": "f0() { ls; }; " + "".join(f"f{i + 1}() {{ f{i}; f{i}; f{i}; }}; " for i in range(12)) + "f12",
    "recursion": "f() { f a; f b; f c; f d; g; }; g() { f x; g y; f z; }; f; g",
    "branches": "".join(f"if a; then x{i}=a; else x{i}=b; fi; " for i in range(60))
    + "echo "
    + " ".join(f"$x{i}" for i in range(60)),
    "branch cmds": ("if a; then x=a; else x=b; fi; ") * 200 + "$x $x $x",
    "either eval": "".join(f"if a; then x{i}=a; else x{i}=b; fi; " for i in range(12))
    + 'eval "eval \\"'
    + " ".join(f"$x{i}" for i in range(12))
    + '\\""',
    "case fall": "case x in " + "a) x=$x$x ;& " * 200 + "esac; $x",
    "trap": 'trap "x=\\$x\\$x" DEBUG; ' * 200 + "$x",
    "nameref": "".join(f"declare -n r{i}=r{i + 1}; " for i in range(300)) + "r0=rm; $r300",
    "nameref loop": "declare -n a=b; declare -n b=a; a=rm; $b -rf ~",
    "read lines": "while read a b c d; do $a $b $c $d; done <<E\n" + "rm -rf x y\n" * 5000 + "E\n",
    "mapfile": "mapfile a <<E\n" + "rm -rf x y\n" * 5000 + 'E\n"${a[@]}"',
    "xargs": "printf '%s\\n' " + "a " * 20000 + "| xargs -I{} sh -c 'ls {}'",
    "awk long": "awk '{" + "x=1;" * 40000 + "}' f",
    "sed long": "sed '" + "s/a/b/;" * 20000 + "' f",
    "vim bars": "vim -c '" + "a|" * 200 + "!rm -rf ~' x",
    "python mult": "python3 -c 'x=\"a\"*999*999*999*999; import os; os.system(x)'",
    "python doubling": "python3 -c '" + 'x="a"\n' + "x=x+x\n" * 60 + "import os; os.system(x)'",
    "python lists": "python3 -c '" + 'x=["a"]\n' + "x=x+x\n" * 60 + "import os; os.system(x)'",
    "python format": "python3 -c 'import os; os.system(\"%1000000000d\" % 1)'",
    "python format2": "python3 -c 'import os; os.system(\"{:1000000000}\".format(1))'",
    "python format3": "python3 -c 'import os; os.system(f\"{1:1000000000}\")'",
    "python names": "python3 -c '"
    + "".join(f'a{i}="x"\na{i}="y"\n' for i in range(40))
    + "import os\nos.system("
    + "+".join(f"a{i}" for i in range(40))
    + ")'",
    "python calls": "python3 -c 'import os\n" + "f=[os.system]\n" + 'f[0]("ls")\n' * 3000 + "'",
    "python bytes": "python3 -c 'import os; os.system(bytes(10**12))'",
    "python int": "python3 -c 'import os; os.system(str(9**9**9))'",
    "python join": "python3 -c 'import os; x=\"a\"*99999; os.system(x.join([x]*999))'",
    "python zlib": 'python3 -c \'import os; os.system("eJztwQENAAAAwqD3T20PBxQAAAAA".decode("zlib"))\'',
    "perl": "perl -e '" + '$x="a"; system $x;' * 3000 + "'",
    "aliases": "".join(f"alias a{i}='a{i + 1} a{i + 1}'; " for i in range(60)) + "a0",
    "eval nest": "x=ls; " + 'eval "eval \\"$x\\""; ' * 500,
    "heredoc": "x=" + _BIG + "; cat <<E | sh\n" + "$x" * 2000 + "\nE\n",
    "herestring": _doubled(30, '; sh <<< "$a30$a30"'),
    "params": "echo " + "${x:-" * 50 + "y" + "}" * 50,
    "indirect": "".join(f"x{i}=x{i + 1}; " for i in range(1000)) + "echo ${!x0}",
    "seq": "for i in $(seq 1000000000); do rm -rf x$i; done",
    "process subst": "cat " + "<(ls) " * 2000,
    "test index": 'v="a[v]"; [[ v -eq 1 ]]; ((v)); echo ${a[v]}',
    "globs": "x=*; " + "x=$x$x; " * 30 + "rm $x",
    "long prefix": '"' + "$x" * 40000 + '"',
}
