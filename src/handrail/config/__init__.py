"""The configuration: what can be set, where the file is, how it is loaded and changed."""

from __future__ import annotations

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
from .environment_variables import parse_value
from .paths import cache_dir, config_path, state_dir
from .store import ConfigFile, load_config, located

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
    "state_dir",
]
