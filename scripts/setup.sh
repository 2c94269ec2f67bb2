#!/usr/bin/env bash
# Make everything that `make` needs on this machine: a virtual environment, and for the tests the programs they use.
# Usage: scripts/setup.sh run|dev|docs
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-run}
venv=${VENV:-.venv}
python=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$*" >&2; }

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
  if [ -z "${apt_updated:-}" ]; then apt-get update -qq >/dev/null; apt_updated=1; fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

make_venv() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "Python 3.11 or newer is needed; set PYTHON="; exit 1; }
  if ! "$python" -m venv "$venv" 2>/dev/null; then
    rm -rf "$venv"
    # Debian ships Python without ensurepip.
    if can_apt && apt_install python3-venv && "$python" -m venv "$venv"; then return; fi
    rm -rf "$venv"
    "$python" -m pip install -q --user --break-system-packages virtualenv 2>/dev/null || "$python" -m pip install -q --user virtualenv
    "$python" -m virtualenv -q "$venv"
  fi
}

[ -x "$venv/bin/python" ] || { say "making $venv"; make_venv; }

stamp="$venv/.handrail-$what"
want=$(cat pyproject.toml scripts/setup.sh scripts/services/*.sh | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  say "installing the $what packages into $venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
  case $what in
    run) "$venv/bin/python" -m pip install -q --disable-pip-version-check -e '.[agent]' ;;
    *) "$venv/bin/python" -m pip install -q --disable-pip-version-check -e '.[all]' --group "$what" ;;
  esac
  printf '%s' "$want" >"$stamp"
fi

if [ "$what" = dev ]; then
  for need in rg:ripgrep git:git; do
    command -v "${need%%:*}" >/dev/null && continue
    if can_apt; then
      say "installing ${need##*:}"
      apt_install "${need##*:}"
    else
      say "left out: ${need##*:} (install it for the full tests; what needs it will fail)"
    fi
  done
  scripts/services/install.sh
fi

if [ "$what" != docs ]; then
  if command -v npm >/dev/null; then scripts/console.sh; else say "left out: the web console (it is built with npm; the API works without it)"; fi
fi

# Where bytecode is not written (PYTHONDONTWRITEBYTECODE), every start would compile every module anew.
"$venv/bin/python" -m compileall -q src
