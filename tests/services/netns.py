"""A network link between this machine's network and a service's own, which can be cut and restored."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# A /30 each out of a range that is for measuring networks and is not routed (RFC 2544).
_NETWORK = "198.18.{}.{}"
_MAX_LINKS = 254 * 64


@dataclass(frozen=True)
class Link:
    """A pair of virtual interfaces. It is gone with the network of the process at its far end."""

    name: str
    process: int
    near_address: str
    far_address: str

    @classmethod
    def to(cls, process: int) -> Link:
        """A link to the network in which a process is, other than our own."""
        link = cls._free(process)
        for command in (
            f"ip addr add {link.near_address}/30 dev {link.name}",
            f"ip link set {link.name} up",
            link._there(f"ip addr add {link.far_address}/30 dev far"),
            link._there("ip link set far up"),
        ):
            _run(command)
        # Fixed, so that a cut is a silence and not an "unreachable" after the third unanswered question.
        hardware = re.search(r"link/ether (\S+)", _run(link._there("ip link show far")))
        assert hardware
        _run(f"ip neigh replace {link.far_address} lladdr {hardware[1]} nud permanent dev {link.name}")
        return link

    def cut(self) -> None:
        """Nothing gets through, in either direction, and nobody is told."""
        _run(self._there("ip link set far down"))

    def restore(self) -> None:
        _run(self._there("ip link set far up"))

    @classmethod
    def _free(cls, process: int) -> Link:
        for attempt in range(_MAX_LINKS):
            number = (os.getpid() + attempt) % _MAX_LINKS
            high, low = divmod(number, 64)
            link = cls(f"hr{number}", process, _NETWORK.format(high, low * 4 + 1), _NETWORK.format(high, low * 4 + 2))
            made = subprocess.run(
                f"ip link add {link.name} type veth peer name far netns {process}".split(),
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if made.returncode == 0:
                return link
            if "exists" not in made.stderr:
                raise AssertionError(made.stderr)
        raise AssertionError("no link is free")

    def _there(self, command: str) -> str:
        return f"nsenter --target {self.process} --net {command}"

    @property
    def is_there(self) -> bool:
        return Path("/sys/class/net", self.name).exists()


def _run(command: str) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
