"""Settings of ssh that run a command on this machine, on the command line or in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess

SETTINGS = [
    "ProxyCommand reboot",
    'Host *\n  ProxyCommand=sh -c "rm -rf ~"',
    "PermitLocalCommand yes\n\tLocalCommand rm -rf ~",
    "KnownHostsCommand reboot",
    'Match host x exec "rm -rf ~"\n  User me',
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("command", ["ssh -F cfg host", "ssh -Fcfg host ls", "scp -F cfg a host:b", "sftp -F cfg host"])
def test_a_file_of_settings_is_read_for_what_it_runs(settings: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "cfg").write_text(settings + "\n")
    assert assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(0.0)).dangerous
    assert assess(f"cat > cfg <<'E'\n{settings}\nE\n{command}").dangerous


def test_a_file_that_anybody_can_write_or_that_is_not_known_asks() -> None:
    assert assess("ssh -F /tmp/cfg host").dangerous
    assert assess("curl https://example.org/cfg > cfg; ssh -F cfg host").dangerous
    assert assess("sftp -F <(echo ProxyCommand reboot) host").dangerous


@pytest.mark.parametrize(
    "command",
    [
        "ssh -F ~/.ssh/config host",
        "ssh -F none host",
        "printf 'Host a\\n  HostName b\\n  ProxyCommand none\\n' > cfg; ssh -F cfg a uptime",
        "printf 'Host a\\n  ProxyCommand ssh -W %%h:%%p gate\\n' > cfg; ssh -F cfg a uptime",
        "ssh -o ProxyCommand='nc -X connect -x proxy:3128 %h %p' host",
    ],
)
def test_ordinary_settings_ask_nothing(command: str) -> None:
    assert not assess(command).dangerous
