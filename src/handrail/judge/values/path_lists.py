"""Paths that matter: system directories, key files, files that run by themselves, devices. They are in `path_lists.txt`."""

from __future__ import annotations

from .data_files import Patterns, read_tables

_TABLES = read_tables(__file__)
CLASSES = _TABLES["classes"]
"""What each class of paths is."""
PATTERNS = Patterns(__file__)
TEMP = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")
_LISTS = {name: tuple(paths.split()) for name, paths in _TABLES[""].items()}
SYSTEM_TOP = frozenset(_LISTS["system top"])
SYSTEM_ROOTS = frozenset(_LISTS["system roots"])
STARTUP_DIRS = _LISTS["startup dirs"]
CREDENTIALS = _LISTS["credentials"]
CREDENTIAL_NAMES = _LISTS["credential names"]
STARTUP = _LISTS["startup"]
HISTORY = _LISTS["history"]
OWN = _LISTS["own"]
SETTINGS_ROOTS = frozenset(_LISTS["settings roots"])
DATA_NAMES = _LISTS["data names"]
