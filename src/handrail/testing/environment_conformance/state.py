"""What a shell keeps from one command to the next, and what it survives."""

from __future__ import annotations

import shlex

from .place import Place, check, expect, expect_that


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


def _is_survived(place: Place, command: str, code: int) -> None:
    place.run("kit_kept='as it was'; kit_works() { echo works; }")
    result = place.says(f"echo printed; {command}", "printed\n", code=code)
    expect_that(result.restarted is not None, "the result does not say that the shell is another one now")
    again = place.says('echo "$kit_kept"; kit_works', "as it was\nworks\n")
    expect_that(again.restarted is None, "a result speaks of a new shell where nothing had ended the old one")


@check()
def exit_is_survived(place: Place) -> None:
    """`exit 3` ends with 3; a new shell has the state of the old one, and the result says so."""
    _is_survived(place, "exit 3", 3)


@check()
def exec_is_survived(place: Place) -> None:
    """After `exec program` the next command runs in a shell again, with the state from before."""
    _is_survived(place, "exec bash -c 'exit 9'", 9)


@check()
def a_failure_under_set_e_is_survived(place: Place) -> None:
    """`set -e; false` ends the shell with 1, and no more than that."""
    _is_survived(place, "set -e; false", 1)
    place.run("set +e")


@check()
def a_killed_shell_is_survived(place: Place) -> None:
    """`kill -9 $$` ends with 137; a new shell has the state from before the command."""
    _is_survived(place, "kill -9 $$", 137)


@check()
def a_syntax_error_is_survived(place: Place) -> None:
    """A command that no shell can parse fails, and the next one runs."""
    for command in ("echo 'unfinished", "case x in", "fi", "cat <<END\nno end"):
        result = place.run(command)
        expect_that(result.exit_code != 0 or "<<" in command, f"`{command}` has exit code 0")
        place.works()


@check(fresh=True)
def a_removed_working_directory_is_survived(place: Place) -> None:
    """When the working directory is removed the next commands run, also those in a new shell."""
    place.run(f"mkdir -p {shlex.quote(place.folder)}/gone && cd {shlex.quote(place.folder)}/gone && rmdir ../gone")
    place.works()
    place.run("exit 1")
    place.works()
    place.says("cd / && pwd", "/\n")


@check(fresh=True)
def an_empty_path_is_survived(place: Place) -> None:
    """With an empty PATH programs are not found, and all else goes on, in a new shell too."""
    place.run("kit_path=$PATH; PATH=")
    expect_that(place.run("ls").exit_code == 127, "`ls` was found without a PATH")
    place.works()
    place.run("exit 1")
    place.works()
    place.run("PATH=$kit_path")
    place.says("ls -d /", "/\n")


@check(fresh=True)
def a_process_limit_is_survived(place: Place) -> None:
    """A shell that may start no process (`ulimit -u 1`) still answers, and `exit` gives one that may."""
    place.run("ulimit -u 1")
    place.run("ls / >/dev/null", timeout=1)  # bash tries for a quarter of a minute
    place.run("exit")
    place.says("ls -d /", "/\n")
