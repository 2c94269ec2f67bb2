"""Settings of containers: read from a mapping, refused when they are wrong, honest about what commands can reach."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.backends.apptainer import ApptainerEnvironment, ApptainerSettings
from handrail.environments.backends.docker import DockerEnvironment, DockerSettings
from handrail.environments.backends.podman import PodmanEnvironment
from handrail.environments.containers import Mount
from handrail.errors import ConfigError


def test_settings_are_read_with_a_tasks_own_values_above_them() -> None:
    settings = {
        "image": "a:1",
        "cpus": 2,
        "mounts": [".:/work", "data:/data:ro"],
        "env": {"A": "1", "B": "1"},
        "cwd": "/a",
    }
    made = DockerEnvironment.from_settings(settings, task_id="t", cwd="/b", env={"B": "2"}).settings
    assert made.cpus == 2.0
    assert made.mounts == (Mount(os.getcwd(), "/work"), Mount("data", "/data", read_only=True))
    assert made.env == {"A": "1", "B": "2"}
    assert made.cwd == "/b"
    assert made.engine == "docker"
    assert PodmanEnvironment.from_settings({}, task_id="t").settings.engine == "podman"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"imagee": "x"}, r"docker\.imagee: unknown key; did you mean 'image'\?"),
        ({"image": 3}, r"docker\.image: must be text, not 3"),
        ({"image": ""}, "cannot be the name of an image"),
        ({"image": "--privileged"}, "cannot be the name of an image"),
        ({"memory": "lots"}, "'lots' is not a size, such as 512m or 4g"),
        ({"memory": 512}, r"docker\.memory: must be text, not 512"),
        ({"cpus": 0}, "cpus: must be more than 0"),
        ({"pids": True}, "must be a whole number, not True"),
        ({"pids": 1.5}, "must be a whole number, not 1.5"),
        ({"persistent": "yes"}, "must be true or false, not 'yes'"),
        ({"cwd": "work"}, "has to be an absolute path"),
        ({"env": ["A=1"]}, "must be a mapping"),
        ({"env": {"A": 1}}, r"docker\.env\.A: must be text, not 1"),
        ({"mounts": "/a:/b"}, "must be a list"),
        ({"mounts": ["/a"]}, "write source:target, or that with :ro or :ask"),
        ({"mounts": ["/a:/b:rx"]}, "write source:target, or that with :ro or :ask"),
        ({"mounts": ["/a:b"]}, "absolute"),
        ({"mounts": [{"source": "/a"}]}, r"mounts\.target: is missing"),
        ({"run_arguments": ["--shm-size", "1g"]}, "write each argument as one word"),
        ({"run_arguments": ["-v=/:/host"]}, "write each argument as one word"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_said_with_its_key(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DockerEnvironment.from_settings(settings, task_id="t")


@pytest.mark.parametrize(
    "settings",
    [
        {"run_arguments": ("--privileged",)},
        {"run_arguments": ("--pid=host",)},
        {"run_arguments": ("--ipc=host",)},
        {"run_arguments": ("--userns=host",)},
        {"run_arguments": ("--cap-add=SYS_ADMIN",)},
        {"run_arguments": ("--security-opt=seccomp=unconfined",)},
        {"run_arguments": ("--device=/dev/sda",)},
        {"run_arguments": ("--volume=/:/host",)},
        {"run_arguments": ("--mount=type=bind,source=/,target=/host",)},
        {"run_arguments": ("--volumes-from=other",)},
        {"run_arguments": ("--some-new-option",)},
        {"mounts": (Mount("/var/run/docker.sock", "/var/run/docker.sock", read_only=True),)},
        {"mounts": (Mount("/run", "/host"),)},
        {"mounts": (Mount("/", "/host", read_only=True),)},
    ],
    ids=str,
)
def test_what_breaks_the_walls_is_refused_unless_it_is_allowed_and_then_said(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"may give commands power over this machine.*allow_unsafe"):
        DockerSettings(**settings)
    allowed = DockerSettings(**settings, allow_unsafe=True)
    assert not allowed.isolated
    assert allowed.reaches_host


def test_the_socket_that_this_process_uses_is_not_mounted_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine/listens.here")
    with pytest.raises(ConfigError, match="power over this machine"):
        DockerSettings(mounts=(Mount(str(tmp_path), "/work"),))
    DockerSettings(mounts=(Mount(str(tmp_path / "other"), "/work"),))


@pytest.mark.parametrize(
    ("settings", "isolated", "reaches_host"),
    [
        ({}, True, False),
        ({"network": "none"}, True, False),
        ({"network": "host"}, False, False),
        ({"mounts": (Mount("/srv/work", "/work"),)}, True, True),
        ({"mounts": (Mount("/srv/work", "/work", read_only=True),)}, True, False),
        ({"mounts": (Mount("volume", "/work"),)}, True, False),
        ({"mounts": (Mount("/etc", "/host"),)}, False, True),
        ({"mounts": (Mount("/usr/local/bin", "/host"),)}, False, True),
        ({"mounts": (Mount("/etc", "/host", read_only=True),)}, True, False),
    ],
    ids=str,
)
def test_what_commands_can_reach_follows_from_the_settings(
    settings: dict[str, Any], isolated: bool, reaches_host: bool
) -> None:
    made = DockerEnvironment(DockerSettings(**settings))
    assert (made.isolated, made.reaches_host) == (isolated, reaches_host)


def test_a_path_may_begin_in_the_home_and_be_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Mount.parse("~/work:/work").source == str(tmp_path / "work")
    (tmp_path / "link").symlink_to("/etc")
    assert Mount(str(tmp_path / "link"), "/work").changes_system


def test_a_comma_in_a_path_is_quoted() -> None:
    assert Mount('/a,b "c"', "/d", read_only=True).argument == 'type=bind,"source=/a,b ""c""",target=/d,ro'


def test_what_is_persistent_needs_a_task() -> None:
    for make in (DockerEnvironment, ApptainerEnvironment):
        with pytest.raises(ConfigError, match="give it a task_id"):
            make.from_settings({"persistent": True}, task_id="")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"network": "bridge"}, "must be host or none"),
        ({"mounts": ["volume:/data"]}, "is not a path; there are no named volumes here"),
        ({"start_arguments": ["--writable"]}, "may give commands power"),
        ({"start_arguments": ["--keep-privs"]}, "may give commands power"),
        ({"start_arguments": ["--bind=/:/host"]}, "may give commands power"),
        ({"engine": "docker"}, r"apptainer\.engine: unknown key"),
    ],
    ids=str,
)
def test_what_is_wrong_for_apptainer_is_said(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ApptainerEnvironment.from_settings(settings, task_id="t")


def test_apptainer_is_as_open_as_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not ApptainerSettings().isolated  # the network is the machine's own
    closed = ApptainerSettings(network="none")
    assert closed.isolated
    assert not closed.reaches_host
    assert ApptainerSettings(network="none", mounts=(Mount("/srv/work", "/work"),)).reaches_host
