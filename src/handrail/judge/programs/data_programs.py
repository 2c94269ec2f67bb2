"""Programs whose operands are data, files or free text: a destructive word there is not a sub-command."""

from __future__ import annotations

from ..values.data_files import read_tables

DATA_PROGRAMS = frozenset(" ".join(read_tables(__file__)[""].values()).split())
