#!/usr/bin/env bash
# What is tried on a fresh machine, inside of it. Usage: inside.sh root|places|user   (by scripts/fresh/enter.sh)
set -euo pipefail

# No LANG: a fresh Debian has none, and folders with non-ASCII names all the same.
export HOME=/root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
while IFS= read -r line; do export "${line?}"; done </run/environment
rm /run/environment

user=someone
telling=(tests/environments/test_sandbox.py tests/environments/shell_host/test_landlock.py
  tests/environments/test_sandbox_interpreter.py tests/cli/commands/test_call.py)

say() { printf 'fresh: %s\n' "$*"; }

as_user() { # COMMAND...: with an ordinary user's PATH, which has no sbin
  setpriv --reuid "$user" --regid "$user" --init-groups \
    env HOME="/home/$user" USER="$user" PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

try() { # TITLE COMMAND...
  local start=$SECONDS
  printf '\n== %s\n' "$1"
  if "${@:2}" </dev/null; then
    say "ok in $((SECONDS - start)) s: $1"
  else
    say "FAILED after $((SECONDS - start)) s: $1"
    exit 1
  fi
}

clone_to() { # PLACE AS...
  "${@:2}" mkdir -p "$(dirname "$1")"
  "${@:2}" cp -r /source "$1"
  cd "$1"
}

# A server does not end by itself: it is stopped when it has said where it is, which it does on a terminal only. On any port:
# this machine may serve, too.
serve_and_stop='
  said=$(mktemp)
  script --quiet --flush --return --command "exec $1 --http 0" /dev/null >"$said" 2>&1 </dev/null &
  for _ in {1..240}; do ! grep -q "^Open " "$said" || break; sleep 0.25; done
  kill $!; wait $!
  cat "$said"
  grep -q "^Open " "$said"
  served=$?
  rm "$said"
  exit $served
'

# The demo runs through to its last lines, and the commands that they recommend work as they are printed.
run_and_follow() { # AS...
  local shown command followed=0
  shown=$("$@" make run 2>&1) || { printf '%s\n' "$shown"; return 1; }
  printf '%s\n' "$shown"
  while read -r command; do
    echo "\$ $command"
    followed=$((followed + 1))
    case $command in
      *" serve") "$@" bash -c "$serve_and_stop" - "$command" || return 1 ;;
      *) "$@" bash -c "$command" >/dev/null || return 1 ;;
    esac
  done < <(. scripts/lib.sh && recommended <<<"$shown")
  "$@" .venv/bin/handrail mcp serve </dev/null || return 1
  [ "$followed" -ge 3 ] || { echo "the last lines recommend too little: $followed commands"; return 1; }
}

telling_tests() { # AS...
  "$@" .venv/bin/python -m pip install -q --disable-pip-version-check pytest pytest-xdist hypothesis &&
    "$@" .venv/bin/python -m pytest -q -n 0 "${telling[@]}"
}

# The command line, called by a command in a sandbox: neither the interpreter nor the package may be hidden from it.
sandboxed_call() { # AS...
  local said home
  home=$("$@" mktemp -d) || return 1
  printf 'terminal: {backends: {local: {sandbox: true}}}\n' | "$@" tee "$home/config.yaml" >/dev/null
  said=$("$@" env HANDRAIL_HOME="$home" .venv/bin/handrail call terminal \
    command='.venv/bin/handrail call read_file path=README.md limit=1')
  rm -rf "$home"
  grep -q '# Handrail' <<<"$said" || { printf '%s\n' "$said"; return 1; }
}

in_place() { # TITLE PLACE AS...
  (
    clone_to "$2" "${@:3}"
    try "make run $1" run_and_follow "${@:3}"
    try "a call in a sandboxed terminal $1" sandboxed_call "${@:3}"
    try "the telling tests $1" telling_tests "${@:3}"
  )
  rm -rf "$2"
}

full_setup() {
  local said
  said=$(CI=true scripts/setup.sh dev 2>&1) || { printf '%s\n' "$said"; return 1; }
  printf '%s\n' "$said"
  if grep -q 'left out' <<<"$said"; then return 1; fi
  apptainer --version
}

bare_setup() {
  local said
  said=$(as_user scripts/setup.sh dev 2>&1) || { printf '%s\n' "$said"; return 1; }
  printf '%s\n' "$said"
  grep -q 'left out: bubblewrap' <<<"$said" && grep -q 'done without: .*apptainer' <<<"$said"
}

on_root() {
  clone_to /opt/handrail env
  try "make run, as root on a machine without anything else, below /opt" run_and_follow env
  try "the set-up of make test, as root" full_setup
  try "a call in a sandboxed terminal, as root" sandboxed_call env
  try "the telling tests, as root" telling_tests env
}

on_places() {
  apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap git procps >/dev/null
  useradd --create-home --shell /bin/bash "$user"
  mkdir -p -m 700 /run/user/1000
  chown "$user:" /run/user/1000
  in_place "as root, below /tmp" /tmp/handrail env
  in_place "as root, below /run, with spaces and non-ASCII letters" "/run/ein Ordner für Żółw/handrail" env
  in_place "as a user, in the home, with spaces and non-ASCII letters" "/home/$user/Mein Ordner – größer/handrail" as_user
  in_place "as a user, below /tmp" /tmp/someones/handrail as_user
  in_place "as a user, below /run" /run/user/1000/handrail as_user
}

on_user() {
  useradd --create-home --shell /bin/bash "$user"
  clone_to "/home/$user/Mein Ordner – größer/handrail" as_user
  try "make run, as a user on a machine without anything else" run_and_follow as_user
  try "the set-up of make test, as a user: it says what it leaves out" bare_setup
  try "a call in a sandboxed terminal, as a user without bubblewrap" sandboxed_call as_user
}

"on_$1"
