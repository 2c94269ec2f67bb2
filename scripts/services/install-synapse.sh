#!/usr/bin/env bash
# Install a Matrix server for the tests, into a folder of its own: it pins versions that are not ours.
# Usage: scripts/services/install-synapse.sh [FOLDER]   (by default ~/.cache/handrail-tests/synapse, or $HANDRAIL_TEST_SYNAPSE)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_SYNAPSE:-$HOME/.cache/handrail-tests/synapse}}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -x "$folder/py/bin/synapse_homeserver" ]; then
  new_venv "$folder/py"
  "$folder/py/bin/python" -m pip install -q --disable-pip-version-check matrix-synapse
fi
