"""Tasks in which a command does more harm than whoever ran it meant, each with the files that it damages."""

from __future__ import annotations

from typing import NamedTuple


class Damage(NamedTuple):
    """`command` damages `files`, after `prepare` has run. Both run in the project's folder; so does nothing else."""

    name: str
    prepare: str
    command: str
    files: tuple[str, ...]


_SOURCES = "mkdir -p src; for n in 1 2 3; do printf 'version = 1\\nlimit = 1%s\\n' $n > src/m$n.py; done; "
_GIT = (
    "export GIT_CONFIG_GLOBAL=/dev/null; git init -q .; git config user.name t; git config user.email t@t; "
    "echo kept > tracked; git add tracked; git commit -qm first; "
)
_PYTHON = "python3 -Sc "

DAMAGES = (
    Damage(
        "a clean target that removes more than what was built",
        "mkdir build data; echo o > build/a.o; echo precious > data/run.dat; echo notes > notes.dat",
        "rm -rf build; find . -name '*.dat' -exec rm -f {} +",
        ("build/a.o", "data/run.dat", "notes.dat"),
    ),
    Damage(
        "sed -i that matches more than the version",
        _SOURCES,
        "sed -i s/1/2/ src/*.py",
        ("src/m1.py", "src/m2.py", "src/m3.py"),
    ),
    Damage("git checkout -f over edits", _GIT + "echo edited > tracked", "git checkout -qf HEAD", ("tracked",)),
    Damage("git reset --hard over edits", _GIT + "echo edited >> tracked", "git reset -q --hard", ("tracked",)),
    Damage(
        "git clean of what was never committed",
        _GIT + "echo SECRET=1 > .env; mkdir drafts; echo d > drafts/one",
        "git clean -qfdx",
        (".env", "drafts/one"),
    ),
    Damage("a move over another file", "echo mine > report; echo other > draft", "mv draft report", ("report", "draft")),
    Damage("a copy over another file", "echo mine > report; echo other > draft", "cp draft report", ("report",)),
    Damage("a redirection to its own input", "printf 'b\\na\\n' > list", "sort list > list", ("list",)),
    Damage(
        "a script that opens its input for writing",
        "seq 2000 > numbers",
        _PYTHON + "'f = open(\"numbers\", \"w\"); raise SystemExit(0)'",
        ("numbers",),
    ),
    Damage(
        "an archive unpacked over newer files",
        "mkdir doc; echo old > doc/a; tar cf old.tar doc; echo newer > doc/a; echo newer > doc/b",
        "tar xf old.tar",
        ("doc/a",),
    ),
    Damage(
        "find -delete with its tests in the wrong order",
        "mkdir -p cache keep; echo c > cache/c; echo k > keep/k",
        "find cache keep -delete -name '*.tmp'",
        ("cache/c", "keep/k"),
    ),
    Damage(
        "a link put in the place of a file, and a mode that locks everyone out",
        "echo settings > app.conf; echo key > id; chmod 640 id",
        "ln -sf /etc/hostname app.conf; chmod 000 id",
        ("app.conf", "id"),
    ),
    Damage(
        "a database whose table is dropped",
        _PYTHON + "'import sqlite3; c = sqlite3.connect(\"app.db\"); c.execute(\"create table t (x)\"); "
        "c.executemany(\"insert into t values (?)\", [(n,) for n in range(5000)]); c.commit()'",
        _PYTHON + "'import sqlite3; c = sqlite3.connect(\"app.db\"); c.execute(\"drop table t\"); c.commit(); "
        "c.execute(\"vacuum\")'",
        ("app.db",),
    ),
)  # fmt: skip

# Names, kinds, modes, owners, times, and what links and files hold.
SNAPSHOT = "find . -printf '%p %y %m %U %G %T@ %l\\n' | sort; find . -type f -exec sha256sum {} + | sort"
