#!/usr/bin/env bash
# Install a Home Assistant for the tests, into a folder of its own: it pins versions that are not ours.
# Usage: scripts/services/install-homeassistant.sh [FOLDER]
#        (by default ~/.cache/handrail-tests/homeassistant, or $HANDRAIL_TEST_HOMEASSISTANT)
set -euo pipefail
folder=${1:-${HANDRAIL_TEST_HOMEASSISTANT:-$HOME/.cache/handrail-tests/homeassistant}}
python=${PYTHON:-python3}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ -e "$folder/py/.complete" ] && exit
rm -rf "$folder/py"
"$python" -m venv "$folder/py"
# Each release wants a certain Python: the newest that this one can run is taken. An older one breaks with a newer josepy.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then
  wanted=(homeassistant uv)
else
  wanted=('homeassistant==2024.3.3' 'josepy<2')
fi
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --upgrade pip
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --prefer-binary "${wanted[@]}"
touch "$folder/py/.complete"
