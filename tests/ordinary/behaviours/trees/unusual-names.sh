# why: projects have names with spaces, quotes, a leading dash and 200 letters
# source: https://dwheeler.com/essays/fixing-unix-linux-filenames.html
# project: odd
test -f 'with space/a file'
test -f 'quote"and\backslash'
test -f ./-dash
test -f "$(printf '%0200d' 7)"
