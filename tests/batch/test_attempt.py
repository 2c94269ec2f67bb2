"""Another attempt in an environment that died with its worker: it is made again, and what acted outside is not repeated."""

from __future__ import annotations

import json
import signal
import tempfile
from pathlib import Path

from handrail.batch.folder import read_options
from handrail.testing import ModelServer
from tests.services.components import require
from tests.support import wait_until

from .conftest import Batch, kill, unknown


def test_a_sandbox_that_died_is_made_again_with_the_results_of_before(batch: Batch, server: ModelServer) -> None:
    require("bwrap", packages="bubblewrap")
    steps = ("date +%N > made; cat made", "sleep 1.5; wc -l < made", "cat made")
    task = {"id": "t", "prompt": json.dumps(steps), "toolsets": ["terminal"]}
    driver = batch.start([task], "--workers", "1")
    wait_until(lambda: len(server.requests) == 2 and batch.begun() == 2, timeout=60)
    kill(batch.workers()[0], signal.SIGKILL)
    (result,) = batch.ended(driver)
    line = batch.trajectories()["t"]
    assert (result["state"], result["attempt"], unknown(line)) == ("done", 2, 0)
    said = [json.loads(each["content"])["output"].strip() for each in line["messages"] if each["role"] == "tool"]
    assert said[1] == "1"  # the file is there again
    assert said[0].isdigit()
    asked = [len(request["messages"]) for request in server.requests]
    assert asked == sorted(set(asked)), "the model was asked the same twice"
    assert not Path(tempfile.gettempdir(), f"handrail-batch-{read_options(batch.out).run}").exists()
