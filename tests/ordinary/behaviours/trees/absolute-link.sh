# why: projects have links to programs of the system
# source: https://man7.org/linux/man-pages/man7/symlink.7.html
# project: odd
test "$(readlink tool)" = /usr/bin/env
./tool true
