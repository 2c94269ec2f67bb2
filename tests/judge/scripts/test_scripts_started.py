"""What a command starts by an option, a variable, a list of arguments or a file that it reads is judged like the thing itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess
from handrail.judge.values.assessment import Assessment
from handrail.judge.values.disk import ShellMemory

NEW, OLD = 0.0, float("inf")


def judged(folder: Path, files: dict[str, str], *commands: str, since: float) -> Assessment:
    """The last of these commands, each with what the ones before it left in the shell."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    memory = ShellMemory()
    return [
        assess(command, cwd=str(folder), project=str(folder), disk=HostDisk(since), shell=memory)
        for command in commands
    ][-1]


def check(folder: Path, files: dict[str, str], *commands: str, asked: bool, only_new: bool = False) -> None:
    for since in (NEW,) if only_new else (NEW, OLD):
        found = judged(folder, files, *commands, since=since)
        assert found.dangerous is asked, (commands, [(finding.rule, finding.argv) for finding in found.findings])


STARTERS = """
./[x]
sh ./[x]
find . -maxdepth 1 -name x -exec {} \\;
find . -maxdepth 1 -name x -exec sh {} \\;
for f in ./x*; do sh $f; done
cmake -E env A=1 ./x
cmake -E time ./x
cmake -E chdir . ./x
logsave /dev/null ./x
debugfs -R '!./x' /dev/null
perl -e 'open F,"-|","./x"; <F>'
/proc/self/cwd/x
git -c core.pager=./x log
git -c core.fsmonitor=./x status
git -c diff.external=./x diff
git -c gpg.program=./x commit -S -m y
git bisect run ./x
git difftool -x ./x
GIT_SSH=./x git fetch
GIT_EXTERNAL_DIFF=./x git diff
EDITOR=./x git commit
tcpdump -z ./x -w a -G 1
tcpdump -z./x -w a -G 1
tar -cf a b -I./x
tar cf a b --use-compress-program=./x
scp -S ./x a b:
scp -S./x a b:
sort --compress-program=./x a
rsync -e./x a b:
ssh -oProxyCommand=./x h
gcc -wrapper ./x,a f.c
man -P./x ls
sudo ./x
sudo scp -S ./x a b:
sudo zip a b -T -TT ./x
sudo openvpn --script-security 2 --up ./x
sudo watch ./x
start-stop-daemon --start --exec ./x
bash --rcfile ./x -i
sh < x
bash -s a b < x
dd if=x of=y; sh y
make SHELL=./x
split --filter=./x f
strace -o '|./x' ls
run-parts .
hyperfine ./x
systemd-run ./x
""".strip().splitlines()


@pytest.mark.parametrize("command", STARTERS)
def test_a_program_named_in_an_option_or_variable_is_read(command: str, tmp_path: Path) -> None:
    check(tmp_path, {"x": "#!/bin/sh\nrm -rf ~/work\n"}, command, asked=True)
    check(tmp_path, {"x": "#!/bin/sh\necho hello\n"}, command, asked=False)


LOADED = """
mocha --require=./x.js
mocha -r ./x.js
jest --globalSetup=./x.js
node --experimental-loader=./x.js a.js
babel --config-file ./x.js src
prettier --plugin=./x.js .
stylelint --config x.js .
k6 run x.js
pm2 start x.js
electron --preload x.js
pandoc --lua-filter=x.lua a.md
nvim -l x.lua
redis-server --loadmodule x.lua
cmake -C x.cmake .
cmake --toolchain x.cmake -B b
cmake -DCMAKE_TOOLCHAIN_FILE=x.cmake .
ctest -S x.cmake
flask --app x.py run
streamlit run x.py
mitmdump -s x.py
blender -b -P x.py
gunicorn -c x.py a:app
R CMD BATCH x.r
R --file=x.r
puma -C x.rb
asciidoctor -r ./x.rb a.adoc
phpunit --bootstrap x.php
gawk '@include "x.awk"'
gawk -i x.awk 1 d
octave --eval 'source("x.m")'
mongosh --eval 'load("x.js")'
ant -f x.xml
ant -buildfile x.xml clean
nu x.nu
""".strip().splitlines()
LOADED_FILES = {
    "x.js": "require('child_process').execSync('COMMAND')\n",
    "x.py": "import os\nos.system('COMMAND')\n",
    "x.lua": "os.execute('COMMAND')\n",
    "x.rb": "system('COMMAND')\n",
    "x.r": "system('COMMAND')\n",
    "x.m": "system('COMMAND')\n",
    "x.php": "<?php system('COMMAND');\n",
    "x.awk": 'BEGIN { system("COMMAND") }\n',
    "x.cmake": "execute_process(COMMAND COMMAND)\n",
    "x.nu": "^COMMAND\n",
    "x.xml": '<project><exec executable="sh"><arg value="-c"/><arg value="COMMAND"/></exec></project>',
}


