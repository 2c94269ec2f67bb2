"""A section of settings is a frozen dataclass, though its methods are written by hand."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from handrail.settings.schema import Config
from handrail.settings.sections import FilesConfig


def test_what_is_not_given_has_its_default() -> None:
    made = FilesConfig(roots=("/srv",))
    assert (made.roots, made.max_read_bytes) == (("/srv",), FilesConfig().max_read_bytes)


def test_every_config_has_its_own_groups() -> None:
    one, other = Config(), Config()
    assert one == other
    assert one.plugins is not other.plugins
    assert one.files is not other.files


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="FilesConfig has no setting rots"):
        FilesConfig(rots=())  # type: ignore[call-arg]


def test_nothing_can_be_changed_or_deleted() -> None:
    made = FilesConfig()
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"FilesConfig\.roots cannot be changed"):
        made.roots = ("/",)  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.roots
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.new = 1  # type: ignore[attr-defined]


def test_it_is_compared_by_what_it_says() -> None:
    assert FilesConfig(roots=("/a",)) == FilesConfig(roots=("/a",)) != FilesConfig()
    assert hash(FilesConfig(roots=("/a",))) == hash(FilesConfig(roots=("/a",)))
    assert FilesConfig() != Config()
    assert repr(FilesConfig(roots=("/a",))).startswith("FilesConfig(roots=('/a',), max_read_bytes=")


def test_it_is_copied_replaced_and_sent_as_other_dataclasses_are() -> None:
    made = dataclasses.replace(Config(), files=FilesConfig(roots=("/a",)))
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert copied == made
    assert dataclasses.asdict(made)["files"]["roots"] == ("/a",)
    assert dataclasses.is_dataclass(made)
