"""Programs whose output is made to be evaluated: `eval "$(ssh-agent -s)"`, `source <(kubectl completion bash)`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..values.data_files import read_tables

_TABLES = read_tables(__file__)
_COMPLETING = frozenset(_TABLES[""]["completing"].split())
_ARGUMENTS = _TABLES["arguments"] | dict.fromkeys(_TABLES[""]["initialising"].split(), r"|init\b.*|--alias.*")
_COMPLETION = r"(.* )?completions?\b.*"
ENV_SCRIPT_PRINTERS = frozenset((*_ARGUMENTS, *_COMPLETING))


def prints_env_script(name: str, args: Sequence[str]) -> bool:
    pattern = _ARGUMENTS.get(name)
    if pattern is not None and re.fullmatch(pattern, " ".join(args)):
        return True
    return name in _COMPLETING and re.fullmatch(_COMPLETION, " ".join(args)) is not None
