# why: programs write the name and the kind of the machine into logs and build results
# source: https://man7.org/linux/man-pages/man1/uname.1.html
# needs: hostname
test -n "$(hostname)"
test "$(uname -s)" = Linux
test "$(uname -n)" = "$(hostname)"
