# why: tests of tools have names with a line end
# source: https://dwheeler.com/essays/fixing-unix-linux-filenames.html
# project: odd
test -f "$(printf 'two\nlines')"
