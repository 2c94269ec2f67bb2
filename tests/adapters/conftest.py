"""Programs that run with a framework in the framework's own virtual environment, against a scripted model."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from handrail.protocols import ModelReply
from handrail.testing import call
from handrail.testing.model_server import ModelServer

from .. import fork_server
from ..services.components import absent
from ..support import PATIENCE_SECONDS

FOLDER = Path(os.environ.get("HANDRAIL_TEST_FRAMEWORKS") or Path.home() / ".cache/handrail-tests/frameworks")
PROGRAMS = Path(__file__).parent / "programs"
_SRC = Path(__file__).parents[2] / "src"
# What a program of each imports, and then the session in it: the process that they are forked from has it.
_SESSION = (
    "handrail.sessions.session", "handrail.approval.gate", "handrail.judge.assessor", "handrail.effects.calls",
    "handrail.environments.backends.local", "handrail.tools.terminal.terminal_call", "handrail.tools.files.calls",
)  # fmt: skip
_MODULES = {
    "openai_agents": ("agents",),
    "pydantic_ai": ("pydantic_ai", "pydantic_ai.models.openai"),
    "langchain": ("langchain.agents", "langchain_openai", "langgraph.checkpoint.memory"),
    "smolagents": ("smolagents",),
    "inspect": ("inspect_ai.model", "inspect_ai.solver", "inspect_ai.util._sandbox.self_check"),
}


class Ran(dict[str, Any]):
    """What a program reported, and what its model was sent."""

    requests: list[dict[str, Any]]

    def told(self) -> str:
        """The last that the model was sent."""
        return json.dumps(self.requests[-1], ensure_ascii=False)


Run = Callable[..., Ran]


def started(
    framework: str, program: Path, cwd: Path, home: Path, script: Iterable[ModelReply], **more: Any
) -> tuple[str, list[dict[str, Any]]]:
    """What the program printed, and what its model was sent."""
    venv = FOLDER / framework
    if not (venv / "installed").exists():
        absent(framework, "run scripts/services/install-frameworks.sh")
    kept = {name: os.environ[name] for name in ("PATH", "CI", "TMPDIR") if name in os.environ}
    with ModelServer(script) as model:
        env = {
            **kept, "HOME": str(home), "HANDRAIL_HOME": str(home), "PYTHONPATH": str(_SRC), "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": model.base_url, "LANG": "C.UTF-8", "OPENAI_AGENTS_DISABLE_TRACING": "1", **more.pop("env", {}),
        }  # fmt: skip
        host = fork_server.Host(
            str(venv / "bin/python"), (*_MODULES[framework], *_SESSION, f"handrail.adapters.{framework}")
        )
        patience = more.pop("patience", 4) * PATIENCE_SECONDS
        ran = fork_server.run(str(program), cwd=cwd, env=env, timeout=patience, host=host, **more)
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        return ran.stdout, model.requests


def with_entry_points(folder: Path) -> str:
    """PYTHONPATH for a program of Inspect, which finds our sandboxes by the entry point that the project declares."""
    info, project = folder / "handrail-0.dist-info", tomllib.loads((_SRC.parent / "pyproject.toml").read_text())
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: handrail\nVersion: 0\n")
    points = project["project"]["entry-points"]["inspect_ai"].items()
    (info / "entry_points.txt").write_text("\n".join(["[inspect_ai]", *(f"{name} = {at}" for name, at in points), ""]))
    return os.pathsep.join((str(_SRC), str(folder)))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "victim").mkdir(parents=True)
    return tmp_path / "work"


@pytest.fixture
def run(home: Path, work: Path) -> Run:
    def run_one(framework: str, *calls: dict[str, Any], **plan: Any) -> Ran:
        done = (
            ModelReply("", [call("final_answer", answer="Done.")]) if framework == "smolagents" else ModelReply("Done.")
        )
        script = [*(ModelReply("", [each]) for each in calls), done]
        env = {"PLAN": json.dumps(plan), "OPENAI_AGENTS_DISABLE_TRACING": "0"}
        program = PROGRAMS / f"{plan.pop('program', 'run')}_{framework}.py"
        printed, requests = started(framework, program, work, home, script, env=env)
        ran = Ran(json.loads(printed.splitlines()[-1]))
        ran.requests = requests
        return ran

    return run_one
