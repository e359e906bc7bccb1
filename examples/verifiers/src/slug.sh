printf '%s\n' "$1" | tr 'A-Z ' 'a-z-'
