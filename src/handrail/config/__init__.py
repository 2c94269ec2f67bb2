"""The configuration: where its file is, how it is loaded, checked and changed. What can be set is in `handrail.settings`.

`store` loads it, with the environment over the file, and keeps back what became weaker; `paths` says where things are, and has
safe reading and writing; `validation` reads and checks the text; `config_file` changes it. Beside it: `keys` (API keys) and
`trust` (what the user has trusted).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module
from ..errors import ConfigError
from ..settings.schema import Config, json_schema
from .paths import cache_dir, config_path, state_dir
from .store import load_config, located, parse_value, read_config

if TYPE_CHECKING:
    from .config_file import ConfigFile

__all__ = [
    "Config",
    "ConfigError",
    "ConfigFile",
    "cache_dir",
    "config_path",
    "json_schema",
    "load_config",
    "located",
    "parse_value",
    "read_config",
    "state_dir",
]
__getattr__, *_ = lazy_module(__name__, {".config_file": "ConfigFile"})  # it needs the YAML parser
