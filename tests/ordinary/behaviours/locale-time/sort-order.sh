# why: scripts ask for the order of bytes
# source: https://man7.org/linux/man-pages/man1/sort.1.html
test "$(printf 'b\nA\na\nB\n' | LC_ALL=C sort | tr -d '\n')" = ABab
test "$(LC_ALL=C.UTF-8 sh -c 'echo ok' 2>&1)" = ok
