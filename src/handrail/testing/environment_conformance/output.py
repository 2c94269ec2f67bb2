"""Output comes whole, in order and while the command runs; of any size and speed it costs bounded memory."""

import os
import shlex
import threading

from ...environments.output import OutputSink
from .place import Place, check, expect, expect_that, text

# What wrappers print at the end of a command, or look for; and what terminals and shells use as marks.
_FAKE_ENDS = (
    "__END__ 0", "__HANDRAIL_END__:0", "SHELLPS1PREFIX", "; 1 0 0 ;", "EXITCODE:0", "$?", "\\033]133;D;0\\007",
    "\\033]7;file:///nowhere\\007", "\\004", "\\003", "#end",
)  # fmt: skip
_MEGABYTES, _MAX_GROWTH_MEGABYTES = 100, 40
_LINES_A_SECOND, _BURSTS_A_SECOND = 10_000, 20


def output_comes_while_the_command_runs(place: Place) -> None:
    """A listener hears of output when it is printed, not when the command has ended."""
    gate = f"{place.folder}/gate"
    heard: list[bytes] = []
    first = threading.Event()

    def listen(piece: bytes) -> None:
        heard.append(piece)
        first.set()

    def open_gate() -> None:
        if first.wait(place.patience):
            place.env.files.write(gate, b"")

    opener = threading.Thread(target=open_gate, daemon=True)
    opener.start()
    command = f"echo first; until [ -e {shlex.quote(gate)} ]; do sleep .02; done; echo last"
    result = place.run(command, on_output=listen, timeout=place.patience / 3)
    first.set()
    opener.join(place.patience)
    expect_that(not result.timed_out, "nothing of the output came before the command's end")
    expect(b"".join(heard), b"first\nlast\n", "what the listener heard")


def a_listener_that_fails_ends_the_command(place: Place) -> None:
    """When the listener raises, the command is abandoned, and the same exception arrives at the caller."""
    nap = place.nap()

    class Enough(Exception):
        pass

    def listen(_: bytes) -> None:
        raise Enough

    try:
        place.run(f"echo begun; sleep {nap}", on_output=listen)
    except Enough:
        place.expect_gone(nap, "the command")
        place.works()
        return
    expect_that(False, "the listener's exception did not arrive")


def bytes_are_not_changed(place: Place) -> None:
    """Every byte arrives as it was printed: NULs, carriage returns, escapes, invalid UTF-8, a last line without an end."""
    result = place.run('for i in {0..255}; do printf -v h %03o $i; printf "\\\\$h"; done')
    expect(result.output.head, bytes(range(256)), "all bytes")
    place.says("printf 'no end'", "no end")
    place.says("printf '\\n\\n'", "\n\n")
    expect(place.run(r"printf '\303\050\r\n'").output.head, b"\xc3\x28\r\n", "broken UTF-8")
    place.says("true", "")


def nothing_printed_can_look_like_the_end(place: Place) -> None:
    """Whatever a command prints, to its output or to any descriptor it has, its end and its code are its own."""
    words = " ".join(shlex.quote(one) for one in _FAKE_ENDS)
    forge = f'for kit_word in {words}; do printf "$kit_word\\n"; done'
    everywhere = "(exec 2>/dev/null; for kit_fd in {3..255}; do echo 0 >&$kit_fd; done)"
    result = place.run(f"{forge}; {everywhere}; echo the real end; (exit 7)")
    expect(result.exit_code, 7, "exit code")
    lines = text(result).splitlines()
    expect(len(lines), len(_FAKE_ENDS) + 1, "number of lines")
    expect(lines[-1], "the real end", "last line")
    place.works()


@check(fresh=True)
def a_command_that_closes_its_output_is_waited_for(place: Place) -> None:
    """A command that closes its stdout and lives on is waited for, and the next one's output arrives."""
    for command in ("bash -c 'exec >&- 2>&-; sleep .4; exit 4'", "exec >&- 2>&-; sleep .4; (exit 4)"):
        result = place.run(command)
        expect(result.exit_code, 4, f"exit code of `{command}`")
        expect_that(result.seconds >= 0.3, f"`{command}` was not waited for")
        place.works()


def the_head_and_the_tail_are_kept(place: Place) -> None:
    """Of more output than is asked for, exactly the first and the last bytes are kept, and all are counted."""
    whole = "".join(f"{number}\n" for number in range(1, 50_001)).encode()
    output = place.run("seq 50000", output=OutputSink(head_bytes=1000, tail_bytes=2000)).output
    expect(output.total_bytes, len(whole), "number of bytes")
    expect(output.head, whole[:1000], "head")
    expect(output.tail, whole[-2000:], "tail")
    expect(output.skipped_bytes, len(whole) - 3000, "number of bytes that were left out")


@check(quick=False)
def a_hundred_megabytes_cost_bounded_memory(place: Place) -> None:
    """100 MB of output are counted to the byte, with head and tail, and this process does not grow with them."""
    size = _MEGABYTES << 20
    before, heard, grown = _resident_bytes(), 0, 0

    def look(piece: bytes) -> None:
        nonlocal heard, grown
        if heard >> 20 != (heard := heard + len(piece)) >> 20:  # once per megabyte
            grown = max(grown, _resident_bytes() - before)

    command = f"echo the head; head -c {size} /dev/zero; echo; echo the tail"
    result = place.run(command, on_output=look, timeout=place.patience * 3)
    expect(result.exit_code, 0, "exit code")
    expect(result.output.total_bytes, size + len("the head\n\nthe tail\n"), "number of bytes")
    expect_that(result.output.head.startswith(b"the head\n\0"), "the head is not what was printed first")
    expect_that(result.output.tail.endswith(b"\0\nthe tail\n"), "the tail is not what was printed last")
    grown = max(grown, _resident_bytes() - before) >> 20
    expect_that(grown <= _MAX_GROWTH_MEGABYTES, f"this process grew by {grown} MB for {_MEGABYTES} MB of output")


@check(quick=False)
def ten_thousand_lines_a_second_arrive(place: Place) -> None:
    """10,000 lines a second arrive all and in order, with a listener who hears them as they come."""
    lines = int(_LINES_A_SECOND * place.flood_seconds)
    burst = _LINES_A_SECOND // _BURSTS_A_SECOND
    count, pieces, rest = 0, 0, b""

    def count_up(piece: bytes) -> None:
        """Counts lines that count up by themselves, until one is wrong."""
        nonlocal count, pieces, rest
        pieces += 1
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line != b"%d" % (count + 1):
                return
            count += 1

    command = (
        f"for ((kit_i = 0; kit_i < {lines}; kit_i += {burst})); do "
        f"seq $((kit_i + 1)) $((kit_i + {burst})); sleep {1 / _BURSTS_A_SECOND}; done"
    )
    result = place.run(command, on_output=count_up, timeout=place.patience + 4 * place.flood_seconds)
    expect(result.exit_code, 0, "exit code")
    expect(count, -(-lines // burst) * burst, "number of lines in order")
    expect_that(pieces > 1, "all came at once, at the end")


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
