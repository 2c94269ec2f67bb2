# What the set-up scripts share. Sourced, not run.

say() { printf 'setup: %s\n' "$*" >&2; }

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() { # PACKAGE...
  if [ -z "${apt_updated:-}" ]; then
    apt-get update -qq >/dev/null || return
    apt_updated=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# What is missing is said at once, and again at the end, where it is read.
left_out=()
leave_out() { # WHAT WHY
  say "left out: $1 ($2)"
  left_out+=("$1")
}

# In CI nothing may be missing on a machine where all of it can be installed: a run without it would pass and prove less.
finish() {
  [ ${#left_out[@]} -gt 0 ] || return 0
  local list
  printf -v list '%s; ' "${left_out[@]}"
  if [ -n "${CI:-}" ] && can_apt; then
    say "FAILED: could not install: ${list%; }. In CI all of it is needed; the reasons are above"
    return 1
  fi
  say "done without: ${list%; }"
}

new_venv() { # FOLDER, with the Python that is given as PYTHON
  local python=${PYTHON:-python3}
  "$python" -m venv "$1" 2>/dev/null && return
  rm -rf "$1"
  # Debian ships Python without ensurepip.
  if can_apt && apt_install python3-venv && "$python" -m venv "$1"; then return; fi
  rm -rf "$1"
  # Whoever is not root has a pip that can install into the new environment from outside.
  if "$python" -m venv --without-pip "$1" && "$python" -m pip --python "$1/bin/python" install -q --disable-pip-version-check pip; then
    return
  fi
  rm -rf "$1"
  say "$python can make no virtual environment: install python3-venv, or give another Python with PYTHON="
  return 1
}

# The Debian archive that this machine's apt uses; not every machine has every one of these files.
debian_archive() { # [FOLDER]
  local apt=${1:-/etc/apt}
  { cat "$apt"/sources.list "$apt"/sources.list.d/*.sources "$apt"/sources.list.d/*.list 2>/dev/null || true; } |
    sed -n -E 's/^(URIs:|deb( \[[^]]*\])?) +([^ ]+\/debian\/?)( .*)?$/\3/; T; p; q'
}

# The commands that the last lines of `make run` recommend, from what it printed.
recommended() {
  sed -n -E '/^Try next:$/,/^$/s/^  (.*)/\1/p; s/^To watch[^`]*`([^`]*)`.*/\1/p'
}
