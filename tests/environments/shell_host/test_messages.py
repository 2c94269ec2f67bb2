"""What the two sides of a channel tell each other comes over unchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.environments.shell_host.command_run import Command, Ended
from handrail.environments.shell_host.messages import (
    pack,
    pack_command,
    pack_ended,
    unpack,
    unpack_command,
    unpack_ended,
)

paths = st.binary(max_size=40).map(lambda data: data.replace(b"\0", b"/").decode("utf-8", "surrogateescape"))
commands = st.builds(
    Command,
    st.binary(max_size=200),
    st.binary(max_size=40),
    st.none() | st.binary(max_size=200),
    st.none() | st.floats(min_value=0, max_value=1e9),
    st.integers(0, 2**63),
)
ends = st.builds(
    Ended,
    st.integers(0, 2**32 - 1),
    st.none() | st.integers(0, 255),
    st.sampled_from(["", "timeout", "cancelled"]),
    paths,
    st.sampled_from(["", "ended", "timeout", "cancelled", "keeper"]),
    st.sampled_from(["", "kept", "snapshot", "clean"]),
    st.lists(st.fixed_dictionaries({"pid": st.integers(1, 1 << 22), "command": paths}), max_size=3),
    st.booleans(),
)


@given(commands)
def test_a_command_comes_over(command: Command) -> None:
    assert unpack_command(pack_command(command)) == command


@given(ends)
def test_the_end_of_a_command_comes_over(ended: Ended) -> None:
    assert unpack_ended(pack_ended(ended)) == ended


@given(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20)), st.binary(max_size=200))
def test_an_object_comes_over_with_its_data(details: dict[str, object], data: bytes) -> None:
    assert unpack(pack(details, data)) == (details, data)
