"""What commands are given, and the codes that they end with."""

import os
import shlex
from unittest import mock

from ...environments.errors import CommandRefused, NoSuchDirectory
from ...errors import ToolError
from .place import Place, check, expect, expect_error, expect_that, text

_SECRETS = {"KIT_API_KEY": "a-key-of-the-runtime", "KIT_ACCESS_TOKEN": "a-token-of-the-runtime"}


def a_directory_can_be_given_for_one_command(place: Place) -> None:
    """`cwd` is for one command: the shell is back where it was afterwards, and relative ones begin there."""
    place.run(f"cd {shlex.quote(place.folder)} && mkdir sub")
    place.says("pwd", "/usr\n", cwd="/usr")
    place.says("pwd", f"{place.folder}/sub\n", cwd="sub")
    place.says("pwd", f"{place.folder}\n")


def a_directory_that_is_not_there_is_an_error(place: Place) -> None:
    """In a `cwd` that cannot be entered nothing runs: it is an error that says so."""
    place.run(f"cd {shlex.quote(place.folder)}")
    expect_error(NoSuchDirectory, lambda: place.run("touch ran", cwd="/no/such/place"), "a cwd that is not there")
    place.says("ls", "")


def variables_can_be_given_for_one_command(place: Place) -> None:
    """`env` is for one command and its programs, with values of any kind, and gone afterwards."""
    value = 'it\'s "odd" $HOME `x` \\ é\nend'
    place.says("bash -c 'echo \"$kit_given\"'", value + "\n", env={"kit_given": value})
    place.says("echo ${kit_given-gone}", "gone\n")


def a_command_of_a_megabyte_works_or_is_refused(place: Place) -> None:
    """A command of 1 MB runs as it is, or is refused with a reason; it is never cut."""
    data = "0123456789abcdef" * (1 << 16)
    try:
        result = place.run(f"kit_long={data}; echo ${{#kit_long}}; unset kit_long")
    except ToolError as error:
        expect(bool(str(error).strip()), True, "whether the refusal has a reason")
    else:
        expect(text(result), f"{len(data)}\n", "length of what arrived")
    place.works()


def a_nul_is_refused(place: Place) -> None:
    """A NUL in a command is refused before anything of it runs."""
    place.run(f"cd {shlex.quote(place.folder)}")
    expect_error(CommandRefused, lambda: place.run("touch ran\0; touch ran"), "a NUL in a command")
    place.says("ls", "")


@check(quick=False)
def secrets_of_the_runtime_stay_out(place: Place) -> None:
    """API keys in the runtime's own environment variables are not in the commands'."""
    with mock.patch.dict(os.environ, _SECRETS):
        found = text(place.another().execute("env", timeout=place.patience))
    for name, value in _SECRETS.items():
        is_hidden = name not in found and value not in found
        expect_that(is_hidden, f"{name} of this process is in the environment of a command")


def stdin_is_what_was_given(place: Place) -> None:
    """A command reads the bytes that it was given, then an end; the next command reads nothing of them."""
    given = bytes(range(256)) * 1000
    result = place.run("cat", stdin=given)
    expect(result.output.total_bytes, len(given), "number of bytes that came back")
    expect(result.output.head[:256], given[:256], "what came back")
    place.says("read -r kit_a; read -r kit_b; echo $kit_b $kit_a", "two one\n", stdin=b"one\ntwo\nthree\n")
    place.says("cat", "")
