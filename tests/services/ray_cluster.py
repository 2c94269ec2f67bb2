"""A Ray cluster of the tests' own: several nodes on this machine, which let in only who has the token.

`python -m tests.services.ray_cluster NODES` prints its address, and ends with its stdin: nothing of it is left when the test is
killed. For a line `kill` on stdin it removes a node as if that had lost its power, for `restart` the head and all nodes, which
come back at the same address.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .components import absent

_OBJECTS = 80_000_000
_TRIES = 4  # Ray gives its own processes half a minute to start, however busy the machine is


@dataclass(frozen=True)
class RayCluster:
    """`env` is what a driver needs to be let in."""

    address: str
    env: dict[str, str]
    process: subprocess.Popen[str]

    def kill_node(self) -> None:
        self._order("kill")

    def restart(self) -> None:
        self._order("restart")

    def _order(self, what: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline()) == f"{what} is done"


@contextmanager
def ray_cluster(nodes: int) -> Iterator[RayCluster]:
    if importlib.util.find_spec("ray") is None:
        absent("ray", "pip install 'handrail[ray]'")
    token = secrets.token_hex(16)
    env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "RAY_USAGE_STATS_ENABLED": "0"}
    for _ in range(_TRIES):
        process = _start(nodes, {**os.environ, **env})
        assert process.stdout is not None
        if address := process.stdout.readline():
            break
        process.communicate()
    try:
        yield RayCluster(json.loads(address), env, process)
    finally:
        process.communicate()


def _start(nodes: int, env: dict[str, str]) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-m", __name__, str(nodes)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env)


def main(count: int) -> None:
    from ray.cluster_utils import Cluster

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray prints
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _OBJECTS}

    def start(port: int) -> Any:
        made = Cluster(initialize_head=True, head_node_args={**head, "gcs_server_port": port})
        for _ in range(count):
            made.add_node(wait=False, num_cpus=1, object_store_memory=_OBJECTS)
        made.wait_for_nodes(timeout=120)
        return made

    cluster = start(0)
    try:
        print(json.dumps(cluster.address), file=out, flush=True)
        for line in sys.stdin:
            if line == "kill\n":
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            else:
                for node in [cluster.head_node, *cluster.worker_nodes]:
                    node.kill_all_processes(check_alive=False, allow_graceful=False)
                port = int(cluster.address.rpartition(":")[2])
                cluster = start(port)
            print(json.dumps(f"{line.strip()} is done"), file=out, flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
