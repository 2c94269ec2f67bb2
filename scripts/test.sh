#!/usr/bin/env bash
# All tests, four more at once than there are cores: most of their time they wait for a process, a browser or a container.
# What failed runs once more with the machine to itself: a fault in the code fails again, a test that could not stand the
# others' load is named, so that it can be mended, and does not hide the rest. In the end nothing may be left behind that
# was not there before.
set -uo pipefail
pytest=("${VENV:-.venv}/bin/python" -m pytest)
# Without its caches every worker would compile all tests again, and every process that they start the whole package.
unset PYTHONDONTWRITEBYTECODE

left() { # one per line, sorted; fails when it cannot be told
	local found
	found=$("${VENV:-.venv}/bin/handrail" env prune --dry-run) || [ $? -eq 1 ] || return
	sed '/^Nothing was left/d' <<<"$found" | sort
}

before=$(left) || exit
"${pytest[@]}" -q -n $(($(nproc) + 4)) --dist worksteal
result=$?
if [ "$result" -eq 1 ]; then
	echo "Once more, alone:"
	"${pytest[@]}" --last-failed --maxfail=1 -v && echo "These are UNSTEADY: they passed only when run alone. Mend them."
	result=$?
fi
[ "$result" -eq 0 ] || exit "$result"
after=$(left) || exit
new=$(comm -13 <(echo "$before") <(echo "$after"))
[ -z "$new" ] || { echo "The tests left something behind:" && echo "$new" && exit 1; }
