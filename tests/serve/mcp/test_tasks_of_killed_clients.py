"""An agent that is killed while a server of others goes on with its call as a task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from handrail.config.paths import state_dir
from handrail.model_tools import default
from handrail.serve.mcp.http import http_app
from handrail.serve.mcp.server import HandrailServer
from handrail.serve.server import Address
from handrail.testing import ModelReply, call
from handrail.testing.model_server import ModelServer

from ...mcp_servers.serving import listening, serving
from ...support import PATIENCE_SECONDS, wait_until
from .test_tasks import long  # noqa: F401  a fixture

CONFIG = """
mcp_servers:
  far:
    url: http://127.0.0.1:{port}/mcp
    headers: {{Authorization: Bearer t}}
"""


def test_what_became_of_a_task_is_not_known_to_the_agent_that_goes_on(
    long: threading.Event,  # noqa: F811  a fixture
    tmp_path: Path,
) -> None:
    home, bound = tmp_path / "agents", listening()
    home.mkdir()
    port = bound.getsockname()[1]
    (home / "config.yaml").write_text(CONFIG.format(port=port))
    tasks = state_dir(default().config.home) / "mcp" / "tasks"
    app = http_app(HandrailServer(default(), toolsets=["art"]).build(), Address("127.0.0.1", port), "t")
    script = [ModelReply("", [call("mcp__far__long")]), ModelReply("I look what happened.")]
    with serving(app, bound), ModelServer(script) as model:
        ask = [sys.executable, "-m", "handrail", "ask", "--model", "scripted"]
        env = {**os.environ, "HANDRAIL_HOME": str(home), "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k"}
        agent = subprocess.Popen([*ask, "go"], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL)
        wait_until(lambda: any(json.loads(each.read_text())["status"] == "working" for each in tasks.glob("*.json")))
        agent.send_signal(signal.SIGKILL)
        agent.wait(PATIENCE_SECONDS)
        again = [*ask, "--resume", "last", "and?"]
        subprocess.run(again, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_SECONDS)
        long.set()
    (told,) = [each for each in model.requests[-1]["messages"] if each["role"] == "tool"]
    assert json.loads(told["content"])["error_type"] == "unknown_outcome"
    assert "look before you do it again" in told["content"]
