"""Build the web console into the package, so that `pip install .` and the wheel have it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface):  # type: ignore[misc]  it has no types
    """Without npm, or where the build fails, the package has no console, and `handrail serve` says so."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  hatchling's signature
        script = Path(self.root, "scripts/console.sh")
        if version == "editable" or not script.exists():  # `make` builds it itself; a source distribution has it built
            return
        if shutil.which("npm") is None:
            self.app.display_warning("npm was not found: this package has no web console")
        elif subprocess.run(["bash", str(script)], stdout=2, check=False).returncode:
            self.app.display_warning("the web console could not be built: this package has none")
