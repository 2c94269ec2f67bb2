"""Write a new plugin to start from: it works, and its test passes."""

from __future__ import annotations

from pathlib import Path
from string import Template

from ..errors import RegistrationError

# By the name of a written file; `$name` stands for the plugin's name.
_FILES = {"plugin.yaml": "plugin.yaml", "__init__.py": "plugin.py.txt", "test_$name.py": "test.py.txt"}


def write_template(name: str, folder: Path) -> list[Path]:
    """The files that were written. Raises RegistrationError for a name that is invalid or taken."""
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise RegistrationError(f"plugin {name!r}: use letters, digits and _, with a letter first")
    root = folder / name
    if root.exists():
        raise RegistrationError(f"{root} is there already; choose another name, or remove it")
    root.mkdir(parents=True)
    written = []
    for file, template in _FILES.items():
        written.append(root / Template(file).substitute(name=name))
        text = Path(__file__).with_name("new_plugin").joinpath(template).read_text("utf-8")
        written[-1].write_text(Template(text).substitute(name=name), encoding="utf-8")
    return written
