"""Settings of backends: all of them have a text, and stand in the documentation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from handrail.environments.backends.daytona import DaytonaSettings
from handrail.environments.backends.modal import ModalSettings
from handrail.environments.backends.ssh import SshSettings
from handrail.environments.cloud import label_value

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = {SshSettings: "ssh.md", ModalSettings: "cloud-sandboxes.md", DaytonaSettings: "cloud-sandboxes.md"}


@pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.__name__)
def test_every_setting_is_documented(kind: type) -> None:
    page = (HOW_TO / PAGES[kind]).read_text()
    for field in dataclasses.fields(kind):
        assert field.metadata["doc"]
        assert f"`{field.name}`" in page, f"{PAGES[kind]} does not speak of {field.name}"


def test_labels_fit_and_differ() -> None:
    texts = ["plain-1", "a b", "a/b", "a" * 200, "a" * 201, "ü", "日本"]
    labels = [label_value(text) for text in texts]
    assert len(set(labels)) == len(texts)
    assert labels[0] == "plain-1"
    for label in labels:
        assert len(f"handrail-{label}") <= 63
        assert set(label) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
