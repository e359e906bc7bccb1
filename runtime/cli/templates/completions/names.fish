
# Completes the names that `glovebox explain` knows here: rules, rows of the summary, the plugins of the project and their attributes.
function __glovebox_explain_names
    set -l words (commandline -opc)
    switch (count $words)
        case 2
            $words[1] explain --names 2>/dev/null
        case 3
            $words[1] explain --names $words[3] 2>/dev/null
    end
end
complete -c glovebox -n "__fish_glovebox_using_subcommand explain" -f -a "(__glovebox_explain_names)"
