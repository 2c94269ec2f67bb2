"""What a shell keeps from one command to the next, and what it survives."""

import shlex

from .place import Place, check, expect, expect_that


def the_working_directory_is_kept(place: Place) -> None:
    """`cd` in one command is where the next one begins, and the result and the environment say the same."""
    result = place.run(f"cd {shlex.quote(place.folder)}")
    expect(result.cwd, place.folder, "cwd of the result")
    place.says("pwd", place.folder + "\n")
    expect(place.env.cwd, place.folder, "cwd of the environment")


def a_syntax_error_is_survived(place: Place) -> None:
    """A command that no shell can parse fails, and the next one runs."""
    for command in ("echo 'unfinished", "case x in", "fi", "cat <<END\nno end"):
        result = place.run(command)
        expect_that(result.exit_code != 0 or "<<" in command, f"`{command}` has exit code 0")
        place.works()


@check(fresh=True)
def a_process_limit_is_survived(place: Place) -> None:
    """A shell that may start no process (`ulimit -u 1`) still answers, and `exit` gives one that may."""
    place.run("ulimit -u 1")
    place.run("ls / >/dev/null", timeout=1)  # bash tries for a quarter of a minute
    place.run("exit")
    place.says("ls -d /", "/\n")
