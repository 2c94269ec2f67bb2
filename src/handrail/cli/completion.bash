_handrail_completion() {
    local IFS=$'\n'
    COMPREPLY=( $(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _HANDRAIL_COMPLETE=complete_bash $1) )
    [[ "${COMPREPLY[*]}" != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _handrail_completion handrail
