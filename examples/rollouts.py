"""Try an agent on a task and score it. The model is scripted, so that this runs anywhere."""

import json
import os
import tempfile
import time
from pathlib import Path

from handrail.testing import ModelReply, ModelServer, call

ENVIRONMENT = '''"""Arithmetic, answered in a file."""
TASKS = [{"id": "sum", "prompt": "Write the sum of 2 and 3 into sum.txt.", "wanted": "5"}]


def reward(task, rollout):
    return 1.0 if rollout.read("sum.txt").strip() == task["wanted"] else 0.0
'''
SCRIPT = [ModelReply(tool_calls=[call("write_file", path="sum.txt", content="5\n")]), ModelReply("It is in sum.txt.")]

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer(SCRIPT) as server:
    os.environ |= {"HANDRAIL_HOME": home, "OPENAI_BASE_URL": server.base_url}
    os.environ |= {"OPENAI_API_KEY": "none", "HANDRAIL_MODEL": "scripted"}
    folder = Path(home, "rl_environments")
    folder.mkdir()
    (folder / "arithmetic.py").write_text(ENVIRONMENT)

    from handrail.approval import Decision
    from handrail.model_tools import default
    from handrail.testing import RecordingApprover

    default().runtime.approver = RecordingApprover([Decision.ONCE])  # somebody says yes to the start

    def use(tool, **arguments):
        return json.loads(default().runtime.handle(tool, arguments))

    run_id = use("rl_configure", environment="arithmetic", parallel=1)["run_id"]
    print(use("rl_start", run_id=run_id))
    while use("rl_status", run_id=run_id)["runs"][0]["state"] == "running":
        time.sleep(0.1)
    results = use("rl_results", run_id=run_id)
    print("mean reward", results["mean_reward"])
    print(Path(results["trajectories"]).read_text())
