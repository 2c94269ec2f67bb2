#!/usr/bin/env bash
# Install Apptainer on a Debian that does not have it: unstable's package and the C library it was built against, unpacked
# beside the system's own and never given to apt to install. Needs root, patchelf, squashfs-tools, uidmap.
# Usage: scripts/services/install-apptainer.sh
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
machine=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch 2>/dev/null || echo "$(uname -m)-linux-gnu")
libraries=/usr/lib/$machine
private=/opt/apptainer-libc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An apt of its own, with its own lists and no installed packages, so that the system's never sees unstable.
apt() { apt-get -qq -o "Dir=$work/apt" -o "Dir::State::status=$work/status" -o APT::Sandbox::User=root "$@"; }
mkdir -p "$work/apt/etc/apt/"{apt.conf.d,preferences.d,sources.list.d} "$work/apt/var/lib/apt/lists/partial" \
  "$work/apt/var/cache/apt/archives/partial" "$work/packages"
touch "$work/status"
# The archive that this machine uses anyway.
archive=$(debian_archive)
[ -n "$archive" ] || { say "no Debian archive is configured here"; exit 1; }
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive sid main" >"$work/apt/etc/apt/sources.list"
apt update
(cd "$work/packages" && apt download apptainer libc6)
dpkg-deb -x "$work"/packages/apptainer_*.deb "$work/apptainer"
dpkg-deb -x "$work"/packages/libc6_*.deb "$work/libc6"

mkdir -p "$private"
cp "$work/libc6$libraries"/*.so* "$private/"
chmod 755 "$private"/*
loader=$(basename "$(patchelf --print-interpreter /bin/bash)")
for program in usr/bin/apptainer "${libraries#/}/apptainer/bin/starter"; do
  patchelf --set-interpreter "$private/$loader" --set-rpath "$private:$libraries" "$work/apptainer/$program"
done

cp -a "$work/apptainer/etc/apptainer" /etc/
cp -a "$work/apptainer$libraries/apptainer" "$libraries/"
mkdir -p /var/lib/apptainer/mnt/{session,source}
# Machines in the cloud often have no CAP_SYS_RESOURCE and no systemd.
sed -i -e 's/^root default capabilities = .*/root default capabilities = no/' \
  -e 's/^systemd cgroups = .*/systemd cgroups = no/' /etc/apptainer/apptainer.conf
ln -sf apptainer /usr/bin/singularity
# Last: who finds the program finds all of it.
cp -a "$work/apptainer/usr/bin/apptainer" /usr/bin/
