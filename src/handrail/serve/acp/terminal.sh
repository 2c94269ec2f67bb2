# Runs a command in a terminal of the editor, with what a shell would keep from the command before:
# exported variables in the file $1, the directory in the file $2 (either may be empty). $3 is the command, $4 its input.
handrail_state=$1 handrail_cwd=$2 handrail_command=$3
[ -r "$handrail_state" ] && . "$handrail_state"
handrail_save() {
  [ -n "$handrail_state" ] && export -p > "$handrail_state"
  [ -n "$handrail_cwd" ] && pwd > "$handrail_cwd"
}
trap handrail_save EXIT
exec < "$4"
set --
eval "$handrail_command"
