#!/usr/bin/env bash
# The first process of a fresh machine: it mounts the system, leaves this machine's for it, and runs what is to be tried.
# It is in a mount and process namespace of its own, so that nothing of this outlasts it.
# Usage: scripts/fresh/enter.sh BASE MACHINE CLONE ENVIRONMENT FOLDERS NAME   (by scripts/fresh.sh)
set -euo pipefail
base=$1 machine=$2 clone=$3 environment=$4 folders=$5 name=$6
root=$machine/root

# Volatile: what is thrown away need not reach the disk, and apt waits for that more than for anything else.
mount -t overlay overlay -o "volatile,lowerdir=$base,upperdir=$machine/upper,workdir=$machine/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/run/lock" "$root/source" "$root/.host"
mount --bind -o ro "$clone" "$root/source"
while read -r folder; do
  [ -n "$folder" ] || continue
  mkdir -p "$root$folder"
  mount --bind -o ro "$folder" "$root$folder"
done <<<"$folders"
cp "$environment" "$root/run/environment"

# Not chroot: inside of one nobody can make a user namespace, and so no ordinary user a sandbox.
cd "$root"
pivot_root . .host
exec chroot . /bin/bash -c 'umount -l /.host && rmdir /.host && exec env -i /bin/bash /source/scripts/fresh/inside.sh "$1"' - "$name" </dev/null
