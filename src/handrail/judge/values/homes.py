"""Where the homes of a machine's users are. Nothing is looked up before the first command is judged."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PASSWD = "/etc/passwd"
_FIRST_PERSON = 1000
_NOBODY = 65534
# Entries of passwd that say "no home", and directories that are far more than one.
_NO_HOMES = frozenset(
    "/ /bin /sbin /dev /proc /sys /usr /usr/bin /usr/sbin /usr/games /etc /var /var/lib /var/run /run /tmp /var/tmp /opt /srv "
    "/home /root /mnt /media /nonexistent /nonexistant /var/empty /var/mail /var/spool /var/cache /var/backups /boot".split()
)


@dataclass(frozen=True, eq=False, slots=True)
class Homes:
    """`people`: whole homes, which must not be lost. `services`: homes of service accounts, where keys and start-up files
    are protected; the rest is the data of a service."""

    people: tuple[str, ...] = ()
    services: tuple[str, ...] = ()

    def split(self, path: str) -> tuple[str, bool] | None:
        """What follows the home that an absolute path lies in, and whether it is a person's; None outside of homes."""
        for homes, person in ((self.people, True), (self.services, False)):
            for home in homes:
                if path.startswith(home) and path[len(home) : len(home) + 1] in ("", "/"):
                    return path[len(home) :], person
        return None


NO_HOMES = Homes()


def make_homes(people: Iterable[str], services: Iterable[str] = ()) -> Homes:
    """From absolute paths; those that cannot be one user's home are left out."""
    own = _usable(people)
    return Homes(own, tuple(home for home in _usable(services) if home not in own))


def local_homes() -> Homes:
    """Those of this machine: `$HOME`, this user's entry in passwd, and all others there."""
    return _local_homes(os.environ.get("HOME", ""))


@functools.lru_cache(16)
def _local_homes(home: str) -> Homes:
    entries = list(_entries())
    own = [place for uid, place in entries if uid == os.getuid()]
    people = [home, *own, *(place for uid, place in entries if _FIRST_PERSON <= uid < _NOBODY)]
    return make_homes(_and_real(people), _and_real(place for uid, place in entries if 0 < uid < _FIRST_PERSON))


def _entries() -> Iterator[tuple[int, str]]:
    try:
        with open(_PASSWD, encoding="utf-8", errors="replace") as file:
            fields = [line.rstrip("\n").split(":") for line in file]
    except OSError:
        return
    for entry in fields:
        if len(entry) > 5 and entry[2].isdigit():
            yield int(entry[2]), entry[5]


def _and_real(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if place.startswith("/"):
            yield place
            yield os.path.realpath(place)


def _usable(places: Iterable[str]) -> tuple[str, ...]:
    named = (place.rstrip("/") for place in places if place.startswith("/"))
    kept = dict.fromkeys(place for place in named if place and place not in _NO_HOMES)
    return tuple(sorted(kept, key=len, reverse=True))
