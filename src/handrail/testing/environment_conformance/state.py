"""What one command leaves for the next."""

from __future__ import annotations

import shlex

from .check import check, expect
from .place import Place


@check()
def the_working_directory_is_kept(place: Place) -> None:
    """`cd` in one command is where the next one begins, and the result and the environment say the same."""
    result = place.run(f"cd {shlex.quote(place.folder)}")
    expect(result.cwd, place.folder, "cwd of the result")
    place.says("pwd", place.folder + "\n")
    expect(place.env.cwd, place.folder, "cwd of the environment")


@check()
def exported_variables_are_kept(place: Place) -> None:
    """A variable that one command exports is in the environment of the next one's programs."""
    place.run("export kit_exported=$'one two\\nthree'")
    place.says("bash -c 'echo \"$kit_exported\"'", "one two\nthree\n")


@check()
def plain_variables_are_kept(place: Place) -> None:
    """A variable that is not exported is there in the next command, an array too, but not in its programs."""
    place.run("kit_plain='one  two'; kit_array=(a 'b c')")
    place.says('echo "$kit_plain" "${kit_array[1]}"; bash -c \'echo "<$kit_plain>"\'', "one  two b c\n<>\n")


@check()
def functions_are_kept(place: Place) -> None:
    """A function that one command defines can be called in the next."""
    place.run('kit_function() { echo "called with $1"; }')
    place.says("kit_function x", "called with x\n")


@check()
def aliases_are_kept(place: Place) -> None:
    """An alias that one command defines works in the next."""
    place.run("alias kit_alias='echo an alias'")
    place.says("kit_alias of mine", "an alias of mine\n")


@check()
def options_are_kept(place: Place) -> None:
    """Shell options and the umask that one command sets hold in the next."""
    place.run("set -f; shopt -s nullglob; umask 027")
    place.says("[[ $- == *f* ]] && shopt -q nullglob && umask", "0027\n")
    place.run("set +f; shopt -u nullglob; umask 022")


@check()
def the_last_exit_code_is_kept(place: Place) -> None:
    """`echo $?` tells how the command before ended."""
    place.run("(exit 7)")
    place.says("echo $?", "7\n")
    place.says("echo $?", "0\n")