@pytest.mark.parametrize("command", LOADED)
def test_a_file_of_code_that_any_program_is_given_is_read(command: str, tmp_path: Path) -> None:
    for inner, asked in (("rm -rf /home/bob/work", True), ("echo hello", False)):
        files = {
            name: text.replace("COMMAND", inner).replace(f"({inner}", "(COMMAND", 1)
            for name, text in LOADED_FILES.items()
        }
        check(tmp_path, files, command, asked=asked, only_new=True)


def test_a_program_that_only_reads_code_does_not_run_it(tmp_path: Path) -> None:
    files = {name: text.replace("COMMAND", "rm -rf /home/bob/work") for name, text in LOADED_FILES.items()}
    for command in (
        "grep -f x.py a",
        "git add x.js",
        "ruff check --exclude x.py .",
        "prettier --write a.js",
        "wc -l x.lua",
    ):
        check(tmp_path, files, command, asked=False, only_new=True)


RUNNERS = {
    "run.py": "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n",
    "exec.py": "import os, sys\nos.execvp(sys.argv[1], sys.argv[1:])\n",
    "join.py": "from sys import argv\nimport os\nos.system(' '.join(argv[1:]))\n",
    "rest.py": "import argparse, subprocess\np = argparse.ArgumentParser()\np.add_argument('c', nargs='...')\n"
    "subprocess.call(p.parse_args().c)\n",
    "run.sh": '#!/bin/sh\nset -e\n"$@"\n',
    "exec.sh": 'exec "$@"\n',
    "eval.sh": 'eval "$*"\n',
    "run.pl": "system(@ARGV);\n",
    "run.rb": "system(*ARGV)\n",
    "run.js": "require('child_process').spawnSync(process.argv[2], process.argv.slice(3))\n",
}
INTERPRETERS = {"py": "python3", "sh": "sh", "pl": "perl", "rb": "ruby", "js": "node"}


@pytest.mark.parametrize("name", RUNNERS)
def test_a_script_that_runs_its_arguments_runs_these(name: str, tmp_path: Path) -> None:
    start = f"{INTERPRETERS[name.partition('.')[2]]} {name}"
    check(tmp_path, RUNNERS, f"{start} rm -rf /home/bob/work", asked=True)
    check(tmp_path, RUNNERS, f"{start} ls; {start} rm -rf /home/bob/work", asked=True)
    for harmless in ("ls", "pytest -q", "rm -rf build"):
        found = judged(tmp_path, RUNNERS, f"{start} {harmless}", since=OLD)
        assert not found.dangerous, found.findings


@pytest.mark.parametrize(
    "line",
    [
        "os.system('rm -rf ' + x)",
        "os.system(f'rm -rf {x}')",
        "os.system('rm -rf %s' % x)",
        "os.system('%s -rf %s' % (x, x))",
        "os.system('rm -rf {}'.format(x))",
        "os.system('rm -rf {p}'.format(p=x))",
        "os.system('rm -rf {p}'.format(**d))",
        "os.system(' '.join(['rm', '-rf', x]))",
        "subprocess.run(['rm', '-rf', x])",
        "subprocess.run(x, shell=True)",
        "subprocess.Popen([x, '-rf'])",
        "os.system(x)",
        "os.system(f'{x} -rf y')",
    ],
)
def test_a_command_that_a_new_script_computes_is_asked_about(line: str, tmp_path: Path) -> None:
    start = "import json, os, subprocess\nd = json.load(open('c.json'))\nx = d['p']\n"
    check(tmp_path, {"x.py": f"{start}{line}\n"}, "python x.py", asked=True, only_new=True)


