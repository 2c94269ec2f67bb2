#!/usr/bin/env bash
# Install what the services of the tests are made of (tests/services). Quick when everything is there.
# Usage: scripts/services/install.sh
set -euo pipefail
cd "$(dirname "$0")"
. ../lib.sh
PATH=$PATH:/usr/sbin:/sbin

policy=/usr/sbin/policy-rc.d
without="what needs it will be skipped, or fail in CI"

missing=()
for need in dockerd:docker.io podman:podman sshd:openssh-server ssh:openssh-client rsync:rsync bwrap:bubblewrap ip:iproute2 \
  nsenter:util-linux patchelf:patchelf openssl:openssl mksquashfs:squashfs-tools newuidmap:uidmap vi:vim-tiny less:less tmux:tmux \
  espeak-ng:espeak-ng chromium:chromium setpriv:util-linux searx-run:searx node:nodejs npm:npm go:golang-go \
  javac:default-jdk-headless zsh:zsh fish:fish; do
  command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
# Its programs are not in PATH.
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null || missing+=(postgresql)
# Newer Debians have the client in a package of its own.
if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then missing+=(docker-cli); fi
if [ ${#missing[@]} -gt 0 ] && ! can_apt; then
  for package in "${missing[@]}"; do leave_out "$package" "install it for the full tests; $without"; done
elif [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  # The programs are wanted, not daemons that start with the machine's own settings.
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  if ! apt_install "${missing[@]}"; then
    # One that this archive does not have keeps the others out as well.
    for package in "${missing[@]}"; do apt_install "$package" || leave_out "$package" "apt-get could not install it; $without"; done
  fi
fi

./install-mcp.sh || leave_out "the MCP servers of others" "$without"
./install-acp.sh || leave_out "the ACP clients of others" "$without"
./install-frameworks.sh || leave_out "the agent frameworks" "$without"
./install-synapse.sh || leave_out "a Matrix server" "$without"
./install-homeassistant.sh || leave_out "a Home Assistant" "$without"
./install-llm.sh || leave_out "the small language model" "$without"

if ! command -v apptainer >/dev/null; then
  if can_apt; then
    say "installing apptainer"
    ./install-apptainer.sh || leave_out "apptainer" "$without"
  else
    leave_out "apptainer" "root installs it; $without"
  fi
fi
finish
