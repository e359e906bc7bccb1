
# Completes the names that `glovebox explain` knows here: rules, rows of the summary, the plugins of the project and their attributes.
(( $+functions[_glovebox_explain_names] )) ||
_glovebox_explain_names() {
    local -a found
    local at=${words[(I)explain]} name=""
    (( CURRENT > at + 1 )) && name=${words[at + 1]}
    found=(${(f)"$(glovebox explain --names ${name:+$name} 2>/dev/null)"})
    found=("${(@)found//:/\\:}")
    found=("${(@)found/$'\t'/:}")
    _describe name found
}
