from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .. import pages


@pytest.fixture
def site() -> Iterator[pages.Site]:
    with pages.site() as made:
        yield made


@pytest.fixture
def configure(home: Path) -> Callable[..., None]:
    """Write config.yaml; the runtime of the test reads it at its first call."""

    def write(text: str) -> None:
        (home / "config.yaml").write_text(text)

    return write


@pytest.fixture
def open_site(site: pages.Site, configure: Callable[[str], None]) -> pages.Site:
    """A site that the web tools may reach."""
    configure(f"web: {{allow_private: ['127.0.0.1:{site.port}'], timeout: 60, max_bytes: 1000000}}\n")
    return site
