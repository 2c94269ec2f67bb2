"""A parcel service as an MCP server: a program of its own that speaks the protocol over its standard input and output."""

from __future__ import annotations

import json
import sys
from typing import Any

_CENTS = 390
_CENTS_PER_KG = 100
_WEIGHT = {"type": "number", "exclusiveMinimum": 0, "description": "Weight in kilograms."}
_QUOTE = {
    "name": "quote",
    "description": "What it costs to send a parcel.",
    "inputSchema": {"type": "object", "properties": {"kg": _WEIGHT}, "required": ["kg"]},
    "annotations": {"readOnlyHint": True},
}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """None for what it does not know."""
    if method == "initialize":
        info = {"name": "carrier", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [_QUOTE]}
    if method == "tools/call":
        kg = params["arguments"]["kg"]
        cents = round(_CENTS + _CENTS_PER_KG * kg)
        return {"content": [{"type": "text", "text": f"a parcel of {kg} kg costs {cents / 100:.2f}"}]}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = _answer(message["method"], message.get("params") or {})
        answer = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
