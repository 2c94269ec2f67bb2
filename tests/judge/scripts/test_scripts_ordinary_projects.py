"""The everyday commands of ordinary projects ask nothing, however new their files are."""

# ruff: noqa: E501  the lines are those of the projects' files
from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess

PYTHON = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n[project]\nname = "tool"\nversion = "1"\n'
    '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "setup.py": "import os\nfrom setuptools import setup\n\nhere = os.path.dirname(os.path.abspath(__file__))\n"
    'long = open(os.path.join(here, "README.md")).read()\nsetup(long_description=long)\n',
    "tox.ini": "[tox]\nenvlist = py311,lint\n[testenv]\ncommands = pytest {posargs}\n[testenv:lint]\ncommands =\n"
    "    ruff check src\n    {envbindir}/python -m mypy src\n",
    "noxfile.py": "import shutil\nimport nox\n\n@nox.session\ndef tests(session):\n    shutil.rmtree('build', ignore_errors=True)\n"
    "    session.run('pytest', *session.posargs)\n",
    "src/tool/__init__.py": "",
    "src/tool/__main__.py": "from tool.run import main\nmain()\n",
    "src/tool/run.py": "import subprocess, sys, os, tempfile, shutil\n\ndef main():\n    command = sys.argv[1:]\n"
    "    subprocess.run(command, check=True)\n    folder = tempfile.mkdtemp()\n    shutil.rmtree(folder)\n"
    "    cache = os.path.join(os.environ.get('XDG_CACHE_HOME', 'x'), 'tool')\n    os.makedirs(cache, exist_ok=True)\n",
    "tests/conftest.py": "import pytest, shutil\n\n@pytest.fixture\ndef work(tmp_path):\n    yield tmp_path\n    shutil.rmtree(tmp_path)\n",
    "tests/test_run.py": "import os, signal, subprocess, sys, socket\nfrom tool.run import main\n\ndef test_run(work):\n"
    "    subprocess.run([sys.executable, '-m', 'tool', 'ls'], cwd=work)\n    os.remove(work / 'out')\n"
    "    with socket.create_connection(('127.0.0.1', 80)) as one:\n        one.send(b'GET /')\n"
    "    process = subprocess.Popen(['sleep', '9'])\n    os.kill(process.pid, signal.SIGTERM)\n    assert open('/etc/hosts').read()\n",
    "Makefile": ".PHONY: test lint clean install docs\nPYTHON ?= python3\nSRC := $(shell git ls-files 'src/*.py')\n\n"
    "install:\n\t$(PYTHON) -m pip install -e '.[dev]'\ntest: install\n\t$(PYTHON) -m pytest $(ARGS)\nlint:\n\truff check $(SRC)\n"
    "clean:\n\trm -rf build dist *.egg-info .pytest_cache\n\tfind . -name __pycache__ -exec rm -rf {} +\n"
    "docs:\n\tcd docs && sphinx-build -b html . _build\n",
    "docs/conf.py": "import os, sys\nsys.path.insert(0, os.path.abspath('../src'))\nproject = 'tool'\n",
    "scripts/release.sh": 'set -euo pipefail\ncd "$(dirname "$0")/.."\nversion=${1:?}\nrm -rf dist\npython -m build\n'
    'tmp=$(mktemp -d)\ntrap \'rm -rf "$tmp"\' EXIT\ntar czf "$tmp/x.tgz" dist\ngit tag -a "v$version" -m "$version"\n',
    ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - id: ruff\n    entry: ruff check --fix\n    language: system\n",
}
NODE = {
    "package.json": '{"name": "app", "scripts": {"build": "rimraf dist && tsc -p . && node scripts/copy.js", "test": "jest --ci", '
    '"lint": "eslint . --fix", "prepare": "husky install", "start": "node server.js", "clean": "rm -rf dist coverage", '
    '"ci": "npm run lint && npm test && npm run build"}}',
    "scripts/copy.js": "const fs = require('fs');\nconst path = require('path');\n"
    "fs.rmSync(path.join(__dirname, '..', 'dist'), {recursive: true});\nfs.cpSync('public', 'dist');\n",
    "server.js": "const express = require('express');\nconst app = express();\napp.get('/home', (req, res) => res.send('x'));\n"
    "app.delete('/users/:id', (req, res) => res.end());\napp.listen(process.env.PORT);\n",
    "src/a.test.js": "const { execFileSync } = require('child_process');\ntest('x', () => { execFileSync(process.execPath, ['server.js']); });\n",
    "jest.config.js": "module.exports = { testEnvironment: 'node' };\n",
    "eslint.config.js": "export default [];\n",
}
C = {
    "Makefile": "PREFIX ?= /usr/local\nCC ?= cc\nOBJ = main.o util.o\n\nall: tool\n\ntool: $(OBJ)\n\t$(CC) -o $@ $^ $(LDFLAGS)\n"
    "%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@\ninstall: all\n\tmkdir -p $(DESTDIR)$(PREFIX)/bin\n"
    "\tinstall -m 755 tool $(DESTDIR)$(PREFIX)/bin/tool\nclean:\n\trm -f tool *.o\n\trm -rf build\ncheck: all\n\tsh tests/run.sh ./tool\n",
    "tests/run.sh": 'tool=$1\nfor file in tests/*.in; do\n  "$tool" < "$file" > out.txt || exit 1\n  diff -u "${file%.in}.out" out.txt\n'
    "done\nrm -f out.txt\n",
    "main.c": '#include <stdio.h>\nint main(void) { FILE *f = fopen("out.txt", "w"); fclose(f); return 0; }\n',
    "util.c": "int x(void) { return 1; }\n",
    "CMakeLists.txt": "project(tool C)\nfind_package(Git)\nexecute_process(COMMAND ${GIT_EXECUTABLE} describe OUTPUT_VARIABLE V)\n"
    "add_executable(tool main.c)\nfile(WRITE ${CMAKE_BINARY_DIR}/v.h ${V})\ninstall(TARGETS tool DESTINATION bin)\n",
}
COMMANDS = [
    *((PYTHON, command) for command in (
        "pip install .", "pip install -e '.[dev]'", "python -m build", "pytest", "pytest -q tests/test_run.py", "python -m pytest",
        "python -m unittest discover", "tox", "tox -e lint", "nox", "make test", "make lint", "make clean", "make install",
        "make docs", "python -m tool ls", "bash scripts/release.sh 1.2", "pre-commit run --all-files", "python setup.py sdist",
        "uv run pytest", "coverage run -m pytest",
    )),
    *((NODE, command) for command in (
        "npm install", "npm ci", "npm test", "npm run build", "npm run lint", "npm run clean", "npm run ci", "npm start", "yarn build",
        "pnpm test", "node server.js", "npx jest", "npx eslint .",
    )),
    *((C, command) for command in (
        "make", "make -j8 all", "make check", "make clean", "make install DESTDIR=out", "cmake -B build", "cmake --build build",
        "gcc -O2 -o tool main.c util.c && ./tool", "sh tests/run.sh ./tool",
    )),
]  # fmt: skip


@pytest.mark.parametrize("since", [0.0, float("inf")], ids=["new", "old"])
@pytest.mark.parametrize(("files", "command"), COMMANDS, ids=[command for _, command in COMMANDS])
def test_an_everyday_command_asks_nothing(files: dict[str, str], command: str, since: float, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(since)).findings
    assert not found, [(finding.rule, finding.why, finding.argv) for finding in found]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tox.ini", "[tox]\n[testenv:style]\ncommands = ruff check\n[testenv:wipe]\ncommands = rm -rf /srv/data\n"),
        (
            "pyproject.toml",
            '[tool.tox.env.style]\ncommands = [["ruff"]]\n[tool.tox.env.wipe]\ncommands = [["rm", "-rf", "/srv/data"]]\n',
        ),
    ],
)
def test_only_the_environments_of_tox_that_are_named_count(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    def asks(command: str) -> bool:
        return assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(float("inf"))).dangerous

    assert not asks("tox -e style")
    assert asks("tox -e style,wipe")
    assert asks("tox")
