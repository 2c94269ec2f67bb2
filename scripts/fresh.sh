#!/usr/bin/env bash
# Try `make run` and the set-up of `make test` on machines that have nothing but Debian 12, Python, pip and make, as root and as
# an ordinary user, with the clone in several places. Needs root and the network that apt, pip and npm use here.
# Usage: scripts/fresh.sh [--keep-logs FOLDER] [MACHINE...]   (root, places and user: see scripts/fresh/inside.sh)
#
# The machine is a folder, made by debootstrap and kept in ~/.cache/handrail. Each run works in a throw-away layer above it, in
# a mount and process namespace of its own: when this script ends, however it ends, nothing is mounted or running any more.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
say() { printf 'fresh: %s\n' "$*" >&2; }

suite=bookworm
base_packages=ca-certificates,make,python3,python3-pip
cache=${XDG_CACHE_HOME:-$HOME/.cache}/handrail/fresh
base=$cache/$suite
logs=
machines=()

while [ $# -gt 0 ]; do
  case $1 in
    --keep-logs) logs=$(realpath -m "$2"); shift 2 ;;
    root | places | user) machines+=("$1"); shift ;;
    *) say "unknown: $1; there are root, places and user"; exit 2 ;;
  esac
done
[ ${#machines[@]} -gt 0 ] || machines=(root places user)

[ "$(id -u)" = 0 ] || { say "this needs root: it builds a Debian system in a folder, and mounts it"; exit 1; }
[ "$(uname)" = Linux ] || { say "this needs Linux"; exit 1; }

main() {
  mkdir -p "$cache"
  build_base 9>"$cache/.lock"

  work=$(mktemp -d "$cache/run.XXXXXX")
  child=
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  mkdir -p "${logs:=$work/logs}"
  [ -z "$(git status --porcelain)" ] || say "what is not committed is not tried"
  git clone -q --no-hardlinks . "$work/clone"

  failed=()
  for name in "${machines[@]}"; do on_machine "$name"; done
  [ ${#failed[@]} = 0 ] || { say "FAILED: ${failed[*]}"; exit 1; }
  say "all passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
}

build_base() {
  flock 9
  [ -e "$base/.complete" ] && [ "$(cat "$base/.complete")" = "$base_packages" ] && return
  command -v debootstrap >/dev/null || { can_apt && apt_install debootstrap; } || { say "debootstrap is needed: apt-get install debootstrap"; exit 1; }
  local archive
  archive=$(debian_archive)
  [ -n "$archive" ] || { say "apt knows no Debian archive on this machine"; exit 1; }
  say "building a Debian 12 in $base"
  rm -rf "$base" "$base.new"
  debootstrap --variant=minbase --include="$base_packages" "$suite" "$base.new" "$archive" >"$cache/debootstrap.log" 2>&1 ||
    { tail -n 20 "$cache/debootstrap.log" >&2; say "debootstrap failed; all of its log is $cache/debootstrap.log"; exit 1; }
  # As newer Debian images have it: the archive is named in sources.list.d alone, and only while a test runs.
  rm -rf "$base.new/etc/apt/sources.list" "$base.new/var/cache/apt/archives/"*.deb "$base.new/var/lib/apt/lists/"*
  printf '%s' "$base_packages" >"$base.new/.complete"
  mv "$base.new" "$base"
}

on_machine() { # NAME: one of the functions of scripts/fresh/inside.sh
  local start=$SECONDS
  machine=$work/$1
  mkdir -p "$machine/"{upper,work,root}
  give_configuration "$machine/upper"
  say "$1: begins; the log is $logs/$1.log"
  # A new session keeps a Ctrl-C for this script, which then ends all of them.
  setsid unshare --mount --propagation private --pid --fork --kill-child scripts/fresh/enter.sh \
    "$base" "$machine" "$work/clone" "$work/environment" "$(local_folders)" "$1" >"$logs/$1.log" 2>&1 &
  child=$!
  if wait "$child"; then
    say "$1: passed in $((SECONDS - start)) s"
  else
    failed+=("$1")
    tail -n 40 "$logs/$1.log" >&2
    say "$1: FAILED after $((SECONDS - start)) s"
  fi
  child=
  grep -h '^fresh: ' "$logs/$1.log" >&2 || true
  rm -rf "$machine"
}

# Packages come from where this machine gets them. This goes into the throw-away layer alone.
give_configuration() { # LAYER
  local file name archive
  archive=$(debian_archive)
  mkdir -p "$1/etc/apt/sources.list.d" "$1/etc/apt/apt.conf.d" "$1/root" "$1/etc/skel"
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s %s-updates\nComponents: main\n' "$archive" "$suite" "$suite"
    printf 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n'
  } >"$1/etc/apt/sources.list.d/debian.sources"
  # What apt's own programs are started with (hooks) stays here; how it fetches goes over.
  apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/99host" || true
  [ ! -e /etc/apt/auth.conf ] || cp /etc/apt/auth.conf "$1/etc/apt/"
  [ ! -d /etc/apt/auth.conf.d ] || cp -r /etc/apt/auth.conf.d "$1/etc/apt/"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/npmrc; do
    [ ! -e "$file" ] || cp -L "$file" "$1$file"
  done
  for name in .pip/pip.conf .config/pip/pip.conf .npmrc; do
    [ -e "$HOME/$name" ] || continue
    for file in "$1/root/$name" "$1/etc/skel/$name"; do
      mkdir -p "$(dirname "$file")"
      cp -L "$HOME/$name" "$file"
    done
  done
  {
    env | grep -E '^(PIP_|npm_config_|NPM_CONFIG_|NODE_EXTRA_CA_CERTS=|SSL_CERT_FILE=|REQUESTS_CA_BUNDLE=|(https?|HTTPS?|no|NO|all|ALL)_(proxy|PROXY)=)' || true
    if command -v npm >/dev/null; then
      for name in registry cafile; do
        file=$(npm config get "$name" 2>/dev/null) && [ -n "$file" ] && [ "$file" != null ] && printf 'npm_config_%s=%s\n' "$name" "$file"
      done
    fi
  } >"$work/environment" || true
  # Certificates that these name.
  for file in /etc/ssl/certs/ca-certificates.crt $(sed -n -E 's/^[^=]+=(\/[^ ]+\.(crt|pem))$/\1/p' "$work/environment"); do
    [ -e "$file" ] || continue
    mkdir -p "$1$(dirname "$file")"
    cp -L "$file" "$1$file"
  done
}

# Folders of this machine that pip takes packages from. A local index has its files beside its pages.
local_folders() {
  { cat /etc/pip.conf "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf" 2>/dev/null || true; cat "$work/environment"; } |
    grep -oE '(^|[ =])(file://)?/[^ ]+' | sed -E 's/^[ =]//; s#^file://##; s#/simple/?$##' | sort -u |
    while read -r folder; do [ ! -d "$folder" ] || printf '%s\n' "$folder"; done
}

clean_up() {
  [ -z "$child" ] || { kill -TERM -- "-$child" 2>/dev/null || true; wait "$child" 2>/dev/null || true; }
  rm -rf "$work"
}

main
