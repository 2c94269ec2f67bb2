#!/usr/bin/env bash
# Install a Home Assistant for the tests, into a folder of its own: it pins versions that are not ours.
# Usage: scripts/services/install-homeassistant.sh [FOLDER]
#        (by default ~/.cache/handrail-tests/homeassistant, or $HANDRAIL_TEST_HOMEASSISTANT)
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
folder=${1:-${HANDRAIL_TEST_HOMEASSISTANT:-$HOME/.cache/handrail-tests/homeassistant}}
python=${PYTHON:-python3}
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
[ -e "$folder/py/.complete" ] && exit
rm -rf "$folder/py"
new_venv "$folder/py"
# Each release wants a certain Python: the newest that this one can run is taken. An older one breaks with a newer josepy.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then
  wanted=(homeassistant uv)
else
  wanted=('homeassistant==2024.3.3' 'josepy<2')
fi
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --upgrade pip
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --prefer-binary "${wanted[@]}"
# What its parts need it would install by itself when it starts: it must not have to, in a test. The last two are for cameras,
# which it looks at to list services.
readarray -t parts < <("$folder/py/bin/python" - <<'END'
import json, pathlib
from homeassistant import bootstrap
components = pathlib.Path(bootstrap.__file__).parent / "components"
todo, wanted, seen = [*bootstrap.DEFAULT_INTEGRATIONS, "onboarding", "config", "recorder"], set(), set()
while todo:
    name = todo.pop()
    if name not in seen:
        seen.add(name)
        manifest = json.loads((components / name / "manifest.json").read_text())
        wanted.update(manifest.get("requirements", ()))
        todo += manifest.get("dependencies", ())
print(*sorted(wanted), sep="\n")
END
)
"$folder/py/bin/python" -m pip install -q --disable-pip-version-check --prefer-binary "${parts[@]}" numpy PyTurboJPEG
touch "$folder/py/.complete"
