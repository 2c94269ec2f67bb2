#!/usr/bin/env bash
# All tests, two more at once than there are cores, as many wait for others; the files named as arguments alone, after them.
# What failed runs once more with the machine to itself: a fault in the code fails again, a test that could not stand the
# others' load is named, so that it can be mended, and does not hide the rest. In the end nothing may be left behind that
# was not there before.
set -uo pipefail
pytest=("${VENV:-.venv}/bin/python" -m pytest)
# Without its caches every worker would compile all tests again, and every process that they start the whole package.
unset PYTHONDONTWRITEBYTECODE

try() { # ARGUMENTS...
	"${pytest[@]}" -q "$@"
	local result=$?
	[ "$result" -eq 1 ] || return "$result"
	echo "Once more, alone:"
	"${pytest[@]}" --last-failed --maxfail=1 -v && echo "These are UNSTEADY: they passed only when run alone. Mend them."
}

left() { # one per line, sorted; fails when it cannot be told
	local found
	found=$("${VENV:-.venv}/bin/handrail" env prune --dry-run) || [ $? -eq 1 ] || return
	sed '/^Nothing was left/d' <<<"$found" | sort
}

before=$(left) || exit
try -n $(($(nproc) + 2)) --dist worksteal "${@/#/--ignore=}" || exit
[ $# -eq 0 ] || try "$@" || exit
after=$(left) || exit
new=$(comm -13 <(echo "$before") <(echo "$after"))
[ -z "$new" ] || { echo "The tests left something behind:" && echo "$new" && exit 1; }
