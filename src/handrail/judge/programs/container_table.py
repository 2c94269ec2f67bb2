"""Programs that run a command somewhere else, behind a sub-command: containers, clusters, environments of languages.

A new one is one line in `container_table.txt`.
"""

from __future__ import annotations

from ..values.data_files import read_records, read_tables
from .wrapper_options import Container

_TABLES = read_tables(__file__)
CONTAINERS = read_records(_TABLES["containers"], Container)
REMOTE: dict[str, tuple[str, int]] = {name: (text[2:], int(text[:1])) for name, text in _TABLES["remote"].items()}
"""Programs that pass their words to a shell on another machine: options with a value, operands before the words."""
