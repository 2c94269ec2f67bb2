"""Programs that run another program given on their own command line. A new one is one line in `wrapper_table.txt`."""

from __future__ import annotations

from ..values.data_files import read_records, read_tables
from .wrapper_options import Wrapper

WRAPPERS = read_records(read_tables(__file__)[""], Wrapper)
TERMINALS = frozenset("alacritty foot gnome-terminal kitty konsole wezterm x-terminal-emulator xterm".split())
"""Terminals run what follows `-e`, `-x` or `--`."""
