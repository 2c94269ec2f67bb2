"""The client that the conformance suite starts: `conformance_client.py URL`. It does what the scenario is about."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.request
from typing import Any

from handrail.config import McpServerConfig
from handrail.mcp_client.config import Server
from handrail.protocols import Decision
from handrail.runtime.dispatch import Runtime
from handrail.testing import RecordingApprover
from handrail.tools.approval.gate import ApprovalGate
from handrail.tools.mcp_tool import McpTools
from handrail.tools.registry import ToolRegistry

ARGUMENTS = {"add_numbers": {"a": 2, "b": 3}}


def browse(url: str) -> None:
    """The suite's login page lets everybody in, and leads back at once."""
    threading.Thread(target=lambda: urllib.request.urlopen(url).read(), daemon=True).start()


def main(url: str) -> int:
    context: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    known = {key: str(context[key]) for key in ("client_id", "client_secret") if key in context}
    by_itself = "client-credentials" in os.environ["MCP_CONFORMANCE_SCENARIO"]
    settings = McpServerConfig(url=url, connect_timeout=20, timeout=20, client_login=by_itself, **known)
    registry = ToolRegistry()
    runtime = Runtime(registry, gate=ApprovalGate(), approver=RecordingApprover([Decision.ONCE] * 10))
    tools = McpTools([Server("suite", settings, "test")], registry, browse=browse)
    try:
        tools.start(25)
        print(tools.connections.status(), file=sys.stderr)
        if not tools.connections.is_ready("suite"):
            return 1
        for listed in tools.connections.offer("suite").tools:
            answer = runtime.handle(f"mcp__suite__{listed.name}", ARGUMENTS.get(listed.name, {}))
            print(answer, file=sys.stderr)
    finally:
        tools.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
