"""Your own backend: a shell with a low CPU priority. The conformance kit checks that it works."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from handrail import Unavailable
from handrail.environments import Link, LiveEnvironment, Session, Transport
from handrail.testing import check_environment, environment_checks


class NiceEnvironment(LiveEnvironment):
    name = "nice"
    reaches_host = True

    def __init__(self, cwd: str, env: Mapping[str, str], level: int) -> None:
        super().__init__()
        self._start, self._env, self._level = cwd, dict(env), level

    def connect(self, state: bytes | None) -> Link:
        transport = Transport(
            argv=lambda words: ["nice", "-n", str(self._level), *words],
            where="a nice shell",
            env={"PATH": os.environ["PATH"]},  # without this process's secrets
        )
        return Session(transport, env=self._env, cwd=self._start, state=state)

    # How Handrail makes one by its name in the configuration:

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> NiceEnvironment:
        return cls(cwd or os.getcwd(), env or {}, int(settings.get("level", 19)))

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> Unavailable | None:
        return None if shutil.which("nice") else Unavailable("nice is not installed", "install coreutils")

    @classmethod
    def prune(cls, dry_run: bool) -> list[str]:
        return []  # it leaves nothing behind


if __name__ == "__main__":
    with NiceEnvironment.from_settings({"level": 5}, task_id="t1") as environment:
        print(environment.execute("nice").output.head.decode(), end="")

    themes = ("state.", "codes.", "files.")
    chosen = [check for check in environment_checks() if check.name.startswith(themes)]
    report = check_environment(lambda: NiceEnvironment(os.getcwd(), {}, 5), chosen)
    print(report)
    print("it conforms" if report.passed else "it does not conform")
