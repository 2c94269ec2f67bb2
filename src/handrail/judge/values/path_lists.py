"""Paths that matter: system directories, key files, files that run by themselves (in `path_lists.txt`), devices."""

from __future__ import annotations

import re

from .data_files import read_tables

_LISTS = {name: tuple(paths.split()) for name, paths in read_tables(__file__)[""].items()}
SYSTEM_TOP = frozenset(_LISTS["system top"])
SYSTEM_ROOTS = frozenset(_LISTS["system roots"])
TEMP = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")
CONFIG = re.compile(r"/(?:etc|boot|bin|sbin|lib\w*|usr(?!/local(?:/|$)|/src(?:/|$))|System|Library|private/etc)(?:/|$)")
# A program of this name, put before the system's own in PATH, runs instead of it.
SHADOWING = re.compile(
    r"/usr/local/s?bin/(?:sudo|su|doas|ssh|scp|sshd|login|passwd|ls|cat|ps|top|rm|cp|mv|sh|bash|zsh|env|grep|find|sed|awk|"
    r"curl|wget|git|gpg|systemctl|service|mount|chmod|chown|kill|id|who|w|netstat|ss|apt|apt-get|dnf|yum|crontab|python3?)"
    r"|.*/s?bin/handrail"
)
STARTUP_DIRS = _LISTS["startup dirs"]
CREDENTIALS = _LISTS["credentials"]
CREDENTIAL_NAMES = _LISTS["credential names"]
HARMLESS_NAMES = re.compile(
    r"\.env\.(example|sample|template|dist|test|ci)|cacert\.pem|cert\.pem|.*\bpub(lic)?\b.*\.pem|"
    r"fullchain\.pem|chain\.pem"
)
STARTUP = _LISTS["startup"]
HISTORY = _LISTS["history"]
OWN = _LISTS["own"]
DATA_NAMES = _LISTS["data names"]
# A terminal of its own that a program asks for (`/dev/tty`, `/dev/ptmx`) is not among them, nor is a serial port.
TERMINAL = re.compile(r"/dev/(?:pts/.+|tty\d+|console|vcs[au]?\d*|tty[p-za-e][0-9a-f])")
BLOCK_DEVICE = re.compile(
    r"/dev/(?:fd\d|[shv]d[a-zX*?\[{]|xvd|nvme|mmcblk|dm-|md\d|md/|loop|r?disk\d|disk/|mapper/|vg\w*/|sr\d|"
    r"nbd|zd|zvol/|bcache|drbd|pmem|mtd|"
    r"mem$|kmem|port$|ada\d|da\d|root$|[*?]|s[*?]|sg\d|cciss/|rbd|\ue000)"
)
HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|zero|full|tty|stdout|stderr|stdin|fd|u?random|pts|ptmx|shm|console|tcp|udp|dsp|"
    r"audio|usb|input|video|snd|serial|ttyS|kvm|net)"
)
