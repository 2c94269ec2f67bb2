"""A project's approval policy in `.handrail/config.yaml`: it can only tighten what the user has configured.

So it needs no trust, unlike a project's plugins: whoever clones a project gets its prohibitions, and nothing that allows.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..config import Config, located, read_config
from ..config.files import read_text
from ..config.project import POLICY_FILE, project_folder
from ..errors import ConfigError
from .allowlist import BadEntry, deny_entries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_APPROVALS, _RULES = "approvals", "approval_rules"
_TIGHTEN = ("deny", "ask_tools")


def policy_file(start: Path | None = None) -> Path | None:
    """The policy file of the current project, which need not exist. None outside of projects."""
    folder = project_folder(start)
    return None if folder is None else folder / POLICY_FILE


def project_settings(path: Path) -> Config:
    """What a project's file adds. Raises ConfigError for one that does more than tighten."""
    text = read_text(path)
    if text is None:
        return Config()
    from ..config.yaml_document import parse

    _check(parse(text, path=str(path)).value or {}, path)
    project = read_config(path)
    _check_entries(project, path)
    return project


def tightened(config: Config, project: Config | None) -> Config:
    """The user's settings with the project's added."""
    if project is None:
        return config
    approvals = dataclasses.replace(
        config.approvals,
        deny=(*config.approvals.deny, *project.approvals.deny),
        ask_tools=(*config.approvals.ask_tools, *project.approvals.ask_tools),
    )
    # A rule of the user's is not replaced by a weaker one of the same name.
    rules = {**project.approval_rules, **config.approval_rules}
    return dataclasses.replace(config, approvals=approvals, approval_rules=rules)


def _check_entries(project: Config, path: Path) -> None:
    try:
        deny_entries(project.approvals.deny)
    except BadEntry as error:
        raise located(ConfigError(str(error), key=f"{_APPROVALS}.deny[{error.number}]"), path) from None


def _check(settings: Mapping[str, Any], path: Path) -> None:
    can = f"a project's file can have {_APPROVALS}.{', '.join(_TIGHTEN)} and {_RULES}, and nothing that allows"
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if key not in (_APPROVALS, _RULES):
            raise ConfigError(can, path=str(path), key=str(key))
        wrong = [name for name in value or () if key == _APPROVALS and name not in _TIGHTEN]
        if wrong:
            raise ConfigError(can, path=str(path), key=f"{key}.{wrong[0]}")