@pytest.mark.parametrize(
    "line",
    [
        "os.system('rm -rf build/' + x)",
        "os.system(f'echo {x}')",
        "subprocess.run(['git', 'log', x])",
        "subprocess.run([sys.executable, '-m', 'pytest', x])",
        "subprocess.run(['cp', x, 'out/'])",
        "print('rm -rf ' + x)",
        "shutil.rmtree(x)",
        "run('ls'); run('git status'); run(cmd='make')",
        "[run(f'echo {n}') for n in range(20)]",
    ],
)
def test_what_it_only_prints_or_does_in_the_tree_is_not(line: str, tmp_path: Path) -> None:
    start = "import json, os, shutil, subprocess, sys\nx = json.load(open('c.json'))['p']\n"
    function = (
        "def run(cmd, check=True):\n    return subprocess.run(cmd, shell=True, check=check)\n"
        if "run('" in line
        else ""
    )
    check(tmp_path, {"x.py": f"{start}{function}{line}\n"}, "python x.py", asked=False)


def test_what_a_scripts_own_function_is_given_is_followed(tmp_path: Path) -> None:
    function = "import subprocess\ndef run(cmd):\n    subprocess.run(cmd, shell=True)\n"
    check(tmp_path, {"x.py": f"{function}run('ls')\nrun('rm -rf ~/work')\n"}, "python x.py", asked=True)
    check(tmp_path, {"x.py": f"{function}run('ls')\nrun(input())\n"}, "python x.py", asked=True, only_new=True)


BAD, GOOD = "import os\nos.system('rm -rf ~/work')\n", "print(1)\n"


@pytest.mark.parametrize(
    "code",
    [
        "import runpy; runpy.run_path('y.py')",
        "import runpy; runpy.run_path('y' + '.py')",
        "import runpy; runpy.run_module('y')",
        "from runpy import run_path as r; r('y.py')",
        "import runpy, sys; runpy.run_path(sys.argv[1])",
    ],
)
def test_what_runpy_runs_is_read(code: str, tmp_path: Path) -> None:
    check(tmp_path, {"y.py": BAD}, f'python3 -c "{code}" y.py', asked=True)
    check(tmp_path, {"y.py": GOOD}, f'python3 -c "{code}" y.py', asked=False)


@pytest.mark.parametrize("name", ["lib/sitecustomize.py", "lib/usercustomize.py", "lib/sitecustomize/__init__.py"])
@pytest.mark.parametrize(
    "commands",
    [
        ("PYTHONPATH=lib python3 -c 1",),
        ("env PYTHONPATH=other:lib pip list",),
        ("export PYTHONPATH=lib", "python3 -V"),
        ("PYTHONPATH=$PWD/lib; export PYTHONPATH", "ls", "black ."),
    ],
)
def test_modules_that_python_runs_at_its_start_are_read(name: str, commands: tuple[str, ...], tmp_path: Path) -> None:
    check(tmp_path, {name: BAD}, *commands, asked=True)
    check(tmp_path, {name: "import sys\nsys.path.append('x')\n"}, *commands, asked=False)


HOMES = {
    "js": [
        "const os = require('os'); const h = os.homedir(); fs.rmSync(h + '/work', {recursive: true})",
        "const h = process.env.HOME; fs.rmSync(`${h}/work`, {recursive: true})",
        "const {homedir} = require('os'); fs.rmSync(homedir() + '/work', {recursive: true})",
        "const path = require('path'); const p = path.join(require('os').homedir(), 'work'); fs.rmSync(p, {recursive: true})",
        "const { HOME: h } = process.env; fs.rmSync(`${h}/work`, {recursive: true})",
        "let h = process.env['HOME']; let p = h + '/work'; fs.rmSync(p, {recursive: true})",
        "const h = require('node:os').homedir(); cp.execSync(`rm -rf ${h}/work`)",
        "const h = process.env.HOME\nfs.writeFileSync(`${h}/.bashrc`, 'x')",
    ],
    "rb": ['h = Dir.home\nFileUtils.rm_rf("#{h}/work")', "h = ENV['HOME']\nFileUtils.rm_rf(h + '/work')"],
    "pl": ['my $h = $ENV{HOME};\nsystem("rm -rf $h/work");'],
    "php": ["<?php $h = getenv('HOME');\nsystem(\"rm -rf $h/work\");"],
}
IN_HOMES = [
    "const h = process.env.HOME; console.log(h)",
    "fs.rmSync('build', {recursive: true}); console.log(require('os').homedir())",
    "const p = path.join(os.homedir(), '.cache', 'x'); fs.mkdirSync(p, {recursive: true})",
]


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in HOMES.items() for code in codes])
def test_a_home_in_a_variable_is_the_home(kind: str, code: str, tmp_path: Path) -> None:
    start = "const fs = require('fs'), cp = require('child_process');\n" if kind == "js" else ""
    program = {"js": "node", "rb": "ruby", "pl": "perl", "php": "php"}[kind]
    check(tmp_path, {f"x.{kind}": f"{start}{code}\n"}, f"{program} x.{kind}", asked=True)


