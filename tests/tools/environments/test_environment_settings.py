"""Settings of backends: all of them have a text, and stand in the documentation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from handrail.tools.environments import owner
from handrail.tools.environments.daytona import DaytonaSettings
from handrail.tools.environments.modal import ModalSettings
from handrail.tools.environments.ssh import SshSettings

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"
PAGES = {SshSettings: "ssh.md", ModalSettings: "cloud-sandboxes.md", DaytonaSettings: "cloud-sandboxes.md"}


@pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.__name__)
def test_every_setting_is_documented(kind: type) -> None:
    page = (HOW_TO / PAGES[kind]).read_text()
    for field in dataclasses.fields(kind):
        assert field.metadata["doc"]
        assert f"`{field.name}`" in page, f"{PAGES[kind]} does not speak of {field.name}"


def test_a_mark_tells_whether_its_process_has_ended() -> None:
    machine, boot, pid, start = owner.mark().split("-")
    assert not owner.is_gone(owner.mark())
    assert owner.is_gone(f"{machine}-{boot}-{pid}-{int(start) + 1}"), "another process has its number now"
    assert owner.is_gone(f"{machine}-00000000-{pid}-{start}"), "the machine was started again"
    assert not owner.is_gone(f"00000000-{boot}-{pid}-{start}"), "of another machine nobody can tell"
    assert not owner.is_gone("")
    assert not owner.is_gone("something-else-x-y")


def test_labels_fit_and_differ() -> None:
    texts = ["plain-1", "a b", "a/b", "a" * 200, "a" * 201, "ü", "日本"]
    labels = [owner.label(text) for text in texts]
    assert len(set(labels)) == len(texts)
    assert labels[0] == "plain-1"
    for label in labels:
        assert len(f"handrail-{label}") <= 63
        assert set(label) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
