#!/usr/bin/env bash
# Install the agent frameworks that `handrail.adapters` is for, for the tests, each into a virtual environment of its own, together
# with what Handrail itself needs.
# Usage: scripts/services/install-frameworks.sh [FOLDER]   (by default ~/.cache/handrail-tests/frameworks, or $HANDRAIL_TEST_FRAMEWORKS)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_FRAMEWORKS:-$HOME/.cache/handrail-tests/frameworks}}
project=$(dirname "$0")/../../pyproject.toml
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
mapfile -t ours < <("${PYTHON:-python3}" -c 'import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], sep="\n")' "$project")

failed=0
venv() { # NAME PACKAGE...
  local wanted
  wanted=$(printf '%s\n' "${@:2}" "${ours[@]}")
  [ "$(cat "$folder/$1/installed" 2>/dev/null)" != "$wanted" ] || return 0
  rm -rf "${folder:?}/$1"
  { new_venv "$folder/$1" && "$folder/$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}" "${ours[@]}" &&
    printf '%s\n' "$wanted" >"$folder/$1/installed"; } || failed=1
}
venv openai_agents openai-agents==0.24.0
venv pydantic_ai 'pydantic-ai-slim[openai]==2.66.0'
venv langchain langchain==1.4.7 langgraph==1.2.20 langchain-openai==1.7.3 langchain-core==1.7.2
venv smolagents 'smolagents[openai]==1.26.0'
venv inspect inspect-ai==0.3.285 openai
exit "$failed"