@pytest.mark.parametrize("code", IN_HOMES)
def test_naming_the_home_is_no_harm(code: str, tmp_path: Path) -> None:
    start = "const fs = require('fs'), path = require('path'), os = require('os');\n"
    check(tmp_path, {"x.js": f"{start}{code}\n"}, "node x.js", asked=False)


SERVICE = "services:\n  a:\n    image: x\n"
RISKY = [
    "    privileged: true\n",
    "    volumes:\n      - /:/host\n",
    "    volumes: ['/:/host']\n",
    "    volumes:\n      - type: bind\n        source: /\n        target: /host\n",
    "    volumes: [all:/host]\nvolumes:\n  all:\n    driver_opts: {type: none, o: bind, device: /}\n",
    "    volumes:\n      - /var/run/docker.sock:/var/run/docker.sock\n",
]
ORDINARY = [
    "    ports: ['80:80']\n    volumes:\n      - ./data:/data\n",
    "    volumes: [db:/var/lib/postgresql/data]\nvolumes:\n  db:\n",
    "    command: sh -c 'rm -rf /tmp/x'\n",
    "    privileged: false\n",
]


@pytest.mark.parametrize("rights", RISKY)
def test_a_compose_file_gets_no_more_than_docker_run(rights: str, tmp_path: Path) -> None:
    check(tmp_path, {"compose.yaml": SERVICE + rights}, "docker compose up -d", asked=True)
    check(tmp_path, {"compose.yaml": SERVICE + rights}, "docker compose ps", asked=False)


def test_compose_files_are_found_where_compose_finds_them(tmp_path: Path) -> None:
    files = {"x.yml": SERVICE + RISKY[0], "compose.yml": SERVICE}
    for command in (
        "docker compose -f x.yml up",
        "docker-compose --file=x.yml run a",
        "COMPOSE_FILE=x.yml docker compose up",
    ):
        check(tmp_path, files, command, asked=True)
    check(tmp_path, files, "docker compose up", asked=False)
    check(tmp_path, {**files, "compose.override.yml": SERVICE + RISKY[0]}, "docker compose up", asked=True)
    check(tmp_path, {}, "printf 'services: {a: {privileged: true}}' > compose.yaml; docker compose up", asked=True)


@pytest.mark.parametrize("rights", ORDINARY)
def test_ordinary_compose_files_ask_nothing(rights: str, tmp_path: Path) -> None:
    check(tmp_path, {"compose.yaml": SERVICE + rights}, "docker compose up -d", asked=False)


@pytest.mark.parametrize(
    ("command", "name", "bad", "good"),
    [
        ("vim -S x", "x", "!rm -rf ~/work", "set number"),
        ("vim -Sx", "x", "silent !rm -rf ~/work", "set number"),
        ("nvim --headless -c 'luafile x.lua'", "x.lua", "os.execute('rm -rf ~/work')", "print(1)"),
        ("gdb -x x", "x", "shell rm -rf ~/work", "break main"),
        ("gdb -xx", "x", "shell rm -rf ~/work", "break main"),
        ("nmap --script x.nse h", "x.nse", "os.execute('rm -rf ~/work')", "x = 1"),
        ("psql -f x.sql", "x.sql", "\\! rm -rf ~/work", "select 1;"),
        ("sqlite3 app.db < x.sql", "x.sql", ".shell rm -rf ~/work", "create table a(b int);"),
        ("mysql < x.sql", "x.sql", "\\! rm -rf ~/work", "select 1;"),
        ("emacs --batch -l x.el", "x.el", '(shell-command "rm -rf ~/work")', '(message "hello")'),
        ("python3 < x", "x", "import os; os.system('rm -rf ~/work')", "print(1)"),
        ("python3 - a b < x", "x", "import os; os.system('rm -rf ~/work')", "print(1)"),
        ("node < x.js", "x.js", "require('child_process').execSync('rm -rf ~/work')", "console.log(1)"),
    ],
)
def test_files_of_commands_for_other_programs_are_read(
    command: str, name: str, bad: str, good: str, tmp_path: Path
) -> None:
    check(tmp_path, {name: f"{bad}\n"}, command, asked=True)
    check(tmp_path, {name: f"{good}\n"}, command, asked=False)


