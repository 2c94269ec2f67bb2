"""Make a small root file system out of this machine's own programs: no registry can be reached."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

NAME = "handrail-test:1"
_PACKAGES = (
    "bash coreutils diffutils findutils grep git gzip mawk ncurses-base ncurses-bin passwd procps sed tar util-linux"
).split()
_PYTHON = Path("/usr/bin/python3")
_SMALL = ("bash",)
_PARTS_OF_SMALL_PYTHON = {"collections", "ctypes", "encodings", "importlib", "json", "lib-dynload", "re"}
_LEFT_OUT_OF_PYTHON = {
    "__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tkinter", "turtledemo",
}  # fmt: skip
_FOLDERS = "usr usr/bin usr/sbin usr/lib usr/lib64 etc root home proc sys dev run tmp var var/tmp workspace".split()
_LINKS = {
    "bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/bin/sh": "bash", "usr/bin/awk": "mawk",
}  # fmt: skip
_GUEST = 1000
_TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/bash\nguest:x:{_GUEST}:{_GUEST}:guest:/home/guest:/bin/bash\n",
    "etc/group": f"root:x:0:\ntty:x:5:\nguest:x:{_GUEST}:\n",
    "etc/hostname": "sandbox\n",
}


# Debian's is in Perl.
_ADD_USER = '#!/bin/bash\nexec useradd --create-home "${@: -1}"\n'


def write(target: IO[bytes], *, is_small: bool = False) -> None:
    """The file system as a tar stream: about 60 MB, half a second. A small one has what a shell of ours needs."""
    programs = sorted(_programs(_SMALL if is_small else _PACKAGES))
    python = sorted(_python_files(is_small))
    with_libraries = [*programs, *(file for file in python if file.suffix == ".so")]
    files = {*programs, *python, *_libraries(with_libraries), *_data()}
    with tarfile.open(fileobj=target, mode="w|", bufsize=1 << 20) as tar:
        for folder in _FOLDERS:
            _add(tar, folder, type=tarfile.DIRTYPE, mode=0o1777 if folder.endswith("tmp") else 0o755)
        _add(tar, "home/guest", type=tarfile.DIRTYPE, mode=0o755, uid=_GUEST, gid=_GUEST)
        for link, target in _LINKS.items():
            _add(tar, link, type=tarfile.SYMTYPE, linkname=target)
        for name, text in _TEXTS.items():
            _add(tar, name, text.encode())
        _add(tar, "usr/sbin/adduser", _ADD_USER.encode(), mode=0o755)
        for file in sorted(files):
            tar.add(file, arcname=str(file).lstrip("/"), recursive=False)


def _add(tar: tarfile.TarFile, name: str, content: bytes = b"", **properties: object) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for key, value in properties.items():
        setattr(entry, key, value)
    tar.addfile(entry, io.BytesIO(content))


def _programs(packages: Iterable[str]) -> Iterator[Path]:
    for line in _output("dpkg-query", "--listfiles", *packages).splitlines():
        if re.match(r"/(usr/)?s?bin/.", line) and os.path.exists(line):
            yield _placed(line)
    yield from (_PYTHON, _PYTHON.resolve())


def _python_files(is_small: bool) -> Iterator[Path]:
    library = Path(_output(str(_PYTHON), "-Ic", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip())
    for folder, folders, names in os.walk(library):
        folders[:] = [name for name in folders if name not in _LEFT_OUT_OF_PYTHON and not name.startswith("config-")]
        if is_small and Path(folder) == library:
            folders[:] = [name for name in folders if name in _PARTS_OF_SMALL_PYTHON]
        yield from (Path(folder, name) for name in names)


def _libraries(files: Iterable[Path]) -> set[Path]:
    """What the loader would load for them, each as the link it is asked for by and as the file behind that."""
    loader = re.search(r"/\S+/ld-linux\S+", _output("ldd", "/bin/bash"))
    assert loader, "ldd does not name the loader"

    def needed(file: Path) -> list[str]:
        listed = subprocess.run([loader[0], "--list", file], capture_output=True, text=True, check=False).stdout
        return re.findall(r"/\S+\.so\S*", listed)

    with ThreadPoolExecutor() as pool:
        found = {loader[0]}.union(*pool.map(needed, files))
    return {path for name in found for path in (_placed(name), Path(name).resolve())}


def _data() -> Iterator[Path]:
    """Terminal descriptions, and the locale that knows Unicode."""
    for folder in ("/usr/lib/locale/C.utf8", "/lib/terminfo", "/usr/lib/terminfo"):
        for parent, _, names in os.walk(folder):
            yield from (_placed(os.path.join(parent, name)) for name in names)


def _placed(name: str) -> Path:
    """Its path without links on the way: `/bin` is a link to `/usr/bin` in the image too."""
    return Path(os.path.realpath(os.path.dirname(name)), os.path.basename(name))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
