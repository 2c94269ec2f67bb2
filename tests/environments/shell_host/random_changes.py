"""Random changes to a small tree, as shell commands: what a program can do to files, in every combination."""

from __future__ import annotations

import random
from pathlib import Path

NAMES = ("a", "b", "c", "dir", "dir/x", "dir/y", "dir/sub", "dir/sub/z", "other", "other/p", "link", "new")

CHANGES = (
    "echo {r} > {p}",
    "echo {r} >> {p}",
    "rm -f {p}",
    "rm -rf {p}",
    "mkdir -p {p}/many; touch {p}/many/f{{1..120}}",
    "mkdir -p {p}/many; touch {p}/many/f{{1..120}}; rm -rf {p}",
    "mkdir -p {p}",
    "mkdir -p {p}/deep/er; echo {r} > {p}/deep/er/f",
    "mv {p} {q}",
    "mv -T {p} {q}",
    "cp -a {p} {q}",
    "cp -a {p} {q}; rm -rf {p}",
    "ln {p} {q}",
    "ln -sfn {p} {q}",
    "ln {p} {q}; rm -f {p}",
    "chmod {m} {p}",
    "touch -d @{t} {p}",
    "truncate -s {n} {p}",
    "sed -i s/1/22/ {p}",
    "sed -i s/1/22/ {p}; rm -f {p}; echo {r} > {p}",
    "dd if=/dev/zero of={p} bs=1 count=3 seek=2 conv=notrunc status=none",
    "head -c 90000 /dev/zero > {p}",
    "head -c 90000 /dev/zero > {p}; echo {r} > {p}",
    "echo {r} > tmp.{r}; mv -T tmp.{r} {p}",
    "mkdir tmp.{r}; mv {p} tmp.{r}/; mv tmp.{r} {q}",
    "mkfifo {p}",
    "tar cf t.tar dir; rm -rf dir; tar xf t.tar; rm t.tar",
    'python3 -Sc \'import os; os.setxattr("{p}", "user.k", b"{r}")\'',
    'python3 -Sc \'import mmap; f = open("{p}", "r+b"); mmap.mmap(f.fileno(), 0)[0] = 65\'',
    "find {p} -delete",
    "(cd dir && echo {r} > ../{q} && mv x y)",
    "cp -al {p} {q}",
    "cp -alf {p} {q}",
    "cp -aT --remove-destination {p} {q}",
    "ln -f {p} {q}",
    "install -m {m} {p} {q}",
    "chmod -R {m} {p}",
    "touch -h -d @{t} {p}",
    "rm -rf {p}/*",
    "rmdir {p}; mkdir {p}",
    "sed -i.bak s/1/22/ {p}; mv {p}.bak {q}",
    "fallocate -l 200000 {p}",
    "fallocate -p -o 0 -l 2 {p}",
    "exec 3<>{p}; mv {p} {q}; echo {r} >&3",
    "exec 3>>{p}; mv {p} {q}; echo {r} >&3; rm -f {q}; echo {r} >&3",
    "exec 3<{p}; chmod {m} /dev/fd/3; rm -f {p}; echo {r} > {p}",
    "cd {p} && mv ../{p} ../tmp.{r} && echo {r} > new && mkdir -p sub && rm -f x; mv ../tmp.{r} ../{q}",
    'python3 -Sc \'import ctypes; ctypes.CDLL(None).renameat2(-100, b"{p}", -100, b"{q}", 2)\'',
    'python3 -Sc \'import os; f = os.open("dir", os.O_TMPFILE | os.O_WRONLY); os.write(f, b"{r}"); '
    'os.link(f"/proc/self/fd/{{f}}", "{p}", follow_symlinks=True)\'',
)


def make_tree(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").write_text("1 one\n")
    (folder / "b").write_text("11\n" * 30_000)
    (folder / "dir" / "sub").mkdir(parents=True)
    (folder / "dir" / "x").write_text("1")
    (folder / "dir" / "sub" / "z").write_bytes(bytes(range(256)))
    (folder / "link").symlink_to("dir/x")
    (folder / "hard").hardlink_to(folder / "a")


def random_call(choice: random.Random) -> str:
    """One to four changes. Some fail: what never happened must not trouble an undo."""
    return "; ".join(_change(choice) for _ in range(choice.randint(1, 4))) + "; true"


def _change(choice: random.Random) -> str:
    first, second = choice.sample(NAMES, 2)
    change = choice.choice(CHANGES)
    if change.startswith("cp") and second.startswith(f"{first}/"):
        first, second = second, first  # a copy of a folder into itself depends on the order of its files on the disk
    values = {
        "p": first,
        "q": second,
        "r": choice.randint(100, 999),
        "m": choice.choice(("600", "755", "444", "700")),
        "t": choice.randint(1, 2_000_000_000),
        "n": choice.choice((0, 1, 5, 100_000)),
    }
    # Opening a pipe would wait for its other end.
    return f"timeout 5 bash -c '{_quoted(change.format(**values))}' 2>/dev/null"


def _quoted(command: str) -> str:
    return command.replace("'", "'\\''")
