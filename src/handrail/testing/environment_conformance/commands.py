"""What commands are given, and the codes that they end with."""

from __future__ import annotations

import os
import shlex

from ...environments.errors import CommandRefused, NoSuchDirectory
from ...errors import ToolError
from .place import ConformanceFailure, Place, check, expect, expect_error, takes_at_most, text

_SECRETS = {"KIT_API_KEY": "a-key-of-the-runtime", "KIT_ACCESS_TOKEN": "a-token-of-the-runtime"}


@check()
def a_directory_can_be_given_for_one_command(place: Place) -> None:
    """`cwd` is for one command: the shell is back where it was afterwards, and relative ones begin there."""
    place.run(f"cd {shlex.quote(place.folder)} && mkdir sub")
    place.says("pwd", "/usr\n", cwd="/usr")
    place.says("pwd", f"{place.folder}/sub\n", cwd="sub")
    place.says("pwd", f"{place.folder}\n")


@check()
def a_directory_that_is_not_there_is_an_error(place: Place) -> None:
    """In a `cwd` that cannot be entered nothing runs: it is an error that says so."""
    place.run(f"cd {shlex.quote(place.folder)}")
    expect_error(NoSuchDirectory, lambda: place.run("touch ran", cwd="/no/such/place"), "a cwd that is not there")
    place.says("ls", "")


@check()
def variables_can_be_given_for_one_command(place: Place) -> None:
    """`env` is for one command and its programs, with values of any kind, and gone afterwards."""
    value = 'it\'s "odd" $HOME `x` \\ é\nend'
    place.says("bash -c 'echo \"$kit_given\"'", value + "\n", env={"kit_given": value})
    place.says("echo ${kit_given-gone}", "gone\n")


@check()
def a_big_environment_is_no_obstacle(place: Place) -> None:
    """With 300 exported variables of 1,000 bytes commands and their programs run, and a new shell has them too."""
    place.run("for kit_i in {1..300}; do printf -v kit_value %01000d $kit_i; export kit_big_$kit_i=$kit_value; done")
    place.says("env | grep -c ^kit_big_", "300\n")
    place.run("exit")
    place.says("bash -c 'echo ${#kit_big_300}'; echo $((10#$kit_big_7))", "1000\n7\n")
    place.run("unset ${!kit_big_*}")


@check()
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


@check()
def a_nul_is_refused(place: Place) -> None:
    """A NUL in a command is refused before anything of it runs."""
    place.run(f"cd {shlex.quote(place.folder)}")
    expect_error(CommandRefused, lambda: place.run("touch ran\0; touch ran"), "a NUL in a command")
    place.says("ls", "")


@check()
def words_of_any_kind_arrive(place: Place) -> None:
    """Quotes, newlines, here-documents, comments and characters beyond ASCII mean what they mean in bash."""
    place.says("echo 'a\"b' \"c'd\" $'e\\tf' \\\\ é 日本 🙂", "a\"b c'd e\tf \\ é 日本 🙂\n")
    place.says("cat <<'END'\n$HOME `x`\nEND", "$HOME `x`\n")
    place.says("echo one # not two\necho three", "one\nthree\n")
    place.says("for kit_i in 1 2; do\n  echo $kit_i\ndone", "1\n2\n")
    place.says("", "")


@check(quick=False)
def secrets_of_the_runtime_stay_out(place: Place) -> None:
    """API keys in the runtime's own environment variables are not in the commands'."""
    before = {name: os.environ.get(name) for name in _SECRETS}
    os.environ.update(_SECRETS)
    try:
        found = place.another().execute("env", timeout=place.patience)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    for name, value in _SECRETS.items():
        if name in text(found) or value in text(found):
            raise ConformanceFailure(f"{name} of this process is in the environment of a command")


@check()
def codes_are_exact(place: Place) -> None:
    """Any code from 0 to 255 is reported as it is; 126 and 127 are what cannot be run and what is not there."""
    for code in (0, 1, 2, 42, 124, 130, 255):
        place.says(f"(exit {code})", "", code=code)
    place.says("/etc 2>/dev/null", "", code=126)
    place.says("no-such-program 2>/dev/null", "", code=127)


@check()
def pipelines_have_the_code_of_their_last_part(place: Place) -> None:
    """The code of a pipeline is that of its last part, of any with pipefail, and PIPESTATUS has them all."""
    place.says("(exit 3) | (exit 0)", "")
    place.says("(exit 0) | (exit 4)", "", code=4)
    place.says("set -o pipefail; (exit 5) | cat; kit_code=$?; set +o pipefail; (exit $kit_code)", "", code=5)
    place.says('(exit 1) | (exit 2) | (exit 3); echo "${PIPESTATUS[*]}"', "1 2 3\n")


@check()
def signals_are_told_by_the_code(place: Place) -> None:
    """A program that a signal ended has 128 and the signal's number."""
    for name, number in (("TERM", 15), ("KILL", 9), ("SEGV", 11)):
        command = f"bash -c 'kill -{name} $$'"
        expect(place.run(command).exit_code, 128 + number, f"exit code of `{command}`")


@check()
def stdin_is_what_was_given(place: Place) -> None:
    """A command reads the bytes that it was given, then an end; the next command reads nothing of them."""
    given = bytes(range(256)) * 1000
    result = place.run("cat", stdin=given)
    expect(result.output.total_bytes, len(given), "number of bytes that came back")
    expect(result.output.head[:256], given[:256], "what came back")
    place.says("read -r kit_a; read -r kit_b; echo $kit_b $kit_a", "two one\n", stdin=b"one\ntwo\nthree\n")
    place.says("cat", "")


@check()
def without_stdin_there_is_an_end_at_once(place: Place) -> None:
    """A command without input reads end of file immediately: it never waits for a user."""
    with takes_at_most(place.patience / 2, "reading nothing"):
        place.says("cat; read kit_line; echo $?; bash -c 'read x; echo $?'", "1\n1\n")
