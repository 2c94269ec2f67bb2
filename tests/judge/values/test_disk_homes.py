"""Rules and the floor follow the real homes, wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.judge import assess
from handrail.judge.values.assessment import Verdict
from handrail.judge.values.disk import NO_HOMES, local_homes, make_homes

HOMES = ("/srv/deploy", "/var/lib/worker", "/opt/agent", "/export/home/ada", "/data/people/ada", "/tmp/ci/home")
SERVICES = make_homes((), ("/var/lib/postgresql",))


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("rm -rf {}", Verdict.BLOCK),
        ("rm -rf {}/*", Verdict.BLOCK),
        ("find {} -delete", Verdict.BLOCK),
        ("mv {} /tmp/x", Verdict.ASK),
        ("cat {}/.ssh/id_ed25519", Verdict.ASK),
        ("tar cf k.tar {}/.aws", Verdict.ASK),
        ("echo k >> {}/.ssh/authorized_keys", Verdict.ASK),
        ("cp x {}/.bashrc", Verdict.ASK),
        ("tee {}/.config/systemd/user/x.service", Verdict.ASK),
        ("cat {}/notes.txt", Verdict.ALLOW),
        ("ls {}", Verdict.ALLOW),
    ],
)
def test_a_home_is_one_wherever_it_lies(home: str, command: str, verdict: Verdict) -> None:
    assert assess(command.format(home), homes=make_homes((home,))).verdict is verdict


@pytest.mark.parametrize("home", HOMES)
def test_a_project_in_a_home_is_the_project(home: str) -> None:
    homes = make_homes((home,))
    assert not assess("rm a.txt; echo x > b.txt; mv c d", cwd=f"{home}/shop", homes=homes).dangerous
    assert assess("rm -rf .", cwd=home, homes=homes).verdict is Verdict.BLOCK


def test_a_service_account_keeps_its_keys_but_its_data_is_not_a_home() -> None:
    assert assess("cat /var/lib/postgresql/.pgpass", homes=SERVICES).verdict is Verdict.ASK
    assert assess("rm -rf /var/lib/postgresql", homes=SERVICES).verdict is Verdict.ASK


def test_this_machines_homes_are_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.setenv("HOME", str(link))
    assert {str(real), str(link)} <= set(local_homes().people)
    assert assess(f"rm -rf {real}").verdict is Verdict.BLOCK
    assert assess(f"cat {link}/.aws/credentials").verdict is Verdict.ASK


@pytest.mark.parametrize("home", ["/", "/tmp", "/usr/sbin", "/nonexistent", "relative", ""])
def test_what_cannot_be_a_home_is_none(home: str) -> None:
    assert make_homes((home,)).people == ()


def test_another_machine_has_other_homes() -> None:
    homes = make_homes(("/srv/deploy",))
    assert assess("ssh host 'rm -rf /srv/deploy'", homes=homes).verdict is Verdict.ASK
    assert assess("rm -rf /srv/deploy", homes=NO_HOMES).verdict is Verdict.ASK
    assert assess("docker exec web rm -rf /home/ada", homes=homes).verdict is not Verdict.ALLOW
