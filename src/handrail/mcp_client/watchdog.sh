# Ends the process groups that it is told of (`+ group`, `- group`) when its input closes. See `stdio.Watchdog`.
trap '' INT TERM HUP
groups=
while read -r sign group; do
  left=
  for each in $groups; do [ "$each" = "$group" ] || left="$left $each"; done
  groups=$left
  [ "$sign" = + ] && groups="$groups $group"
done
[ -z "$groups" ] && exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done