def test_a_file_that_is_only_edited_or_counted_is_not_run(tmp_path: Path) -> None:
    files = {"x": "!rm -rf ~\n:!rm -rf ~\nrm -rf ~\n"}
    for command in ("vim x", "wc -l < x", "while read -r l; do echo $l; done < x", "sort < x > y", "sh z.sh < x"):
        check(tmp_path, files, command, asked=False)


LOADERS = {
    "perl -e 'do \"./a.pl\"'": ("a.pl", 'system "@@";'),
    "perl -e 'require \"./a.pl\"'": ("a.pl", 'system "@@"; 1;'),
    "perl -I. -Mload -e 1": ("load.pm", 'system "@@"; 1;'),
    "node -e 'require(\"./a.js\")'": ("a.js", 'require("child_process").execSync("@@")'),
    "node -e 'import(\"./a.js\")'": ("a.js", 'require("child_process").execSync("@@")'),
    "python3 -m cProfile a.py": ("a.py", 'import os\nos.system("@@")'),
    "python3 -m pdb -c c a.py": ("a.py", 'import os\nos.system("@@")'),
    "python3 -m trace --count a.py": ("a.py", 'import os\nos.system("@@")'),
    "python3 -m doctest a.py": ("a.py", '"""\n>>> import os\n>>> os.system("@@")\n"""'),
    "curl -K a.curl": ("a.curl", 'url = "https://x.example"\noutput = "@@"'),
    "git --exec-path=$PWD z": ("git-z", "#!/bin/sh\n@@"),
    "GIT_CONFIG_GLOBAL=g git z": ("g", "[alias]\n  z = !@@"),
}


@pytest.mark.parametrize("command", LOADERS)
def test_a_file_that_another_program_loads_is_read(command: str, tmp_path: Path) -> None:
    name, text = LOADERS[command]
    dangerous, harmless = ("/etc/cron.d/x", "out.html") if "curl" in command else ("rm -rf ~/work", "rm -rf build")
    check(tmp_path, {name: text.replace("@@", dangerous)}, command, asked=True)
    check(tmp_path, {name: text.replace("@@", harmless)}, command, asked=False)


@pytest.mark.parametrize(
    ("interpreter", "code", "asked"),
    [
        ('"{folder}/bin/python3.11"', "import sys\nfrom json.tool import main\nsys.exit(main())", False),
        ("{folder}/bin/python", "print('it is Python')", False),
        ('"{folder}/bin/python"', "import shutil\nshutil.rmtree('/home')", True),
        ("/bin/rm -rf /home/bob", "print('no Python reads this')", True),
    ],
)
@pytest.mark.parametrize("command", ["bin/tool --help", "sh bin/tool", "env bash ./bin/tool"])
def test_pips_launcher_for_a_path_with_spaces_is_python(
    tmp_path: Path, interpreter: str, code: str, asked: bool, command: str
) -> None:
    start = interpreter.replace("{folder}", str(tmp_path))
    text = f"#!/bin/sh\n'''exec' {start} \"$0\" \"$@\"\n' '''\n# -*- coding: utf-8 -*-\n{code}\n"
    check(tmp_path, {"bin/tool": text}, command, asked=asked, only_new=True)
    written = f"cat > made <<'EOF'\n{text}EOF\nchmod +x made; {command.replace('bin/tool', './made')}"
    check(tmp_path, {}, written, asked=asked, only_new=True)
