
# Completes the names that `glovebox explain` knows here: rules, rows of the summary, the plugins of the project and their attributes.
_glovebox_with_names() {
    _glovebox "$@"
    local word="${COMP_WORDS[COMP_CWORD]}" name="" candidate
    [[ "${COMP_WORDS[1]}" == explain && "$word" != -* ]] || return 0
    case "$COMP_CWORD" in
        2) ;;
        3) name="${COMP_WORDS[2]}" ;;
        *) return 0 ;;
    esac
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        [[ "$candidate" == "$word"* ]] && COMPREPLY+=("$candidate")
    done < <("${COMP_WORDS[0]}" explain --names ${name:+"$name"} 2>/dev/null)
    return 0
}
complete -F _glovebox_with_names -o bashdefault -o default glovebox
