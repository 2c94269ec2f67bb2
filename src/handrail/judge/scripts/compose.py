"""Read a compose file: which rights each of its services gets, as the options of `docker run` that would give them."""

from __future__ import annotations

from typing import Any

NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
OVERRIDES = tuple(name.replace(".y", ".override.y") for name in NAMES)
MAX_TEXT = 30_000
_MAX_SERVICES = 50
_LISTS = {"cap_add": "--cap-add", "devices": "--device", "security_opt": "--security-opt"}
_MODES = {"pid": "--pid", "ipc": "--ipc", "network_mode": "--network", "userns_mode": "--userns", "uts": "--uts"}


def load_yaml(text: str) -> Any:
    """What a YAML file holds; None when it cannot be read, or is longer than is read."""
    if len(text) > MAX_TEXT:
        return None
    from ruamel.yaml import YAML  # takes longer to load than most commands take to judge
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, RecursionError, ValueError):
        return None


def options_of(text: str) -> list[list[str]] | None:
    """The options of each service; None when the file cannot be read."""
    found = load_yaml(text)
    if found is None:
        return None
    services = found.get("services", found) if isinstance(found, dict) else {}
    if not isinstance(services, dict) or len(services) > _MAX_SERVICES:
        return None
    volumes = found.get("volumes") if isinstance(found, dict) else None
    return [_options(service, volumes) for service in services.values() if isinstance(service, dict)]


def _options(service: dict[str, Any], volumes: Any) -> list[str]:
    options = ["--privileged"] if service.get("privileged") else []
    for key, option in _MODES.items():
        if isinstance(service.get(key), str):
            options.append(f"{option}={service[key]}")
    for key, option in _LISTS.items():
        values = service.get(key)
        options += (
            [f"{option}={value}" for value in values if isinstance(value, str)] if isinstance(values, list) else []
        )
    mounts = service.get("volumes")
    for mount in mounts if isinstance(mounts, list) else []:
        if isinstance(mount, dict):
            mount = f"{mount.get('source', '')}:{mount.get('target', '')}{':ro' if mount.get('read_only') else ''}"
        source, colon, rest = str(mount).partition(":")
        options += ["-v", f"{_device(source, volumes)}{colon}{rest}"] if colon else []
    return options


def _device(source: str, volumes: Any) -> str:
    """A named volume may stand for a folder of this machine."""
    named = volumes.get(source) if isinstance(volumes, dict) else None
    given = named.get("driver_opts") if isinstance(named, dict) else None
    return str(given.get("device") or source) if isinstance(given, dict) else source
