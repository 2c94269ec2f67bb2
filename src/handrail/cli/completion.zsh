#compdef handrail
_handrail_completion() {
    local line; local -a found begun
    for line in "${(@f)$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _TYPER_COMPLETE_FISH_ACTION=get-args \
            _HANDRAIL_COMPLETE=complete_fish handrail)}"; do
        line=${${line//:/\\:}/$'\t'/:}
        if [[ ${line%%:*} == *= ]]; then begun+=("$line"); elif [[ -n $line ]]; then found+=("$line"); fi
    done
    if (( $#found + $#begun )); then _describe handrail found -- begun -S ''; else _files; fi
}
compdef _handrail_completion handrail
