# why: old projects have names in other encodings
# source: https://man7.org/linux/man-pages/man7/path_resolution.7.html
# project: odd
test -f "$(printf 'bad\377name')"
