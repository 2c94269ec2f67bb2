#!/usr/bin/env bash
# Install what the services of the tests are made of (tests/services). Quick when everything is there.
# Usage: scripts/services/install.sh
set -euo pipefail
cd "$(dirname "$0")"
PATH=$PATH:/usr/sbin:/sbin

policy=/usr/sbin/policy-rc.d

say() { printf 'setup: %s\n' "$*" >&2; }

missing=()
for need in dockerd:docker.io podman:podman sshd:openssh-server ssh:openssh-client rsync:rsync bwrap:bubblewrap ip:iproute2 \
  nsenter:util-linux patchelf:patchelf mksquashfs:squashfs-tools newuidmap:uidmap vi:vim-tiny less:less tmux:tmux \
  espeak-ng:espeak-ng chromium:chromium searx-run:searx node:nodejs npm:npm; do
  command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
# Newer Debians have the client in a package of its own.
if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then missing+=(docker-cli); fi
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "left out: ${missing[*]} (install them for the full tests; what needs them will be skipped, or fail in CI)"
    exit 0
  fi
  say "installing ${missing[*]}"
  # The programs are wanted, not daemons that start with the machine's own settings.
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

./install-mcp.sh || say "left out: the MCP servers of others (what needs them will be skipped, or fail in CI)"
./install-synapse.sh || say "left out: a Matrix server (what needs it will be skipped, or fail in CI)"
./install-homeassistant.sh || say "left out: a Home Assistant (what needs it will be skipped, or fail in CI)"
./install-llm.sh || say "left out: the small language model (what needs it will be skipped, or fail in CI)"

command -v apptainer >/dev/null && exit
if [ "$(id -u)" = 0 ] && say "installing apptainer" && ./install-apptainer.sh; then exit; fi
say "left out: apptainer (what needs it will be skipped, or fail in CI)"
