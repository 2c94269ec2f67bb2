"""The configuration: where its file is, how it is loaded, checked and changed. What can be set is in `handrail.settings`.

`store` loads it, with `environment_variables` over the file; `paths` and `project` say where things are; `yaml_document` and
`validation` read and check the text; `config_file` changes it, with `yaml_edit` and `yaml_render`. Beside it: `files` (safe
reading and writing), `cache`, `keys` (API keys), `trust` (what the user has trusted) and `entry_points` (what pip installed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..settings.schema import Config, json_schema
from ..settings.sections import (
    ApprovalRuleConfig,
    ApprovalsConfig,
    CallsConfig,
    CodeConfig,
    FilesConfig,
    HookCommandConfig,
    PluginConfig,
    ProcessesConfig,
    ResultsConfig,
    TerminalConfig,
    ToolsConfig,
    ToolsetConfig,
)
from ..settings.services import McpServerConfig, ModelConfig
from .paths import cache_dir, config_path, state_dir
from .store import load_config, located, read_config

if TYPE_CHECKING:
    from .config_file import ConfigFile
    from .store import parse_value

__all__ = [
    "ApprovalRuleConfig",
    "ApprovalsConfig",
    "CallsConfig",
    "CodeConfig",
    "Config",
    "ConfigError",
    "ConfigFile",
    "FilesConfig",
    "HookCommandConfig",
    "McpServerConfig",
    "ModelConfig",
    "PluginConfig",
    "ProcessesConfig",
    "ResultsConfig",
    "TerminalConfig",
    "ToolsConfig",
    "ToolsetConfig",
    "cache_dir",
    "config_path",
    "json_schema",
    "load_config",
    "located",
    "parse_value",
    "read_config",
    "state_dir",
]


def __getattr__(name: str) -> Any:
    """`ConfigFile` and `parse_value` need the YAML parser, and are loaded when they are first used."""
    if name == "ConfigFile":
        from .config_file import ConfigFile

        return ConfigFile
    if name == "parse_value":
        from .store import parse_value

        return parse_value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
