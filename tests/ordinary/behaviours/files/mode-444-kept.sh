# why: generated or vendored files are read-only so that no edit happens by accident
# source: https://man7.org/linux/man-pages/man1/chmod.1.html
# after: test "$(stat -c %a data/fixed.txt)" = 444
test "$(stat -c %a data/fixed.txt)" = 444
