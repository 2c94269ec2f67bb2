#!/usr/bin/env bash
# Make everything that `make` needs on this machine: a virtual environment, and for the tests the programs they use.
# Usage: scripts/setup.sh run|dev|docs
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
what=${1:-run}
venv=${VENV:-.venv}
python=${PYTHON:-python3}

if [ ! -x "$venv/bin/python" ]; then
  say "making $venv"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "Python 3.11 or newer is needed; set PYTHON="; exit 1; }
  new_venv "$venv"
fi

stamp="$venv/.handrail-$what"
want=$(cat pyproject.toml scripts/setup.sh scripts/lib.sh scripts/services/*.sh | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  say "installing the $what packages into $venv"
  case $what in
    # The chat, and what it recommends when it closes: the web console and MCP.
    run) packages=(-e '.[agent,serve,mcp]') ;;
    # The reference pages are made from the core alone.
    docs) packages=(-e . --group docs) ;;
    dev) packages=(-e '.[all]' --group dev) ;;
    *) say "unknown: $what; there are run, dev and docs"; exit 2 ;;
  esac
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "${packages[@]}"
  printf '%s' "$want" >"$stamp"
fi

if [ "$what" = dev ]; then
  for need in rg:ripgrep git:git; do
    command -v "${need%%:*}" >/dev/null && continue
    if can_apt; then
      say "installing ${need##*:}"
      apt_install "${need##*:}" || leave_out "${need##*:}" "apt-get could not install it; what needs it will fail"
    else
      leave_out "${need##*:}" "install it for the full tests; what needs it will fail"
    fi
  done
  scripts/services/install.sh
fi

if [ "$what" != docs ]; then
  if command -v npm >/dev/null; then
    scripts/console.sh
  else
    leave_out "the web console" "it is built with npm; the API works without it"
  fi
fi

# Where bytecode is not written (PYTHONDONTWRITEBYTECODE), every start would compile every module anew.
"$venv/bin/python" -m compileall -q src
[ "$what" != dev ] || finish
