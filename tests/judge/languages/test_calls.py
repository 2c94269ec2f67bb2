"""Code that reaches a dangerous call in a roundabout way, and files that interpreters run besides their program."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess

PYTHON = [
    'from ctypes import CDLL; CDLL(None).execlp(b"rm", b"rm", b"-rf", b"/root/d", None)',
    'import ctypes; ctypes.CDLL(None).rename(b"/root/d", b"/tmp/x")',
    'import _posixsubprocess; _posixsubprocess.fork_exec([b"rm", b"-rf", b"/root/d"], [b"/bin/rm"])',
    'import subprocess as s\nwith s.Popen(["sh"], stdin=s.PIPE) as p: print("rm -rf ~/d", file=p.stdin)',
    'import os\nr, w = os.pipe(); os.write(w, b"rm -rf ~/d"); os.dup2(r, 0); os.execlp("sh", "sh")',
    'import subprocess; subprocess.run(["rm -rf ~/d"], shell=True)',
    'from pathlib import Path; Path("x").rename("/etc/passwd")',
    'import io; io.FileIO("/etc/passwd", "w")',
    'import os; os.system(str(b"rm -rf ~/d", "ascii"))',
    'import os; os.__getattribute__("system")("rm -rf ~/d")',
    '().__class__.__base__.__subclasses__()[137].__init__.__globals__["system"]("x")',
    'print.__self__.__import__("os").system("rm -rf ~/d")',
    "from app import User; User.query.delete()",
    'from plumbum.cmd import rm; rm("-rf", "/root/d")',
    '(lambda m: m.rmtree("/root/d"))(__import__("shutil"))',
    'def f(x): x.system("rm -rf ~/d")\nimport os; f(os)',
    'import os, sys; os.execvp("sh", ["sh", "-c", sys.stdin.read()])',
]
OTHERS = [
    """node -e "const f=require('fs'); f['rm'+'Sync']('/root/d',{recursive:true})\"""",
    """node -e "const {rmSync: r}=require('fs'); r('/root/d')\"""",
    """node -e "['rmSync'].map(m => require('fs')[m]('/root/d'))\"""",
    """perl -e '$f="unlink"; &$f("/etc/passwd")'""",
    """php -r 'foreach (new DirectoryIterator("/srv") as $f) unlink($f);'""",
    """emacs --batch --eval '(write-file "/etc/hosts")'""",
    """vim -c 'w! /etc/hosts' -c q x""",
    """perl -e 'open F,"-|","rm","-rf","/root/d"'""",
    """perl -pe 's/(.*)/system $1/e' f""",
    """perl -e 'exec {"/bin/rm"} "x","-rf","/root/d"'""",
    """ruby -e 'binding.eval("`rm -rf ~/d`")'""",
    """node -e 'require("vm").runInThisContext("require(\\"fs\\").rmSync(\\"/root/d\\")")'""",
    """node -p '`${require("child_process").execSync("rm -rf ~/d")}`'""",
    """node -e 'require("child_process").spawn("rm -rf ~/d",{shell:true})'""",
    """php -r 'pcntl_exec("/bin/rm",["-rf","/root/d"]);'""",
    """echo 'set x exec; $x rm -rf /root/d' | tclsh""",
    """Rscript -e 'pipe("rm -rf ~/d","r")'""",
    """julia -e 'run(Cmd(["rm","-rf","/root/d"]))'""",
    """convert x.png '|rm -rf /root/d'""",
]
DELETE = 'import shutil; shutil.rmtree("/root/d")\n'
FILES = [
    ("python3 -m runpy x", "x.py", DELETE),
    ("python3 -m timeit 'import x'", "x.py", DELETE),
    ("pytest -p plug", "plug.py", DELETE),
    ("pwsh x.ps1", "x.ps1", "rm -rf /root/d\n"),
    ("pwsh -File x.ps1", "x.ps1", "rm -rf /root/d\n"),
    ("just", "justfile", 'set shell := ["sh", "-c", "rm -rf /root/d; $0"]\nx:\n    echo hi\n'),
    ("deno task x", "deno.json", '{"tasks": {"x": "rm -rf /root/d"}}\n'),
    ("node --run x", "package.json", '{"scripts": {"x": "rm -rf /root/d"}}\n'),
    ("node --test", "x.test.js", 'require("child_process").execSync("rm -rf /root/d")\n'),
    ("cargo clippy", "build.rs", 'fn main() { Command::new("rm").arg("-rf").arg("/root/d").status(); }\n'),
    ("sqlite3 x.db '.read x.sql'", "x.sql", ".shell rm -rf ~/d\n"),
    ("fish x.fish", "x.fish", "rm -rf /root/d\n"),
]


@pytest.mark.parametrize("code", PYTHON)
def test_python_that_hides_what_it_calls_is_asked_about(code: str) -> None:
    assert assess(f"python3 - <<'END'\n{code}\nEND").dangerous


@pytest.mark.parametrize("command", OTHERS)
def test_other_languages_that_hide_what_they_call_are_asked_about(command: str) -> None:
    assert assess(command).dangerous


@pytest.mark.parametrize(("command", "name", "text"), FILES)
def test_a_file_that_is_run_besides_the_program_is_read(command: str, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(0.0)).dangerous


@pytest.mark.parametrize(
    "command",
    [
        """node -e "const h={a: console.log}; h['a']('/tmp/x')\"""",
        """node -e "const {join: j}=require('path'); console.log(j('src', 'a'))\"""",
        """python3 -c "import os; print(os.path.join('a', 'b'))\"""",
        """vim -c 'w! out.txt' -c q x""",
    ],
)
def test_calls_of_another_name_on_files_of_the_project_run_without_a_question(command: str) -> None:
    assert not assess(command).dangerous
