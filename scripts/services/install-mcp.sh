#!/usr/bin/env bash
# Install MCP servers and clients that others wrote, for the tests, into a folder of their own.
# Usage: scripts/services/install-mcp.sh [FOLDER]   (by default ~/.cache/handrail-tests/mcp, or $HANDRAIL_TEST_MCP)
set -euo pipefail
folder=${1:-${HANDRAIL_TEST_MCP:-$HOME/.cache/handrail-tests/mcp}}
python=${PYTHON:-python3}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
# They pin versions of the SDK that are not ours.
if [ ! -x "$folder/py/bin/mcp-server-fetch" ]; then
  "$python" -m venv "$folder/py"
  "$folder/py/bin/python" -m pip install -q --disable-pip-version-check mcp-server-time mcp-server-git mcp-server-fetch
fi
if [ ! -x "$folder/node_modules/.bin/mcp-inspector" ] && command -v npm >/dev/null; then
  (cd "$folder" && npm install --silent --no-audit --no-fund @modelcontextprotocol/server-everything \
    @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/inspector)
fi
